package message_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sluice/core"
	"sluice/core/message"
)

// anyText is strings of any bytes, with those that queues refuse and schedules
// replace among them.
func anyText() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.String(),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 300), func(b []byte) string { return string(b) }),
		rapid.SampledFrom([]string{
			"", "\x00", "a\x00b", "\x01", "\x1f", "\x7f", "\t\r\n", "\uFFFE", "\uFFFF", "\uFFFD", "\xff\xfe", "\xed\xa0\x80",
			"\u2028", "\U0001F6B0", "\U0001FFFE", "<aws.scheduler.schedule-arn>", "<aws.scheduler.execution-id>",
			`{"base64":"AA=="}`, `"`, `\u0000`, strings.Repeat("<", 300), strings.Repeat("ä", 1024), strings.Repeat("\xff", 2048),
		}),
	)
}

// fill sets everything that v points to, and is exported, to something drawn.
func fill(t *rapid.T, v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for _, f := range v.Fields() {
			fill(t, f)
		}
	case reflect.String:
		v.SetString(anyText().Draw(t, "text"))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "bool"))
	case reflect.Int, reflect.Int64:
		v.SetInt(rapid.Int64().Draw(t, "int"))
	case reflect.Uint64:
		v.SetUint(rapid.Uint64().Draw(t, "uint"))
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte(anyText().Draw(t, "bytes")))
			return
		}
		n := rapid.IntRange(0, 4).Draw(t, "elements")
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			fill(t, v.Index(i))
		}
	case reflect.Pointer:
		if rapid.Bool().Draw(t, "there") {
			v.Set(reflect.New(v.Type().Elem()))
			fill(t, v.Elem())
		}
	default:
		t.Fatalf("a field of kind %v, which no message holds", v.Kind())
	}
}

// TestRoundTrips holds every field of what is queued, those that core will
// have one day among them, to come back as it was.
func TestRoundTrips(t *testing.T) {
	t.Parallel()
	t.Run("hint", rapid.MakeCheck(func(t *rapid.T) {
		var want core.Hint
		fill(t, reflect.ValueOf(&want).Elem())
		same(t, want, encoded(t)(message.EncodeHint(want)), message.DecodeHint)
	}))
	t.Run("delivery", rapid.MakeCheck(func(t *rapid.T) {
		var want core.Delivery
		fill(t, reflect.ValueOf(&want).Elem())
		if want.Seen != nil {
			for i := range want.Seen.Claims {
				c := &want.Seen.Claims[i]
				c.Error, c.Done = core.Cut(c.Error, core.MaxClaimError), c.Done[:min(len(c.Done), 1250)]
				c.ID, c.Fold, c.Reason = core.Cut(c.ID, 100), core.Cut(c.Fold, 100), c.Reason[:min(len(c.Reason), 20)]
			}
		}
		same(t, want, encoded(t)(message.EncodeDelivery(want)), message.DecodeDelivery)
	}))
	t.Run("dead letter", rapid.MakeCheck(func(t *rapid.T) {
		var want core.DeadLetter
		fill(t, reflect.ValueOf(&want).Elem())
		body := encoded(t)(message.EncodeLetter(&want))
		want.Receipt, want.Item.Unit = "", ""
		same(t, want, body, message.DecodeLetter)
	}))
}

// encoded checks what an encoder has written to be a body that SQS takes and
// an input that Scheduler leaves as it is.
func encoded(t require.TestingT) func(string, error) string {
	return func(body string, err error) string {
		require.NoError(t, err)
		require.True(t, json.Valid([]byte(body)))
		require.True(t, utf8.ValidString(body))
		for _, r := range body {
			if r < 0x20 || r > 0xFFFD || r == '<' {
				require.Fail(t, "a character that does not travel", "%U in %s", r, body)
			}
		}
		return body
	}
}

