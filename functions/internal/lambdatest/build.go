package lambdatest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
)

// Build builds a main package as a bootstrap for this machine, with the flags
// of a release.
func Build(ctx context.Context, pkg, out string) error {
	//nolint:gosec // what it runs is the tests' own
	cmd := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-tags", "lambda.norpc", "-trimpath", "-ldflags", "-s -w", "-o", out, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build %s: %w\n%s", pkg, err, text)
	}
	return nil
}
