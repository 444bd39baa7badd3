package queuetest_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"sluice/core"
	"sluice/core/queuetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// plain is the simplest queue there is: one line, from which each worker that
// is free takes the first delivery of the buffer that was served longest ago.
type plain struct {
	limit func(string) int
	work  func(context.Context, core.Delivery)
	ctx   context.Context
	end   context.CancelFunc

	mu      sync.Mutex
	line    []core.Delivery
	served  []string // buffers, the last served last
	atWork  map[string]int
	stopped bool
	workers sync.WaitGroup
}

func (p *plain) Hand(_ context.Context, d core.Delivery) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return core.Errorf(core.Unavailable, "stopped")
	}
	p.line = append(p.line, d)
	p.begin(d.Destination)
	return nil
}

// begin puts workers to what waits for a destination, up to the limit.
func (p *plain) begin(destination string) {
	for !p.stopped && p.atWork[destination] < p.limit(destination) {
		best := -1
		for i, d := range p.line {
			if d.Destination == destination && (best < 0 ||
				slices.Index(p.served, d.Ref.Buffer) < slices.Index(p.served, p.line[best].Ref.Buffer)) {
				best = i
			}
		}
		if best < 0 {
			return
		}
		d := p.line[best]
		p.line = slices.Delete(p.line, best, best+1)
		p.served = append(slices.DeleteFunc(p.served, func(b string) bool { return b == d.Ref.Buffer }), d.Ref.Buffer)
		p.atWork[destination]++
		p.workers.Go(func() {
			p.work(p.ctx, d)
			p.mu.Lock()
			defer p.mu.Unlock()
			p.atWork[destination]--
			p.begin(destination)
		})
	}
}

func (p *plain) Stop(ctx context.Context) error {
	p.mu.Lock()
	p.stopped = true
	p.mu.Unlock()
	defer p.end()
	defer context.AfterFunc(ctx, p.end)()
	p.workers.Wait()
	return ctx.Err()
}

// TestPlain shows that the simplest right queue passes.
func TestPlain(t *testing.T) {
	t.Parallel()
	queuetest.Run(t, queuetest.Harness{
		Name: "plain",
		Start: func(_ *testing.T, limit func(string) int, work func(context.Context, core.Delivery)) (core.Queue, func(context.Context) error) {
			p := &plain{limit: limit, work: work, atWork: map[string]int{}}
			p.ctx, p.end = context.WithCancel(context.Background())
			return p, p.Stop
		},
	})
}