func same[T any](t require.TestingT, want T, body string, decode func([]byte) (T, error)) {
	got, err := decode([]byte(body))
	require.NoError(t, err)
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
		require.Fail(t, "not what was written (-want +got):\n"+d, "%s", body)
	}
}

// TestNewFields shows that a message has the fields of windows, of fallbacks, of
// rates and of delays only when it is of one: a reader from before them takes
// all others.
func TestNewFields(t *testing.T) {
	t.Parallel()
	d := core.Delivery{Ref: core.Ref{Buffer: "b", Key: "k"}, Destination: "d",
		Seen: &core.Group{Life: "l", Rev: 1, Tail: 3, Claims: []core.Claim{{ID: "l-1", From: 1, To: 2, Lease: 1}}}}
	require.Equal(t, goodSeen, encoded(t)(message.EncodeDelivery(d)))
	d.Seen.Closed, d.Seen.Claims[0].Fold, d.Seen.Claims[0].Sent = 9, "f", 50
	d.Seen.Hold, d.Seen.Claims[0].Hop, d.Seen.Claims[0].Token = 7, 1, true
	want := strings.Replace(goodSeen, `"lease":1}]`, `"lease":1,"fold":"f","sent":50,"hop":1,"token":true}],"closed":9,"hold":7`, 1)
	body := encoded(t)(message.EncodeDelivery(d))
	require.Equal(t, want, body)
	same(t, d, body, message.DecodeDelivery)
}

func TestText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ key, want string }{
		{"", `""`},
		{"c-17", `"c-17"`},
		{"a\tä🚰\n", `"a\tä\ud83d\udeb0\n"`},
		{`say "hi"`, `"say \"hi\""`},
		{"\u2028", `"\u2028"`},
		{"a\x00b", `{"base64":"YQBi"}`},
		{"\xff\x00", `{"base64":"/wA="}`},
		{"\uFFFF", `{"base64":"77+/"}`},
		{"<<<<<<<<<<", `{"base64":"PDw8PDw8PDw8PA=="}`},
		{"<b>", `"\u003cb\u003e"`},
	} {
		body, err := message.EncodeHint(core.Hint{Ref: core.Ref{Buffer: "b", Key: c.key}, Life: "l", At: 5})
		require.NoError(t, err)
		require.Equal(t, `{"v":1,"buffer":"b","key":`+c.want+`,"life":"l","at":5}`, body)
	}
}

// TestSizes holds the messages of the longest keys, and the largest items, in
// what they are to travel through.
func TestSizes(t *testing.T) {
	t.Parallel()
	const chunk, item, queue = 64 << 10, 350 << 10, 1 << 20
	for _, fill := range []string{"a", "\xff", "<", `"`, "\uFFFF", "ä"} {
		key := strings.Repeat(fill, core.MaxKeyBytes/len(fill))
		body, err := message.EncodeDelivery(core.Delivery{Ref: core.Ref{Buffer: strings.Repeat("b", 63), Key: key}, Destination: "d"})
		require.NoError(t, err)
		require.Less(t, len(body), 3<<10, "a key of %q", fill)

		l := core.DeadLetter{Group: key, Answer: strings.Repeat(fill, core.MaxAnswer/len(fill))}
		l.Item.Body = []byte(strings.Repeat(fill, item/len(fill)))
		body, err = message.EncodeLetter(&l)
		require.NoError(t, err)
		require.Less(t, len(body), queue/2, "a body of %q", fill)
	}
	_, err := message.EncodeHint(core.Hint{Life: strings.Repeat("x", chunk)})
	require.Equal(t, core.TooLarge, core.CodeOf(err), "%v", err)
	_, err = message.EncodeLetter(&core.DeadLetter{Item: core.Item{Event: core.Event{Body: make([]byte, queue)}}})
	require.Equal(t, core.TooLarge, core.CodeOf(err), "%v", err)
}

