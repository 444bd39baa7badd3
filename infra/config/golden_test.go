package config

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestGolden holds what is found in every file of testdata to the file of the
// same name that ends in .golden.
func TestGolden(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, name := range files {
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(name)
			require.NoError(t, err)
			r := Parse(filepath.Base(name), data)
			require.Equal(t, filepath.Base(filepath.Dir(name)) == "valid", r.Err() == nil, "%v", r.Err())
			require.Equal(t, r.Err() == nil, r.Config != nil)
			golden(t, strings.TrimSuffix(name, ".yaml")+".golden", listing(r))
		})
	}
}

// listing is a result as the golden files have it.
func listing(r *Result) []byte {
	var b strings.Builder
	for _, f := range r.Faults {
		b.WriteString(f.String() + "\n")
	}
	for _, f := range r.Warnings {
		b.WriteString("warning: " + f.String() + "\n")
	}
	return []byte(b.String())
}

// golden compares got to a file, or writes it with -update.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(name, got, 0o644))
		return
	}
	want, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(string(want), string(got)), "go test -update writes it anew")
}
