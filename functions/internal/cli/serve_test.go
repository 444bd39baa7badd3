package cli

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/functions/internal/wire"
)

func TestHangupAsksForAReload(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "sluice.yaml")
	require.NoError(t, os.WriteFile(name, []byte(worldConfig), 0o600))
	p, _, _, stderr := console(t, strings.NewReader(""))
	ctx, cancel := context.WithCancel(t.Context())
	p.serve = func(ctx context.Context, o wire.ServeOptions) error {
		for range 2 { // one wish does not use up the next
			require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGHUP))
			<-o.Reload
		}
		cancel()
		<-ctx.Done()
		return nil
	}
	require.Equal(t, exitOK, p.run(ctx, []string{"serve", "--config", name}), stderr)
}

func TestWait(t *testing.T) { //nolint:paralleltest // a bubble's clock
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		require.NoError(t, wait(t.Context(), time.Minute))
		require.Equal(t, time.Minute, time.Since(begin))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, wait(ctx, time.Hour), context.Canceled)
		require.Equal(t, time.Minute, time.Since(begin))
	})
}

func TestRun(t *testing.T) {
	t.Parallel()
	var stdout, stderr strings.Builder
	code := Run(t.Context(), []string{"version"}, strings.NewReader(""), &stdout, &stderr, func(string) string { return "" })
	require.Equal(t, exitOK, code)
	require.True(t, strings.HasPrefix(stdout.String(), "sluice "), stdout.String())
	require.Empty(t, stderr.String())
}
