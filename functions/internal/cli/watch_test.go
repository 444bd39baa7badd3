package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestWatcher looks at a flush: how often, what it draws, and that it leaves
// no trace.
func TestWatcher(t *testing.T) {
	t.Parallel()
	type look struct {
		left  int64
		takes time.Duration
		err   error
	}
	for _, tc := range []struct {
		name  string
		total int64
		looks []look
		draws string
		waits []time.Duration
	}{
		{"none", 5, nil, "", []time.Duration{time.Second}},
		{"some", 10_000, []look{{left: 9_999}, {left: 3_214}, {left: 0}},
			"\r\x1b[Kpending left: 9,999 (of 10,000)  1.0s\r\x1b[Kpending left: 3,214 (of 10,000)  2.0s\r\x1b[Kpending left: 0 (of 10,000)  3.0s\r\x1b[K",
			[]time.Duration{time.Second, time.Second, time.Second, time.Second}},
		{"more arrives", 1, []look{{left: 7}}, "\r\x1b[Kpending left: 7 (of 7)  1.0s\r\x1b[K", []time.Duration{time.Second, time.Second}},
		{"looks that take long are few", 3, []look{{left: 2, takes: 2 * time.Second}, {left: 1}},
			"\r\x1b[Kpending left: 2 (of 3)  3.0s\r\x1b[Kpending left: 1 (of 3)  23s\r\x1b[K",
			[]time.Duration{time.Second, 20 * time.Second, time.Second}},
		{"a look that fails", 3, []look{{err: errors.New("away")}, {left: 1}}, "\r\x1b[Kpending left: 1 (of 3)  2.0s\r\x1b[K",
			[]time.Duration{time.Second, time.Second, time.Second}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			now := epoch
			var out bytes.Buffer
			var waits []time.Duration
			w := &watcher{
				w:   &out,
				now: func() time.Time { return now },
				wait: func(ctx context.Context, d time.Duration) error {
					now = now.Add(d)
					if waits = append(waits, d); len(waits) > len(tc.looks) {
						cancel()
					}
					return ctx.Err()
				},
				pending: func() (int64, error) {
					l := tc.looks[len(waits)-1]
					now = now.Add(l.takes)
					return l.left, l.err
				},
			}
			w.run(ctx, tc.total)
			require.Equal(t, tc.draws, out.String())
			require.Equal(t, tc.waits, waits)
		})
	}
}

// TestFlushIsInterrupted ends a flush that would go on for ever, while it is
// watched.
func TestFlushIsInterrupted(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			_, _ = w.Write([]byte(`{"buffers":[{"name":"a","configured":true,"pendingItems":3}],"next":""}`))
			return
		}
		_, _ = io.Copy(io.Discard, r.Body) // or the server does not see who leaves
		interrupt()
		<-r.Context().Done()
	}))
	defer server.Close()
	var stdout, stderr bytes.Buffer
	p := &program{
		stdout: &stdout, stderr: &stderr, now: func() time.Time { return epoch },
		env:      func(name string) string { return map[string]string{"SLUICE_URL": server.URL}[name] },
		terminal: func(any) bool { return true },
		wait:     func(ctx context.Context, _ time.Duration) error { <-ctx.Done(); return ctx.Err() },
	}
	require.Equal(t, exitFailed, p.run(ctx, []string{"flush"}))
	require.Empty(t, stdout.String())
	require.Equal(t, "\x1b[31msluice:\x1b[0m interrupted: the flush ends after the sends under way\n", stderr.String())
}
