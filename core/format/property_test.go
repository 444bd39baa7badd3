package format_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sluice/core"
	"sluice/core/format"
)

// TestReadBack: whatever the bodies, a receiver reads them back, all and in
// order, with nothing but encoding/json.
func TestReadBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		bodies := rapid.SliceOfN(genBody(), 0, 8).Draw(t, "bodies")
		b := batchOf(bodies...)

		lines := bytes.SplitAfter(format.Append(nil, format.NDJSON, b), []byte("\n"))
		require.Empty(t, lines[len(lines)-1], "the last line ends")
		require.Len(t, lines, len(bodies)+1)
		for i, body := range bodies {
			requireValue(t, body, bytes.TrimSuffix(lines[i], []byte("\n")))
		}

		var values []json.RawMessage
		require.NoError(t, json.Unmarshal(format.Append(nil, format.JSONArray, b), &values))
		require.Len(t, values, len(bodies))
		for i, body := range bodies {
			requireValue(t, body, values[i])
		}
		requireEnvelope(t, b, format.Append(nil, format.Envelope, b))
	})
}

// genBody draws JSON of any shape and spacing, text, and bytes.
func genBody() *rapid.Generator[string] {
	space := rapid.SampledFrom([]string{"", " ", "\n", "\r\n", "\t"})
	jsonText := rapid.Custom(func(t *rapid.T) string {
		v, err := json.Marshal(map[string]any{
			rapid.String().Draw(t, "key"): rapid.Int().Draw(t, "number"),
			"list":                        rapid.SliceOfN(rapid.String(), 0, 3).Draw(t, "list"),
		})
		require.NoError(t, err)
		s := space.Draw(t, "space")
		return s + string(bytes.ReplaceAll(v, []byte(`":`), []byte(`"`+s+`:`+s))) + s
	})
	return rapid.OneOf(jsonText, rapid.String(), space,
		rapid.StringMatching(`[\[\]{}",:0-9eE+\-. \n]{0,12}`),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 20), func(b []byte) string { return string(b) }))
}

// isJSON is the package's word for JSON, told by the standard library.
func isJSON(body string) bool { return utf8.ValidString(body) && json.Valid([]byte(body)) }

// requireValue checks that a receiver of raw has the body.
func requireValue(t *rapid.T, body string, raw []byte) {
	t.Helper()
	require.False(t, bytes.ContainsAny(raw, "\r\n"), "no line break inside an item")
	switch {
	case isJSON(body):
		requireSameJSON(t, body, raw)
	case utf8.ValidString(body):
		var s string
		require.NoError(t, json.Unmarshal(raw, &s))
		require.Equal(t, body, s)
	default:
		var v struct{ Base64 *string }
		require.NoError(t, json.Unmarshal(raw, &v))
		requireBase64(t, body, v.Base64)
	}
}

// requireSameJSON checks that raw is body, but for the spacing when body spans
// lines, and for the spaces around it, which a JSON reader drops.
func requireSameJSON(t *rapid.T, body string, raw []byte) {
	t.Helper()
	want := []byte(body)
	if bytes.ContainsAny(want, "\r\n") {
		var compact bytes.Buffer
		require.NoError(t, json.Compact(&compact, want))
		want = compact.Bytes()
	}
	require.Equal(t, string(bytes.TrimSpace(want)), string(bytes.TrimSpace(raw)))
}

func requireBase64(t *rapid.T, body string, got *string) {
	t.Helper()
	require.NotNil(t, got)
	raw, err := base64.StdEncoding.DecodeString(*got)
	require.NoError(t, err)
	require.Equal(t, body, string(raw))
}

func requireEnvelope(t *rapid.T, b *core.Batch, raw []byte) {
	t.Helper()
	var got struct {
		ID    string
		Items []struct {
			ID         string
			Body       json.RawMessage
			BodyBase64 *string
		}
	}
	require.NoError(t, json.Unmarshal(raw, &got))
	require.Equal(t, b.ID, got.ID)
	require.Len(t, got.Items, len(b.Items))
	for i := range b.Items {
		require.Equal(t, b.Items[i].ID, got.Items[i].ID)
		if body := string(b.Items[i].Body); isJSON(body) {
			require.Nil(t, got.Items[i].BodyBase64)
			requireSameJSON(t, body, got.Items[i].Body)
		} else {
			require.Nil(t, got.Items[i].Body)
			requireBase64(t, body, got.Items[i].BodyBase64)
		}
	}
}

// FuzzAppend holds the fast ways of validating and escaping against the
// standard library.
func FuzzAppend(f *testing.F) {
	for _, s := range []string{`{"a":[1,-0.5e+3,"\u00e9\\"]}`, "[1,]", "01", "-", "1.", "\"\x1f\"", "nul", "tru", "{\"a\":1,}", "\"\\ud800\"", "\xff", "\"\\x\""} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		line := bytes.TrimSuffix(format.Append(nil, format.NDJSON, batchOf(string(body))), []byte("\n"))
		if !json.Valid(line) || bytes.ContainsAny(line, "\r\n") {
			t.Fatalf("%q became %q", body, line)
		}
		var s string
		switch {
		case isJSON(string(body)):
		case !utf8.Valid(body):
			if !bytes.HasPrefix(line, []byte(`{"base64":`)) {
				t.Fatalf("%q became %q", body, line)
			}
		case json.Unmarshal(line, &s) != nil || s != string(body):
			t.Fatalf("%q became %q", body, line)
		}
	})
}

func BenchmarkAppend(b *testing.B) {
	body := `{"type":"order","customer_id":12345,"lines":[{"sku":"abc-123","qty":2,"price":19.99},{"sku":"def-456","qty":1,"price":5.5}],"ok":true,"note":"` +
		string(bytes.Repeat([]byte("lorem ipsum dolor "), 48)) + `"}`
	bodies := make([]string, 50)
	for i := range bodies {
		bodies[i] = body
	}
	batch := batchOf(bodies...)
	for _, name := range format.Names() {
		b.Run(name, func(b *testing.B) {
			f, err := format.Parse(name)
			require.NoError(b, err)
			b.SetBytes(batch.Bytes())
			b.ReportAllocs()
			var buf []byte
			for b.Loop() {
				buf = format.Append(buf[:0], f, batch)
			}
		})
	}
}
