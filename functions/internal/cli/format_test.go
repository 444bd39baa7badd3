package cli

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestFormats(t *testing.T) {
	t.Parallel()
	tests := []struct{ got, want string }{
		{count(0), "0"}, {count(999), "999"}, {count(1000), "1,000"}, {count(-1234567), "-1,234,567"}, {count(-100), "-100"},
		{plural(1, "event"), "1 event"}, {plural(0, "event"), "0 events"}, {plural(1234, "event"), "1,234 events"},
		{size(0), "0 B"}, {size(1023), "1023 B"}, {size(1024), "1.0 KiB"}, {size(10 << 20), "10 MiB"}, {size(1<<63 - 1), "8192 PiB"},
		{age(-time.Second), "0s"}, {age(0), "0.0s"}, {age(9900 * time.Millisecond), "9.9s"}, {age(59 * time.Second), "59s"},
		{age(200 * time.Second), "3m 20s"}, {age(26 * time.Hour), "1d 2h"}, {age(23*time.Hour + 59*time.Minute), "23h 59m"},
		{keyCell("4711"), "4711"}, {keyCell(""), `""`}, {keyCell("a b"), `"a b"`}, {keyCell(`a\x1b`), `"a\\x1b"`}, {keyCell("ä👍"), "ä👍"},
		{keyCell("a\nb"), `"a\nb"`}, {cell(strings.Repeat("ä", 61)), strings.Repeat("ä", 59) + "…"},
	}
	for _, tt := range tests {
		require.Equal(t, tt.want, tt.got)
	}
}

func FuzzClean(f *testing.F) {
	f.Add(hostile)
	f.Add("plain ä 👍")
	f.Fuzz(func(t *testing.T, s string) {
		got := clean(s)
		require.True(t, utf8.ValidString(got))
		for _, r := range got {
			require.True(t, strconv.IsPrint(r), "%q", r)
		}
		if strconv.CanBackquote(s) && !strings.ContainsFunc(s, func(r rune) bool { return !strconv.IsPrint(r) }) {
			require.Equal(t, s, got)
		}
	})
}

func FuzzCleanJSON(f *testing.F) {
	f.Add([]byte(`{"a":"\u001b` + "\u009b\u202e\U000e0001\u007f" + `"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var want, got any
		if !utf8.Valid(data) || json.Unmarshal(data, &want) != nil {
			t.Skip()
		}
		out := cleanJSON(data)
		require.NoError(t, json.Unmarshal(out, &got))
		require.Equal(t, want, got)
		for _, r := range string(out) {
			require.True(t, strconv.IsPrint(r) || r == '\n' || r == '\t' || r == '\r', "%q", r)
		}
	})
}
