package timertest_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sluice/core"
	"sluice/core/timertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// plain is the simplest timer there is: a goroutine for each hint.
type plain struct {
	fire    func(context.Context, core.Hint)
	stop    chan struct{}
	mu      sync.Mutex
	stopped bool
	fires   sync.WaitGroup
}

func (p *plain) Arm(ctx context.Context, h core.Hint) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return core.Errorf(core.Unavailable, "stopped")
	}
	p.fires.Go(func() {
		left := time.NewTimer(h.At.Sub(core.At(time.Now())))
		defer left.Stop()
		select {
		case <-left.C:
			p.fire(context.WithoutCancel(ctx), h)
		case <-p.stop:
		}
	})
	return nil
}

func (p *plain) Stop() {
	p.mu.Lock()
	p.stopped = true
	p.mu.Unlock()
	close(p.stop)
	p.fires.Wait()
}

// TestPlain shows that the simplest right timer passes.
func TestPlain(t *testing.T) {
	t.Parallel()
	timertest.Run(t, timertest.Harness{
		Name: "plain",
		Start: func(_ *testing.T, fire func(context.Context, core.Hint)) (core.Timer, func()) {
			p := &plain{fire: fire, stop: make(chan struct{})}
			return p, p.Stop
		},
	})
}
