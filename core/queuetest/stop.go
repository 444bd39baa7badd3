package queuetest

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

var stopTests = []test{
	{"stop waits for what is under way, and begins nothing", stopWaits},
	{"stop whose ctx ends ends the work's", stopCancels},
	{"stop of an idle queue", stopIdle},
	{"hand after stop does nothing", handAfterStop},
}

// stopping runs stop in the background; its error comes when it returns.
func (p *probe) stopping(ctx context.Context) chan error {
	ended := make(chan error, 1)
	go func() { ended <- p.stop(ctx) }()
	synctest.Wait()
	return ended
}

func stopWaits(t *testing.T, h *Harness) {
	gate := make(chan struct{})
	p := start(t, h, 2, func(_ *probe, ctx context.Context, _ core.Delivery) {
		<-gate
		if ctx.Err() != nil {
			t.Error("work that may end in peace has its ctx ended")
		}
	})
	for _, d := range deliveries("a", 10, "x") {
		p.hand(d)
	}
	synctest.Wait()
	ended := p.stopping(context.Background())
	require.Empty(t, ended, "stop returned with work under way")
	close(gate)
	require.NoError(t, <-ended)
	require.Len(t, p.ended, 2, "what was under way has ended")
	synctest.Wait()
	require.Len(t, p.order(), 2, "what waited was not begun")
}

func stopCancels(t *testing.T, h *Harness) {
	p := start(t, h, 2, func(_ *probe, ctx context.Context, _ core.Delivery) { <-ctx.Done() })
	for _, d := range deliveries("a", 10, "x") {
		p.hand(d)
	}
	synctest.Wait()
	ctx, cancel := context.WithCancel(context.Background())
	ended := p.stopping(ctx)
	require.Empty(t, ended, "stop returned with work under way")
	cancel()
	require.Error(t, <-ended, "stop says that it was cut short")
	require.Len(t, p.ended, 2, "what was under way has ended all the same")
	synctest.Wait()
	require.Len(t, p.order(), 2, "what waited was not begun")
}

func stopIdle(t *testing.T, h *Harness) {
	start(t, h, 2, nil).close()
	p := start(t, h, 2, nil)
	p.hand(delivery("a", 1, "x"))
	synctest.Wait()
	p.close()
	require.Len(t, p.ended, 1)
}

func handAfterStop(t *testing.T, h *Harness) {
	p := start(t, h, 2, nil)
	p.close()
	_ = p.queue.Hand(context.Background(), delivery("a", 1, "x")) // may fail, and must not begin
	synctest.Wait()
	require.Empty(t, p.order())
}
