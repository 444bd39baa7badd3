package jsonbody_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/core/jsonbody"
)

func deep(n int) []byte { return []byte(strings.Repeat("[", n) + strings.Repeat("]", n)) }

func TestDepthBound(t *testing.T) {
	t.Parallel()
	mixed := func(n int) []byte {
		return []byte(strings.Repeat(`[{"a":`, n/2) + "1" + strings.Repeat(`}]`, n/2))
	}
	for _, n := range []int{1, 2, 62, 64, 66, 126, 128, 130, 9_998, 10_000} {
		require.True(t, jsonbody.Valid(deep(n)), "%d", n)
		require.Equal(t, n, jsonbody.Depth(deep(n)))
		require.Equal(t, n >= 2, jsonbody.Valid(mixed(n)) && jsonbody.Depth(mixed(n)) == n, "%d", n)
		// A bracket of the other kind anywhere does not close.
		wrong := mixed(n)
		wrong[len(wrong)-1] ^= '}' ^ ']'
		require.False(t, jsonbody.Valid(wrong), "%d", n)
	}
	require.False(t, jsonbody.Valid(deep(10_001)))
	require.False(t, jsonbody.Valid(mixed(10_002)))
	require.False(t, jsonbody.Valid(bytes.Repeat([]byte("["), 10<<20)), "and it must not end the process")
	require.False(t, jsonbody.Valid(bytes.Repeat([]byte(`{"a":`), 1<<20)))
}

// TestEveryByte puts each byte at each place of a text, so that it meets every
// place of a word, and the last bytes.
func TestEveryByte(t *testing.T) {
	t.Parallel()
	for n := range 40 {
		for c := range 256 {
			text := []byte(`{"` + strings.Repeat("n", n%16) + `":"` + strings.Repeat("x", n) + `"}`)
			for _, at := range []int{2, 3 + n%16, 5 + n%16, len(text) - 3} {
				b := bytes.Clone(text)
				b[min(at, len(b)-1)] = byte(c)
				require.Equal(t, json.Valid(b), jsonbody.Valid(b), "%q", b)
			}
		}
	}
}

func TestPrefix(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, text string
		want       int
	}{
		{"a value alone", `{"a":[1]}`, 9},
		{"a value with more behind it", `12,[3]`, 2},
		{"spaces in front", " \n true x", 7},
		{"a number ends where it must", `01`, -1},
		{"a number that goes on", `1.5e`, -1},
		{"nothing", ``, -1},
		{"spaces", `   `, -1},
		{"a comma", `,`, -1},
		{"open", `[1`, -1},
		{"too deep", string(deep(10_001)), -1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, jsonbody.Prefix([]byte(tt.text)))
		})
	}
}

func TestNoAllocation(t *testing.T) {
	body := dense(1 << 10)
	require.Zero(t, testing.AllocsPerRun(10, func() {
		_ = jsonbody.Valid(body)
		_ = jsonbody.Member(body, "key")
		_ = jsonbody.Member(body, "a name that is too long to be searched for as it is")
	}))
	require.Zero(t, testing.AllocsPerRun(10, func() { _ = jsonbody.Valid(deepest) }))
}

var deepest = deep(10_000)

func FuzzValid(f *testing.F) {
	for _, s := range []string{
		`{"a":[1,2.5e-3,"x\u00e9",null,true]}`, `1e999`, ``, ` `, `[1,]`, `"\x"`, "\ufeff{}", `01`, `-`, `-0.0E+1`,
		`{"a":1,}`, `{,}`, `[}`, `{"a"}`, `"\ud83d\ude00 \" \\ more than eight bytes"`, `{"longer than eight":{}}`, "[\"\x1f\"]",
		`tru`, `nulll`, `[[[{}]]]`, `1.`, `1e`, `{"a":"b" "c":1}`, string(deep(70)), string(deep(64)), string(deep(130)),
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		require.Equal(t, json.Valid(b), jsonbody.Valid(b))
		if n := jsonbody.Prefix(b); n >= 0 {
			require.True(t, json.Valid(b[:n]))
		}
	})
}
