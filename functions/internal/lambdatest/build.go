package lambdatest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
)

// Tags are the build tags of a function, by the name of its folder, as the
// Makefile has them: functions that call none but AWS, which answers by HTTP/1.1,
// are smaller without HTTP/2.
func Tags(function string) string {
	switch function {
	case "ingest", "receive", "check":
		return "lambda.norpc,nethttpomithttp2"
	}
	return "lambda.norpc"
}

// Build builds a main package as a bootstrap for this machine, with the flags
// of a release.
func Build(ctx context.Context, pkg, out string) error {
	//nolint:gosec // what it runs is the tests' own
	cmd := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-tags", Tags(path.Base(pkg)), "-trimpath", "-ldflags", "-s -w", "-o", out, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build %s: %w\n%s", pkg, err, text)
	}
	return nil
}
