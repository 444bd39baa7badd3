package segment

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sluice/core"
)

const at core.Millis = 1_700_000_000_000

func randomBytes(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b)
	return b
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	everyByte := make([]byte, 256)
	for i := range everyByte {
		everyByte[i] = byte(i)
	}
	tests := []struct {
		name   string
		events []core.Event
	}{
		{"nothing", nil},
		{"an empty event", []core.Event{{ReceivedAt: at}}},
		{"every usual type", func() (e []core.Event) {
			for _, u := range usual {
				e = append(e, core.Event{ID: u, ContentType: u, ReceivedAt: at})
			}
			return e
		}()},
		{"an unusual type", []core.Event{{ContentType: "text/x; charset=\"ä\"", ReceivedAt: at}}},
		{"headers, twice and empty", []core.Event{{ReceivedAt: at, Headers: []core.Header{{Name: "z", Value: "1"}, {}, {Name: "z", Value: "\xff\x00"}}}}},
		{"every byte", []core.Event{{ID: string(everyByte), Body: everyByte, ReceivedAt: at}}},
		{"long before and after", []core.Event{{ReceivedAt: 1}, {ReceivedAt: at * 2}}},
		{"JSON and what only looks so", []core.Event{{Body: []byte("{}"), JSON: true, ReceivedAt: at}, {Body: []byte("{}"), ReceivedAt: at}}},
		{"what compresses", []core.Event{{Body: bytes.Repeat([]byte(`{"a":1}`), 10_000), ReceivedAt: at}}},
		{"what does not", []core.Event{{Body: randomBytes(70_000), ReceivedAt: at}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := Unpack(Pack(tt.events, at), at)
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(tt.events, got, cmpopts.EquateEmpty()))
		})
	}
}

func TestRoundTripOfAnything(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		events := rapid.SliceOf(rapid.Custom(func(t *rapid.T) core.Event {
			return core.Event{
				ID: rapid.String().Draw(t, "id"), Source: rapid.String().Draw(t, "source"),
				ContentType: rapid.OneOf(rapid.SampledFrom(usual), rapid.String()).Draw(t, "type"),
				Body:        rapid.SliceOf(rapid.Byte()).Draw(t, "body"),
				ReceivedAt:  core.Millis(rapid.Int64Range(0, 1<<50).Draw(t, "at")),
				JSON:        rapid.Bool().Draw(t, "json"),
				Headers: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) core.Header {
					return core.Header{Name: rapid.String().Draw(t, "name"), Value: rapid.String().Draw(t, "value")}
				}), 0, 4).Draw(t, "headers"),
			}
		})).Draw(t, "events")
		packed := Pack(events, at)
		got, err := Unpack(packed, at)
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(events, got, cmpopts.EquateEmpty()))
		n := 1
		for i := range events {
			n += Size(&events[i])
		}
		require.LessOrEqual(t, len(packed), n)
	})
}

// A 900-byte event, with what a stored item has besides, stays within the
// kilobyte that a write unit pays for, whether it compresses or not.
func TestOverhead(t *testing.T) {
	t.Parallel()
	e := core.Event{ID: strings.Repeat("0", 26), Source: "orders", ContentType: "application/json", Body: randomBytes(900), ReceivedAt: at}
	require.LessOrEqual(t, len(Pack([]core.Event{e}, at)), 900+45)
}

func TestCompression(t *testing.T) {
	t.Parallel()
	var events []core.Event
	for i := range 100 {
		body := fmt.Appendf(nil, `{"order":%d,"customer":"c-%d","lines":[%s]}`, i*7919, i%10,
			strings.TrimSuffix(strings.Repeat(fmt.Sprintf(`{"sku":"A-%d","qty":%d,"price":%d.99},`, i*31, i%5, i), 25), ","))
		events = append(events, core.Event{ID: fmt.Sprintf("01J%023d", i), Source: "orders", ContentType: "application/json", Body: body, ReceivedAt: at})
	}
	require.Less(t, len(Pack(events, at)), 40<<10)
}

// Text without repetitions still takes no more bits than its alphabet needs.
func TestCompressionOfBase64(t *testing.T) {
	t.Parallel()
	body := fmt.Appendf(nil, `{"data":%q}`, base64.StdEncoding.EncodeToString(randomBytes(750)))
	e := core.Event{ID: strings.Repeat("0", 26), Source: "orders", ContentType: "application/json", Body: body, ReceivedAt: at}
	require.Less(t, len(Pack([]core.Event{e}, at)), len(body)*9/10)
}

// Damage is an error, and never a crash or another number of events.
func TestDamage(t *testing.T) {
	t.Parallel()
	packed := Pack([]core.Event{{ID: "a", Body: []byte("b"), Headers: []core.Header{{Name: "n", Value: "v"}}, ReceivedAt: at}}, at)
	for n := range packed {
		if n == 1 {
			continue // no events
		}
		_, err := Unpack(packed[:n], at)
		require.Equal(t, core.Internal, core.CodeOf(err), "cut at %d", n)
		require.Error(t, err, "cut at %d", n)
	}
	_, err := Unpack([]byte{9, 1}, at)
	require.ErrorContains(t, err, "unknown kind 9")
	_, err = Unpack([]byte{compressed, 1, 2, 3}, at)
	require.Error(t, err)
}

func FuzzUnpack(f *testing.F) {
	f.Add(Pack([]core.Event{{ID: "a", ContentType: "text/plain", Body: []byte("b"), ReceivedAt: at}}, at))
	f.Add(Pack([]core.Event{{Body: bytes.Repeat([]byte("b"), 1000)}}, at))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, packed []byte) {
		events, err := Unpack(packed, at)
		if err != nil {
			return
		}
		again, err := Unpack(Pack(events, at), at)
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(events, again, cmpopts.EquateEmpty()))
	})
}
