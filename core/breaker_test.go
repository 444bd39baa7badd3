package core_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

func breaks(failures int, cooldown time.Duration) func(*core.Config) {
	return out(func(d *core.Destination) {
		d.Breaker = &core.BreakerConfig{Failures: failures, Cooldown: cooldown}
	})
}

func (r *rig) breaker() core.Breaker {
	b, err := core.BreakerOf(context.Background(), r.shared.Coordinator, "out")
	require.NoError(r.t, err)
	return b
}

func TestTheBreakerOpensAndCloses(t *testing.T) {
	run(t, config(at1, breaks(3, 30*time.Second)), func(r *rig) {
		r.answers(map[string]int{"out": 500})
		for i := range 5 { // a group each, one after the other
			r.at(time.Duration(i) * time.Millisecond)
			r.put(fmt.Sprint(i))
		}
		r.at(time.Second)
		require.Len(t, r.sends(), 3, "then it is open")
		opened := r.sends()[2].at
		b := r.breaker()
		require.True(t, b.Open(core.At(r.begin.Add(time.Second))))
		for _, k := range []string{"3", "4"} {
			g, err := r.store.Group(context.Background(), core.Ref{Buffer: "b", Key: k})
			require.NoError(t, err)
			require.Empty(t, g.Claims, "no claim is opened while it is")
			require.Equal(t, core.At(r.begin.Add(opened+30*time.Second)), g.CheckAt)
		}
		r.at(29 * time.Second)
		require.Len(t, r.sends(), 3)

		r.at(31 * time.Second)
		require.Len(t, r.sends(), 4, "one probe after the cooldown, which fails")
		require.Equal(t, opened+30*time.Second, r.sends()[3].at)
		require.False(t, r.breaker().Probing, "it is over")
		r.answers(nil)
		r.at(opened + 60*time.Second - time.Millisecond)
		require.Len(t, r.sends(), 4)
		r.at(95 * time.Second)
		require.Empty(t, r.left(), "it leaves within a cooldown after it has closed")
		require.Equal(t, []string{"true", "false"}, r.told.order, "a failed probe is no news")
		most := map[string]int{}
		for _, s := range r.sends() {
			most[s.Group] = max(most[s.Group], s.Attempt)
		}
		for k, n := range most {
			require.LessOrEqual(t, n, 3, "waiting is no attempt: %s", k)
		}
	})
}

func TestFailuresCountInARow(t *testing.T) {
	run(t, config(at1, breaks(3, 30*time.Second)), func(r *rig) {
		statuses := []int{500, 500, 200, 500, 500, 400, 500, 500}
		r.replies(func(_ string, b *core.Batch) core.Response {
			if b.Attempt > 1 {
				return core.Response{Status: 200}
			}
			status := statuses[0]
			statuses = statuses[1:]
			return core.Response{Status: status}
		})
		for i := range statuses {
			r.at(time.Duration(i) * time.Minute)
			r.put(fmt.Sprint(i))
		}
		r.at(time.Hour)
		require.Empty(t, r.told.order, "a permanent answer shows that it lives")
		require.Len(t, r.deadLetters(), 1)
	})
}

func TestOneProbeOfAllProcesses(t *testing.T) {
	t.Parallel()
	d := newDock(t)
	c := tripping(2)
	one, two := d.process(c), d.process(c)
	d.answer = func(*core.Batch) core.Response { return core.Response{Status: 500} }
	one.keys("a", "b", "c", "d", "e")
	one.work()
	require.Len(t, d.taken(), 2)
	two.work()
	require.Empty(t, d.taken(), "it is open for all processes")

	d.pass(30 * time.Second)
	nested := 0
	d.answer = func(*core.Batch) core.Response {
		if nested++; nested == 1 { // while the probe is under way
			two.work()
		}
		return core.Response{Status: 500}
	}
	one.work()
	require.Len(t, d.taken(), 1, "exactly one")

	d.pass(30 * time.Second)
	d.answer = nil
	two.work()
	require.NotEmpty(t, d.taken(), "it succeeds, and closes")
	for range 3 {
		d.pass(30 * time.Second)
		one.work()
	}
	require.Empty(t, d.busyGroups())
	d.pass(time.Hour)
}

// tripping is docked, with batches of one that leave at once to a destination
// with a breaker.
func tripping(failures int) *core.Config {
	c := docked(func(b *core.Buffer) { b.FlushEvery, b.Batch.MaxItems = 0, 1 })
	c.Destinations[0].Breaker = &core.BreakerConfig{Failures: failures, Cooldown: 30 * time.Second}
	c.Destinations[0].Retry = core.RetryPolicy{MaxAttempts: 20, Initial: time.Second, Max: time.Second}
	return c
}