const (
	goodHint     = `{"v":1,"buffer":"b","key":"k","life":"l","at":5}`
	goodDelivery = `{"v":1,"buffer":"b","key":"k","destination":"d"}`
	goodSeen     = `{"v":1,"buffer":"b","key":"k","destination":"d","seen":{"life":"l","rev":1,"tail":3,"claims":[{"id":"l-1","from":1,"to":2,"lease":1}]}}`
	goodLetter   = `{"v":1,"id":"i","batch":"i","buffer":"b","group":"g","destination":"d","reason":"r","item":{"seq":1,"id":"e","body":""}}`
)

// decoders try each kind, for its error alone.
var decoders = map[string]func([]byte) error{
	goodHint:     func(b []byte) error { _, err := message.DecodeHint(b); return err },
	goodDelivery: func(b []byte) error { _, err := message.DecodeDelivery(b); return err },
	goodSeen:     func(b []byte) error { _, err := message.DecodeDelivery(b); return err },
	goodLetter:   func(b []byte) error { _, err := message.DecodeLetter(b); return err },
}

func TestRefused(t *testing.T) {
	t.Parallel()
	for good, decode := range decoders {
		require.NoError(t, decode([]byte(good)))
		cases := []struct{ name, body, want string }{
			{"nothing", "", "not a JSON object with a version"},
			{"no JSON", "hello", "not a JSON object with a version"},
			{"null", "null", "the version (v) is missing"},
			{"a list", "[1]", "not a JSON object with a version"},
			{"no version", strings.Replace(good, `"v":1,`, "", 1), "the version (v) is missing"},
			{"another version", strings.Replace(good, `"v":1`, `"v":2,"new":true`, 1), "of version 2; this one reads version 1"},
			{"an unknown field", strings.Replace(good, `"v":1`, `"v":1,"new":true`, 1), `unknown field "new"`},
			{"a field of another kind", strings.Replace(good, `"buffer":"b"`, `"buffer":7`, 1), "neither a string nor base64"},
			{"a null", strings.Replace(good, `"buffer":"b"`, `"buffer":null`, 1), "without buffer"},
			{"an empty packing", strings.Replace(good, `"buffer":"b"`, `"buffer":{}`, 1), "neither a string nor base64"},
			{"a packing with more in it", strings.Replace(good, `"buffer":"b"`, `"buffer":{"base64":"AA==","x":1}`, 1), "neither a string nor base64"},
			{"broken base64", strings.Replace(good, `"buffer":"b"`, `"buffer":{"base64":"!"}`, 1), "broken base64"},
			{"sloppy base64", strings.Replace(good, `"buffer":"b"`, `"buffer":{"base64":"AB=="}`, 1), "broken base64"},
			{"cut off", good[:len(good)-1], "not a JSON object with a version"},
			{"something behind", good + "{}", "with something behind it"},
			{"no UTF-8", strings.Replace(good, `"b"`, "\"\xff\"", 1), "no UTF-8 text"},
			{"too long", good + strings.Repeat(" ", message.MaxLetter), "bytes; at most"},
		}
		for _, c := range cases {
			err := decode([]byte(c.body))
			require.ErrorContains(t, err, c.want, "%s: %.200s", c.name, c.body)
			require.Equal(t, core.Invalid, core.CodeOf(err), "%s: %v", c.name, err)
		}
	}
}

