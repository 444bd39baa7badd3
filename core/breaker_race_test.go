package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

// fallingBack is docked, with batches of one, a fallback and a breaker of either.
func fallingBack(of string) *core.Config {
	c := tripping(1)
	second := c.Destinations[0]
	second.Name = "second"
	c.Destinations[0].Fallbacks, c.Destinations[0].Retry.MaxAttempts = []string{"second"}, 1
	if of == "out" {
		second.Breaker = nil
	} else {
		c.Destinations[0].Breaker = nil
	}
	c.Destinations = append(c.Destinations, second)
	return c
}

func (d *dock) group(key string) core.Group {
	g, err := d.memory.Group(context.Background(), ref(key))
	require.NoError(d.t, err)
	return g
}

// try delivers a group once, as a delivery that came twice would.
func (p *ship) try(key string) {
	_, err := p.deliverer.Deliver(context.Background(), core.Delivery{Ref: ref(key), Destination: "out"})
	require.NoError(p.d.t, err)
}

// failsAtBoth has an event fail at the destination and at its fallback, and another
// wait that they would take.
func (p *ship) failsAtBoth(key string) {
	p.d.answer = func(*core.Batch) core.Response { return core.Response{Status: 500} }
	p.keys(key)
	p.work()
	require.Equal(p.d.t, []string{"out", "second"}, p.d.to)
	p.d.answer = nil
	p.keys(key)
}

// What the breaker of a fallback has let through goes nowhere else.
func TestARaceForAFallbackLeavesOtherBreakersInForce(t *testing.T) {
	t.Parallel()
	d := newDock(t)
	one, two := d.process(fallingBack("out")), d.process(fallingBack("out"))
	one.failsAtBoth("a")
	d.pass(time.Second)
	d.write = func(core.Ref) error { // when it was let through, another is faster
		d.write = nil
		two.try("a")
		return nil
	}
	one.try("a")
	require.Equal(t, []string{"out", "second", "second"}, d.to, "the breaker of the first is open")
	require.Empty(t, d.group("a").Claims)
	require.Equal(t, noon.Add(30*time.Second), d.group("a").CheckAt)
}

func TestAProbeOfAFallbackThatIsNotMadeIsAnothers(t *testing.T) {
	t.Parallel()
	d := newDock(t)
	one, two := d.process(fallingBack("second")), d.process(fallingBack("second"))
	one.failsAtBoth("a")
	d.pass(31 * time.Second)
	d.write = func(core.Ref) error {
		d.write = nil
		two.try("a") // which makes the claim wait for the probe
		return nil
	}
	one.try("a")
	require.Equal(t, "out", d.to[2], "it goes on with what is new")
	b, err := core.BreakerOf(context.Background(), d.turns, "second")
	require.NoError(t, err)
	require.False(t, b.Open(d.clock()), "the probe is free")
}

func TestAProbeGoesOnWithTheNextRows(t *testing.T) {
	c := config(breaks(1, 10*time.Second), out(func(d *core.Destination) {
		d.Timeout, d.Filter, d.Retry.Max = 5*time.Minute, "cut drop", time.Hour
	}), buf(func(b *core.Buffer) {
		b.Window = &core.WindowConfig{Every: time.Minute, MaxAhead: time.Hour}
		b.Fold = []core.FoldColumn{{Name: "n", Expr: "count"}}
		b.Batch.MaxItems = 2
	}))
	run(t, c, func(r *rig) {
		r.replies(func(string, *core.Batch) core.Response { return core.Response{Status: 503, RetryAfter: time.Hour} })
		r.put("a")
		r.at(time.Minute + time.Second)
		require.Len(t, r.sends(), 1)
		r.answers(nil)
		for _, k := range []string{"drop1", "drop2", "keep"} {
			r.put(k)
		}
		r.at(2*time.Minute + time.Second)
		require.Len(t, r.sends(), 2, "the first two rows are for nobody")
		require.Equal(t, 2*time.Minute, r.sends()[1].at)
	})
}

// However often a delivery comes, and however slow the breaker answers, a group
// is looked at again at one time, which changes once.
func TestDoubledDeliveriesWaitOnce(t *testing.T) {
	t.Parallel()
	d := newDock(t)
	p := d.process(tripping(1))
	d.answer = func(*core.Batch) core.Response { return core.Response{Status: 500} }
	p.keys("a")
	p.work()
	p.keys("b")
	twice := func(key string) {
		t.Helper()
		d.turns.fail = func() error {
			d.pass(3 * time.Millisecond)
			return nil
		}
		p.try(key)
		was := d.group(key)
		p.try(key)
		p.try(key)
		d.turns.fail = nil
		require.Equal(t, was, d.group(key))
	}
	d.pass(time.Second)
	twice("a")
	twice("b")
	require.Equal(t, noon.Add(30*time.Second), d.group("a").Claims[0].Due)
	require.Equal(t, noon.Add(30*time.Second), d.group("b").CheckAt)
	p.keys("c")
	d.pass(30 * time.Second)
	d.answer = func(*core.Batch) core.Response { // while the probe is under way
		d.answer = nil
		twice("b")
		twice("c")
		return core.Response{Status: 200}
	}
	p.try("a")
}

// hung is a coordinator that does not answer.
type hung struct{}

func (hung) Change(ctx context.Context, _ string, _ func([]byte) ([]byte, error)) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestACoordinatorThatHangsKeepsNobodyForLong(t *testing.T) {
	run(t, config(at1, breaks(3, time.Minute), limited(1, time.Second)), func(r *rig) {
		r.broken.Store(true)
		r.shared.Coordinator = hung{}
		r.put("a")
		r.at(time.Minute)
		require.Equal(t, []time.Duration{10 * time.Second}, r.times(), "5 s for each of the breaker and the limit")
		require.Empty(t, r.left())
	})
}
