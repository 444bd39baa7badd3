package cloud

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The size of a function is part of its cold start, and grows unseen: one
// import may bring megabytes along. The bounds are in MB, half a megabyte or so
// above what there is.
func TestSizes(t *testing.T) {
	t.Parallel()
	bounds := map[string]float64{"ingest": 14.4, "check": 11.1, "deliver": 12.6, "flush": 11.1, "control": 12.3}
	dir := t.TempDir()
	for name, most := range bounds {
		out := filepath.Join(dir, name)
		build := exec.CommandContext(t.Context(), "go", "build", "-tags", "lambda.norpc", "-trimpath", "-ldflags", "-s -w", "-o", out, "sluice/functions/"+name)
		build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=arm64", "GOFLAGS=")
		said, err := build.CombinedOutput()
		require.NoError(t, err, strings.TrimSpace(string(said)))
		info, err := os.Stat(out)
		require.NoError(t, err)
		size := float64(info.Size()) / 1e6
		t.Logf("%s: %.1f MB", name, size)
		require.LessOrEqual(t, size, most, name)
	}
}
