package cloud

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/functions/internal/lambdatest"
)

// most is the size in MB that functions may have: half a megabyte or so above
// what there is, but for those that must be small.
var most = map[string]map[string]float64{
	"arm64": {"ingest": 15.2, "receive": 15.2, "check": 11.1, "deliver": 16.3, "flush": 16.3, "control": 16.2},
	"amd64": {"ingest": 16.4, "receive": 16.4, "check": 12.0, "deliver": 17.6, "flush": 17.6, "control": 17.4},
}

// The size of a function is part of its cold start, and grows unseen: one
// import may bring megabytes along.
func TestSizes(t *testing.T) {
	t.Parallel()
	usual := most["arm64"] // as template.yaml has it by default
	require.LessOrEqual(t, max(usual["ingest"], usual["receive"], usual["check"]), 15.2, "events and deadlines wait for them")
	for arch, bounds := range most {
		for name, bound := range bounds {
			t.Run(arch+"/"+name, func(t *testing.T) {
				size := built(t, arch, name)
				t.Logf("%.1f MB", size)
				require.LessOrEqual(t, size, bound)
			})
		}
	}
}

// built is the size in MB of a function as it is deployed.
func built(t *testing.T, arch, name string) float64 {
	t.Helper()
	out := filepath.Join(t.TempDir(), name)
	build := exec.CommandContext(t.Context(), "go", "build", "-tags", lambdatest.Tags(name), "-trimpath", "-ldflags", "-s -w", "-o", out, "sluice/functions/"+name)
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch, "GOFLAGS=")
	said, err := build.CombinedOutput()
	require.NoError(t, err, strings.TrimSpace(string(said)))
	info, err := os.Stat(out)
	require.NoError(t, err)
	return float64(info.Size()) / 1e6
}
