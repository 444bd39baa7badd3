package core_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

// crowd counts who is at each destination at a time.
type crowd struct {
	mu      sync.Mutex
	at, top map[string]int
}

// stays is there for a while.
func (c *crowd) stays(to string, d time.Duration) {
	c.come(to, 1)
	defer c.come(to, -1)
	<-time.After(d)
}

func (c *crowd) come(to string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at == nil {
		c.at, c.top = make(map[string]int), make(map[string]int)
	}
	c.at[to] += n
	c.top[to] = max(c.top[to], c.at[to])
}

// sendsOf is how often each destination was sent something.
func sendsOf(r *rig) map[string]int {
	n := make(map[string]int)
	for _, s := range r.sends() {
		n[s.destination]++
	}
	return n
}

func only(n int) func(*core.Destination) {
	return func(d *core.Destination) { d.Concurrency = n }
}

// When a destination dies, its fallback gets no more at a time than it takes.
func TestAFallbackKeepsItsConcurrency(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 3} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			c := config(at1, fallback(1))
			c.Destinations[1].Concurrency = n
			run(t, c, func(r *rig) {
				var there crowd
				r.replies(func(to string, _ *core.Batch) core.Response {
					if to == "out" {
						return core.Response{Status: 500}
					}
					there.stays(to, 50*time.Millisecond)
					return core.Response{Status: 200}
				})
				for i := range 100 {
					r.put(fmt.Sprint(i))
				}
				r.at(20 * time.Second)
				require.Equal(t, n, there.top["second"])
				require.Equal(t, map[string]int{"out": 100, "second": 100}, sendsOf(r), "whoever waits uses up no attempt")
				busy := 100 * 50 * time.Millisecond / time.Duration(n)
				require.Less(t, r.sends()[199].at, 2*busy, "it is kept busy")
				require.Empty(t, r.deadLetters())
				require.Empty(t, r.left())
			})
		})
	}
}

// slowSecond takes 10 s for each batch at the fallback, to which all go but those of
// one group.
func slowSecond(to string, b *core.Batch) core.Response {
	switch {
	case to == "second":
		<-time.After(10 * time.Second)
	case b.Group != "well":
		return core.Response{Status: 400}
	}
	return core.Response{Status: 200}
}

// Who waits for a fallback that is slow holds up the destination for no other.
func TestASlowFallbackHoldsUpNoOtherGroup(t *testing.T) {
	c := config(at1, fallback(1), out(only(2)))
	c.Destinations[1].Concurrency = 1
	run(t, c, func(r *rig) {
		r.replies(slowSecond)
		for i := range 5 {
			r.put(fmt.Sprint(i))
		}
		for i := range 20 {
			r.at(time.Duration(i+1) * time.Second)
			r.put("well")
		}
		r.at(5 * time.Minute)
		n := 0
		for _, s := range r.sends() {
			if s.Group == "well" {
				n++
				require.Less(t, s.at, time.Duration(n)*time.Second+500*time.Millisecond)
			}
		}
		require.Equal(t, 20, n)
		require.Equal(t, map[string]int{"out": 25, "second": 5}, sendsOf(r))
		require.Empty(t, r.left())
	})
}

// Two destinations that are each other's fallbacks may be full, and still none
// waits for ever.
func TestFallbacksInACircle(t *testing.T) {
	c := config(at1, fallback(1), out(only(1)), beside("b2", func(b *core.Buffer) { b.To = "second" }))
	c.Destinations[1].Concurrency, c.Destinations[1].Fallbacks = 1, []string{"out"}
	run(t, c, func(r *rig) {
		var there crowd
		r.replies(func(to string, b *core.Batch) core.Response {
			there.stays(to, 50*time.Millisecond)
			if (to == "out") == (b.Buffer == "b") {
				return core.Response{Status: 500}
			}
			return core.Response{Status: 200}
		})
		for i := range 20 {
			r.put(fmt.Sprint(i))
		}
		r.at(time.Minute)
		require.Equal(t, map[string]int{"out": 1, "second": 1}, there.top)
		require.Equal(t, map[string]int{"out": 40, "second": 40}, sendsOf(r))
		require.Empty(t, r.deadLetters())
		require.Empty(t, r.left())
	})
}

// A claim that waits for a slot has its fallback's token only when it is sent.
func TestAFallbackKeepsConcurrencyAndRateLimit(t *testing.T) {
	c := config(at1, fallback(1))
	c.Destinations[1].Concurrency = 1
	c.Destinations[1].RateLimit = &core.RateConfig{Requests: 5, Per: time.Second}
	run(t, c, func(r *rig) {
		var there crowd
		r.replies(func(to string, _ *core.Batch) core.Response {
			if to == "out" {
				return core.Response{Status: 500}
			}
			there.stays(to, 50*time.Millisecond)
			return core.Response{Status: 200}
		})
		for i := range 50 {
			r.put(fmt.Sprint(i))
		}
		r.at(time.Minute)
		require.Equal(t, 1, there.top["second"])
		require.Equal(t, map[string]int{"out": 50, "second": 50}, sendsOf(r))
		require.Empty(t, r.left())
	})
}

// A flush waits for a slot of a fallback, too.
func TestAFlushWaitsForASlotOfAFallback(t *testing.T) {
	t.Parallel()
	d := newDock(t)
	c := docked()
	with("second")(c)
	c.Destinations[0].Fallbacks = []string{"second"}
	p := d.process(c)
	p.put(item1)
	asked := 0
	d.slot = func() error {
		if asked++; asked == 2 { // after one of the destination itself
			return core.Errorf(core.Unavailable, "none is free")
		}
		return nil
	}
	d.sleep = func(_ context.Context, by time.Duration) error {
		d.pass(by)
		return nil
	}
	d.answer = func(*core.Batch) core.Response {
		d.answer = nil
		return core.Response{Status: 400}
	}
	p.flush(core.FlushOptions{Force: true})
	require.Equal(t, []string{"out", "second"}, d.to)
	require.Empty(t, d.busyGroups())
}

// However many groups wait for a fallback, they hold up no other, and once it is free
// it is soon taken.
func TestAHundredGroupsAtASlowFallback(t *testing.T) {
	c := config(at1, fallback(1), out(only(2)))
	c.Destinations[1].Concurrency = 1
	run(t, c, func(r *rig) {
		r.replies(slowSecond)
		for i := range 100 {
			r.put(fmt.Sprint(i))
		}
		for i := range 20 {
			r.at(time.Duration(i+1) * 10 * time.Second)
			r.put("well")
		}
		r.at(20 * time.Minute)
		n, last := 0, time.Duration(0)
		for _, s := range r.sends() {
			if s.Group == "well" {
				n++
				require.Less(t, s.at, time.Duration(n)*10*time.Second+20*time.Millisecond)
			}
			last = max(last, s.at)
		}
		require.Equal(t, 20, n)
		require.Less(t, last, 1100*time.Second, "of 990 at best")
		require.Equal(t, map[string]int{"out": 120, "second": 100}, sendsOf(r))
		require.Empty(t, r.left())
	})
}
