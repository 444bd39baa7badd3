package cli

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/functions/internal/wire"
)

// TestNullIsNoTerminal: though it is a character device, nobody types there.
func TestNullIsNoTerminal(t *testing.T) {
	t.Parallel()
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	require.False(t, isTerminal(null))
	require.NoError(t, null.Close())
}

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

// TestHangupWhileStarting hangs up before the configuration is read. It also
// shows that a broken pipe is not the end.
func TestHangupWhileStarting(t *testing.T) { //nolint:paralleltest // signals are the whole process's
	name := filepath.Join(t.TempDir(), "sluice.yaml")
	require.NoError(t, syscall.Mkfifo(name, 0o600))
	p, _, _, stderr := console(t, strings.NewReader(""))
	p.serve = func(_ context.Context, o wire.ServeOptions) error {
		<-o.Reload
		require.True(t, signal.Ignored(syscall.SIGPIPE))
		return nil
	}
	code := make(chan int)
	go func() { code <- p.run(t.Context(), []string{"serve", "--config", name}) }()
	fifo, err := os.OpenFile(name, os.O_WRONLY, 0) // once it is opened to be read
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGHUP))
	_, err = fifo.WriteString(worldConfig)
	require.NoError(t, err)
	require.NoError(t, fifo.Close())
	require.Equal(t, exitOK, <-code, stderr)
}

// TestDrainIsCutShortByASecondSignal: the first is the one that ends ctx.
func TestDrainIsCutShortByASecondSignal(t *testing.T) { //nolint:paralleltest // signals are the whole process's
	name := filepath.Join(t.TempDir(), "sluice.yaml")
	require.NoError(t, os.WriteFile(name, []byte(worldConfig), 0o600))
	for ended, signals := range map[bool][]syscall.Signal{false: {syscall.SIGTERM, syscall.SIGINT}, true: {syscall.SIGTERM}} {
		p, _, _, stderr := console(t, strings.NewReader(""))
		ctx, cancel := context.WithCancel(t.Context())
		t.Cleanup(cancel)
		p.serve = func(_ context.Context, o wire.ServeOptions) error {
			require.True(t, o.Drain)
			for _, s := range signals {
				select {
				case <-o.Hurry:
					require.Fail(t, "too early")
				default:
				}
				require.NoError(t, syscall.Kill(os.Getpid(), s))
			}
			<-o.Hurry
			return nil
		}
		if ended {
			cancel()
		}
		require.Equal(t, exitOK, p.run(ctx, []string{"serve", "--drain", "--config", name}), stderr)
	}
	p, _, _, stderr := console(t, strings.NewReader(""))
	p.serve = func(_ context.Context, o wire.ServeOptions) error {
		require.False(t, o.Drain)
		require.Nil(t, o.Hurry)
		return nil
	}
	require.Equal(t, exitOK, p.run(t.Context(), []string{"serve", "--config", name}), stderr)
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
