package queuetest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

// Harness is how the suite gets at the queues of one adapter.
type Harness struct {
	Name string // of the adapter

	// Start starts a new queue that has work done on what it is handed, at
	// most limit(destination) deliveries of a destination at a time, inside
	// the bubble. stop ends it: it begins nothing further, and returns when
	// what is under way has ended; ending its ctx ends that work's. The suite
	// stops every queue once.
	Start func(t *testing.T, limit func(destination string) int, work func(context.Context, core.Delivery)) (queue core.Queue, stop func(context.Context) error)
}

// test is one case of the suite.
type test struct {
	name string
	run  func(t *testing.T, h *Harness)
}

// Run runs every case against new queues of h, and logs how many there were.
func Run(t *testing.T, h Harness) {
	t.Helper()
	var ran atomic.Int64
	t.Cleanup(func() { t.Logf("queuetest: %s: %d cases", h.Name, ran.Load()) })
	for _, c := range slices.Concat(workTests, stopTests) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { c.run(t, &h) })
			ran.Add(1)
		})
	}
}

// probe is a queue under test and what it has had done.
type probe struct {
	t     *testing.T
	queue core.Queue
	stop  func(context.Context) error

	mu     sync.Mutex
	begun  []core.Delivery
	ended  []core.Delivery
	atWork map[string]int // by destination
	most   map[string]int // the most at a time
}

// start starts a queue with a limit for all destinations. work, if not nil,
// is what each delivery does.
func start(t *testing.T, h *Harness, limit int, work func(*probe, context.Context, core.Delivery)) *probe {
	t.Helper()
	p := &probe{t: t, atWork: map[string]int{}, most: map[string]int{}}
	ready := make(chan struct{})
	p.queue, p.stop = h.Start(t, func(string) int { return limit }, func(ctx context.Context, d core.Delivery) {
		<-ready // p.queue is set
		p.begin(d)
		defer p.end(d)
		if work != nil {
			work(p, ctx, d)
		}
	})
	close(ready)
	return p
}

func (p *probe) begin(d core.Delivery) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begun = append(p.begun, d)
	p.atWork[d.Destination]++
	p.most[d.Destination] = max(p.most[d.Destination], p.atWork[d.Destination])
}

func (p *probe) end(d core.Delivery) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.atWork[d.Destination]--
	p.ended = append(p.ended, d)
}

func (p *probe) hand(d core.Delivery) {
	p.t.Helper()
	require.NoError(p.t, p.queue.Hand(context.Background(), d), "hand")
}

// close stops the queue, which must succeed.
func (p *probe) close() {
	p.t.Helper()
	require.NoError(p.t, p.stop(context.Background()), "stop")
}

// order is what was begun, in order.
func (p *probe) order() []core.Delivery {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.begun)
}

// times is how often work on a delivery was begun.
func (p *probe) times(d core.Delivery) int {
	n := 0
	for _, b := range p.order() {
		if b == d {
			n++
		}
	}
	return n
}

// done checks that every one of some deliveries has been worked on.
func (p *probe) done(deliveries []core.Delivery) {
	p.t.Helper()
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	ended := map[core.Delivery]bool{}
	for _, d := range p.ended {
		ended[d] = true
	}
	for _, d := range deliveries {
		require.True(p.t, ended[d], "%v was never worked on; %d were, %d have begun", d, len(p.ended), len(p.begun))
	}
}

// delivery is one of the n-th group of a buffer.
func delivery(buffer string, n int, destination string) core.Delivery {
	return core.Delivery{Ref: core.Ref{Buffer: buffer, Key: fmt.Sprintf("%d/ä#", n)}, Destination: destination}
}

// deliveries are those of n groups of a buffer.
func deliveries(buffer string, n int, destination string) []core.Delivery {
	out := make([]core.Delivery, n)
	for i := range out {
		out[i] = delivery(buffer, i, destination)
	}
	return out
}
