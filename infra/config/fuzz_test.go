package config

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzLoad holds that any file is read or refused: with faults that have a
// place in it and say what would be right, or as a configuration that core
// finds valid and the schema agrees with.
func FuzzLoad(f *testing.F) {
	files, err := filepath.Glob("testdata/*/*.yaml")
	require.NoError(f, err)
	for _, name := range files {
		data, err := os.ReadFile(name)
		require.NoError(f, err)
		f.Add(data)
	}
	for text := range schemaCases() {
		f.Add([]byte(text))
	}
	s := compiled(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		r := Parse("sluice.yaml", data)
		lines := bytes.Count(data, []byte{'\n'}) + bytes.Count(data, []byte{'\r'}) + 1
		for _, found := range append(r.Faults, r.Warnings...) {
			require.Positive(t, found.Line)
			require.Positive(t, found.Column)
			require.LessOrEqual(t, found.Line, lines+1, "%s", found)
			require.NotEmpty(t, found.Problem)
			require.NotEmpty(t, found.Right)
			require.False(t, strings.HasPrefix(found.Path, "."))
		}
		require.Equal(t, r.Err() == nil, r.Config != nil)
		if r.Config == nil {
			return
		}
		require.Empty(t, r.Config.Validate())
		value, ok := untyped(data)
		require.True(t, ok, "what is read is YAML")
		require.NoError(t, s.Validate(value))
	})
}