func TestAProbeWhoseDelivererDies(t *testing.T) {
	c := config(at1, breaks(1, 10*time.Second))
	run(t, c, func(r *rig) {
		r.shared.fail = func() error { // what is dead tells it nothing
			if r.dead.Load() {
				return core.Errorf(core.Unavailable, "dead")
			}
			return nil
		}
		r.answers(map[string]int{"out": 500})
		r.put("a")
		r.at(time.Millisecond)
		r.put("b")
		r.sendsTake(time.Hour)
		r.answers(nil)
		r.at(11 * time.Second)
		require.Len(t, r.sends(), 2, "the probe is under way")
		require.True(t, r.breaker().Probing)
		r.sendsTake(0)
		r.broken.Store(true)
		r.crash(c)
		r.broken.Store(false)
		r.at(39 * time.Second)
		require.Len(t, r.sends(), 2, "its lease is the timeout and 15 s")
		r.at(65 * time.Second)
		require.Len(t, r.sends(), 4)
		require.Empty(t, r.left())
	})
}

// A probe that is cut off has shown nothing: the next process need not wait for
// the end of its lease.
func TestAProbeThatIsCutOffIsAnothers(t *testing.T) {
	c := config(at1, breaks(1, 10*time.Second))
	run(t, c, func(r *rig) {
		r.answers(map[string]int{"out": 500})
		r.put("a")
		r.at(time.Second)
		r.answers(nil)
		r.sendsTake(time.Hour)
		r.at(11 * time.Second)
		require.Len(t, r.sends(), 2, "the probe is under way")
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = r.queue.Stop(ctx)
		r.timer.Stop()
		require.False(t, r.breaker().Probing)
		r.sendsTake(0)
		r.start(c)
		r.at(12 * time.Second)
		require.Len(t, r.sends(), 3)
		require.Empty(t, r.left())
	})
}

func TestAQuickProbeKeepsNobodyForItsLease(t *testing.T) {
	run(t, config(at1, breaks(1, time.Second), out(func(d *core.Destination) { d.Timeout = 5 * time.Minute })), func(r *rig) {
		r.answers(map[string]int{"out": 500})
		r.put("0")
		r.at(time.Millisecond)
		r.answers(nil)
		r.sendsTake(50 * time.Millisecond)
		for i := range 100 {
			r.put(fmt.Sprint(i + 1))
		}
		r.at(4 * time.Second)
		require.Empty(t, r.left())
		require.Equal(t, []string{"true", "false"}, r.told.order, "no herd opens it again")
	})
}

// case 8 of what users of such systems report.
func TestABrokenDestinationDelaysNoOther(t *testing.T) {
	const groups = 1000
	c := config(at1, breaks(10, 30*time.Second), with("healthy"),
		func(c *core.Config) {
			c.Sources = append(c.Sources, core.Source{Name: "in2", Type: core.TypeHTTP, MaxEventBytes: core.MiB})
		},
		beside("healthy", func(b *core.Buffer) { b.From, b.To = []string{"in2"}, "healthy" }))
	run(t, c, func(r *rig) {
		r.sendsTake(10 * time.Millisecond)
		r.answers(map[string]int{"out": 500})
		keys := make([]string, groups)
		for i := range keys {
			keys[i] = fmt.Sprintf(`{"k":"%d"}`, i)
		}
		r.post(keys...)
		begin := make(map[string]time.Duration)
		for i := range 100 {
			at := time.Duration(i) * 700 * time.Millisecond
			r.at(at)
			begin[fmt.Sprint(i)] = at
			_, err := r.ingester.Ingest(context.Background(), "in2", []core.Event{{Body: fmt.Appendf(nil, `{"k":"%d"}`, i)}})
			require.NoError(t, err)
		}
		r.at(71 * time.Second)
		healthy, failing := 0, 0
		for _, s := range r.sends() {
			if s.destination == "healthy" {
				healthy++
				require.Equal(t, begin[s.Group], s.at, "as if the other did not exist")
			} else {
				failing++
			}
		}
		require.Equal(t, 100, healthy)
		require.LessOrEqual(t, failing, 10+16+3, "those under way when it opened, and the probes")

		r.answers(nil)
		r.at(71*time.Second + 30*time.Second + 30*time.Second + time.Second)
		require.Empty(t, r.left(), "a cooldown until the probe, and one more for all")
		require.LessOrEqual(t, r.most(), 17)
		require.Equal(t, []string{"true", "false"}, r.told.order)
		require.Empty(t, r.deadLetters())
	})
}

func TestABreakerThatCannotBeAskedKeepsNobody(t *testing.T) {
	run(t, config(at1, breaks(1, 30*time.Second), limited(1, time.Hour)), func(r *rig) {
		r.broken.Store(true)
		r.shared.fail = func() error { return core.Errorf(core.Unavailable, "down") }
		r.answers(map[string]int{"out": 500})
		for i := range 5 {
			r.put(fmt.Sprint(i))
		}
		r.at(time.Second)
		require.GreaterOrEqual(t, len(r.sends()), 5)
		r.answers(nil)
		r.at(time.Minute)
		require.Empty(t, r.left())
	})
}