// TestMissing takes each field away that must be there.
func TestMissing(t *testing.T) {
	t.Parallel()
	for good, decode := range decoders {
		var whole map[string]any
		require.NoError(t, json.Unmarshal([]byte(good), &whole))
		delete(whole, "seen") // it need not be there
		for name := range whole {
			part := map[string]any{}
			for k, v := range whole {
				if k != name {
					part[k] = v
				}
			}
			body, err := json.Marshal(part)
			require.NoError(t, err)
			err = decode(body)
			require.ErrorContains(t, err, name, "%s", body)
			require.Equal(t, core.Invalid, core.CodeOf(err))
		}
	}
	for name, part := range map[string]string{
		"seen.life": `"life":"l",`, "seen.rev": `"rev":1,`, "seen.tail": `"tail":3,`, "seen.claims[0].id": `"id":"l-1",`,
		"seen.claims[0].from": `"from":1,`, "seen.claims[0].to": `"to":2,`, "seen.claims[0].lease": `,"lease":1`,
	} {
		body := strings.Replace(goodSeen, part, "", 1)
		require.NotEqual(t, goodSeen, body)
		require.ErrorContains(t, decoders[goodSeen]([]byte(body)), "without "+name)
	}
	for _, name := range []string{"id", "body"} {
		err := decoders[goodLetter]([]byte(strings.Replace(goodLetter, `"item":{"seq":1,"id":"e","body":""}`,
			map[string]string{"id": `"item":{"seq":1,"body":""}`, "body": `"item":{"seq":1,"id":"e"}`}[name], 1)))
		require.ErrorContains(t, err, "without item."+name)
	}
}

// again holds that what can be read is written and read the same.
func again[T any](t *testing.T, data []byte, decode func([]byte) (T, error), encode func(T) (string, error)) {
	t.Helper()
	v, err := decode(data)
	if err != nil {
		require.Equal(t, core.Invalid, core.CodeOf(err), "%v", err)
		return
	}
	body, err := encode(v)
	if core.CodeOf(err) == core.TooLarge && err != nil {
		return // escapes that it had no need of
	}
	same(t, v, encoded(t)(body, err), decode)
}

func FuzzDecodeHint(f *testing.F) {
	f.Add([]byte(goodHint))
	f.Add([]byte(`{"v":1,"buffer":"b","key":{"base64":"/wA="},"life":"l","at":-5,"check":18446744073709551615}`))
	f.Fuzz(func(t *testing.T, data []byte) { again(t, data, message.DecodeHint, message.EncodeHint) })
}

// TestLargeRecord shows that a record which is too large to travel is left
// out, and that no record with more claims than a group has is believed.
func TestLargeRecord(t *testing.T) {
	t.Parallel()
	d := core.Delivery{Ref: core.Ref{Buffer: "b", Key: "k"}, Destination: "d", Seen: &core.Group{Life: "l", Tail: 100_000}}
	for range core.MaxClaims {
		d.Seen.Claims = append(d.Seen.Claims, core.Claim{ID: "c", Done: make([]byte, 10_000/8)})
	}
	got, err := message.DecodeDelivery([]byte(encoded(t)(message.EncodeDelivery(d))))
	require.NoError(t, err)
	require.NotNil(t, got.Seen, "the largest claims of a partial success")

	bare := d
	bare.Seen = nil
	d.Seen.Claims[0].Done = make([]byte, 16<<10)
	same(t, bare, encoded(t)(message.EncodeDelivery(d)), message.DecodeDelivery)
	d.Seen.Claims = make([]core.Claim, core.MaxClaims+1)
	same(t, bare, encoded(t)(message.EncodeDelivery(d)), message.DecodeDelivery)

	one := `{"id":"l-1","from":1,"to":2,"lease":1}`
	_, err = message.DecodeDelivery([]byte(strings.Replace(goodSeen, one, one+strings.Repeat(","+one, core.MaxClaims), 1)))
	require.ErrorContains(t, err, "at most 8")
	require.Equal(t, core.Invalid, core.CodeOf(err))
}

func FuzzDecodeDelivery(f *testing.F) {
	f.Add([]byte(goodDelivery))
	f.Add([]byte(goodSeen))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 8<<10 {
			return // what has been seen may be too large to be written again
		}
		again(t, data, message.DecodeDelivery, message.EncodeDelivery)
	})
}

func FuzzDecodeLetter(f *testing.F) {
	f.Add([]byte(goodLetter))
	f.Fuzz(func(t *testing.T, data []byte) {
		again(t, data, message.DecodeLetter, func(l core.DeadLetter) (string, error) { return message.EncodeLetter(&l) })
	})
}
