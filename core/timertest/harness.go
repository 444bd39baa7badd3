package timertest

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

// Harness is how the suite gets at the timers of one adapter.
type Harness struct {
	Name string // of the adapter

	// Start starts a new timer that hands its hints to fire, inside the
	// bubble, where time.Now tells the bubble's time. stop ends it: it returns
	// when no fire is running, and none begins afterwards. The suite stops
	// every timer once.
	Start func(t *testing.T, fire func(context.Context, core.Hint)) (timer core.Timer, stop func())

	// Late is how long after its time a hint may come; 0: it comes on time.
	Late time.Duration
}

// test is one case of the suite.
type test struct {
	name string
	run  func(t *testing.T, h *Harness)
}

// Run runs every case against new timers of h, and logs how many there were.
func Run(t *testing.T, h Harness) {
	t.Helper()
	var ran atomic.Int64
	t.Cleanup(func() { t.Logf("timertest: %s: %d cases", h.Name, ran.Load()) })
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { c.run(t, &h) })
			ran.Add(1)
		})
	}
}

// now is the bubble's time.
func now() core.Millis { return core.At(time.Now()) }

// pass lets the bubble's time go on, and what then fires be done.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// probe is a timer under test and what it has fired.
type probe struct {
	t     *testing.T
	h     *Harness
	timer core.Timer
	stop  func()

	mu    sync.Mutex
	fired []core.Hint               // in the order they came
	first map[core.Hint]core.Millis // when each came first
}

// start starts a timer. then, if not nil, is what each fire does further.
func start(t *testing.T, h *Harness, then func(*probe, context.Context, core.Hint)) *probe {
	t.Helper()
	p := &probe{t: t, h: h, first: map[core.Hint]core.Millis{}}
	ready := make(chan struct{})
	p.timer, p.stop = h.Start(t, func(ctx context.Context, hint core.Hint) {
		<-ready // p.timer is set
		p.mu.Lock()
		p.fired = append(p.fired, hint)
		if _, again := p.first[hint]; !again {
			p.first[hint] = now()
		}
		p.mu.Unlock()
		if then != nil {
			then(p, ctx, hint)
		}
	})
	close(ready)
	return p
}

func (p *probe) arm(h core.Hint) {
	p.t.Helper()
	require.NoError(p.t, p.timer.Arm(context.Background(), h), "arm")
}

// came reports whether and when a hint came first.
func (p *probe) came(h core.Hint) (core.Millis, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, ok := p.first[h]
	return at, ok
}

// all is how often any hint came.
func (p *probe) all() int { return len(p.order()) }

// order is what came, in order.
func (p *probe) order() []core.Hint {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.fired)
}

// onTime checks that a hint has come at or after its time, and no later than
// the adapter may be. armed is when it was armed.
func (p *probe) onTime(h core.Hint, armed core.Millis) {
	p.t.Helper()
	at, ok := p.came(h)
	due := max(h.At, armed)
	switch {
	case !ok:
		require.Fail(p.t, "a hint was lost", "%v never came; %d did", h, p.all())
	case at < due:
		require.Fail(p.t, "a hint came early", "%v came at %v", h, at)
	case at > due.Add(p.h.Late):
		require.Fail(p.t, "a hint came late", "%v came at %v", h, at)
	}
}

// hint is a hint of a group, so long from now.
func hint(key string, in time.Duration) core.Hint {
	return core.Hint{Ref: core.Ref{Buffer: "orders", Key: key}, Life: "life-of-" + key, At: now().Add(in)}
}