func TestAFallbacksBreaker(t *testing.T) {
	run(t, config(at1, fallback(1), out(func(d *core.Destination) { d.Retry.MaxAttempts = 1 }), func(c *core.Config) {
		c.Destinations[1].Retry.MaxAttempts = 20
		c.Destinations[1].Breaker = &core.BreakerConfig{Failures: 1, Cooldown: time.Minute}
	}), func(r *rig) {
		r.answers(map[string]int{"out": 400, "second": 500})
		r.put("a")
		r.at(time.Second)
		r.put("b")
		r.at(2 * time.Second)
		require.Equal(t, lines(`0.000 out #1 {"k":"a"}`, `0.000 second #1 {"k":"a"}`, `1.000 out #1 {"k":"b"}`), r.trail())
		r.answers(map[string]int{"second": 200})
		r.put("c")
		r.at(3 * time.Second)
		require.Len(t, r.sends(), 4, "what goes to the destination does not wait")
		r.at(3 * time.Minute)
		require.Empty(t, r.left())
		for _, s := range r.sends()[4:] {
			require.Equal(t, "second", s.destination)
			require.GreaterOrEqual(t, s.at, time.Minute)
		}
	})
}

func TestAFlushAndAnOpenBreaker(t *testing.T) {
	t.Parallel()
	d := newDock(t)
	c := tripping(1)
	p := d.process(c)
	d.answer = func(*core.Batch) core.Response { return core.Response{Status: 500} }
	p.keys("a", "b")
	p.work()
	require.Len(t, d.taken(), 1)
	for _, o := range []core.FlushOptions{{}, {Force: true}, {Final: true}} {
		d.pass(time.Millisecond)
		r := p.flush(o)
		require.Error(t, r.Err)
		require.Contains(t, core.DetailOf(r.Err), "breaker of destination out")
		require.Empty(t, d.taken())
	}
}

func TestAFlushGoesOnBesideAFallbacksBreaker(t *testing.T) {
	t.Parallel()
	d := newDock(t)
	c := tripping(1)
	second := c.Destinations[0]
	second.Name = "second"
	c.Destinations[0].Breaker, c.Destinations[0].Fallbacks = nil, []string{"second"}
	c.Destinations[0].Retry.MaxAttempts = 1
	c.Destinations = append(c.Destinations, second)
	p := d.process(c)
	d.answer = func(*core.Batch) core.Response { return core.Response{Status: 500} }
	p.keys("a")
	p.work()
	require.Len(t, d.taken(), 2)
	d.answer = nil
	p.keys("a", "b")
	d.pass(time.Millisecond)
	r := p.flush(core.FlushOptions{Force: true})
	require.Contains(t, core.DetailOf(r.Err), "breaker of destination second")
	require.Equal(t, []string{"out", "second", "out", "out"}, d.to, "what is new has left")
	require.Equal(t, []string{"a"}, d.busyGroups())
}

func TestABreakerAndAClockThatWasSetBack(t *testing.T) {
	t.Parallel()
	d := newDock(t)
	p := d.process(tripping(1))
	d.answer = func(*core.Batch) core.Response { return core.Response{Status: 500} }
	p.keys("a")
	p.work()
	d.pass(-time.Hour)
	d.answer = nil
	p.keys("b")
	p.work()
	d.taken()
	d.pass(time.Minute)
	p.work()
	require.Empty(t, slices.DeleteFunc(d.busyGroups(), func(k string) bool { return k == "a" }))
}

func TestAProbeThatWaitsForATokenIsAnothers(t *testing.T) {
	run(t, config(at1, breaks(1, 10*time.Second), limited(1, time.Minute), out(func(d *core.Destination) { d.Timeout = 5 * time.Minute })), func(r *rig) {
		r.answers(map[string]int{"out": 500})
		r.burst(5)
		r.at(time.Second)
		r.answers(nil)
		r.at(5*time.Minute + time.Second)
		require.Equal(t, []time.Duration{0, time.Minute}, r.times()[:2], "as soon as there is one")
		r.at(15 * time.Minute)
		require.Empty(t, r.left())
		times := r.times()
		require.Len(t, times, 6)
		for i := 1; i < len(times); i++ {
			require.GreaterOrEqual(t, times[i]-times[i-1], time.Minute)
		}
	})
}

func TestAProbeOfWhatNobodyWantsIsAnothers(t *testing.T) {
	run(t, config(at1, breaks(1, 10*time.Second), out(func(d *core.Destination) {
		d.Timeout, d.Filter, d.Retry.Max = 5*time.Minute, "cut drop", time.Second
	})), func(r *rig) {
		r.answers(map[string]int{"out": 500})
		r.put("a")
		r.at(time.Second)
		r.answers(nil)
		r.put("drop")
		r.at(30 * time.Second)
		require.Empty(t, r.left())
		require.Len(t, r.sends(), 2)
	})
}
