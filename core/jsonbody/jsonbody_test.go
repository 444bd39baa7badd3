package jsonbody_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/core/jsonbody"
)

func TestDepth(t *testing.T) {
	t.Parallel()
	nested := func(n int) []byte { return []byte(strings.Repeat("[", n) + strings.Repeat("]", n)) }
	require.True(t, jsonbody.Valid(nested(10_000)))
	require.False(t, jsonbody.Valid(nested(10_001)))
	require.False(t, jsonbody.Valid([]byte(strings.Repeat("[", 10<<20))), "and it must not end the process")
}

func FuzzValid(f *testing.F) {
	for _, s := range []string{`{"a":[1,2.5e-3,"x\u00e9",null,true]}`, `1e999`, ``, ` `, `[1,]`, `"\x"`, "\ufeff{}", `01`, `-`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		require.Equal(t, json.Valid(b), jsonbody.Valid(b))
	})
}
