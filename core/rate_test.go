package core_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sluice/core"
)

func limited(requests int, per time.Duration) func(*core.Config) {
	return out(func(d *core.Destination) { d.RateLimit = &core.RateConfig{Requests: requests, Per: per} })
}

// times is when sends began, sorted.
func (r *rig) times() []time.Duration {
	var at []time.Duration
	for _, s := range r.sends() {
		at = append(at, s.at)
	}
	slices.Sort(at)
	return at
}

// burst sends events of so many groups at once.
func (r *rig) burst(n int) {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf(`{"k":"%d"}`, i)
	}
	r.post(keys...)
}

func TestARateLimitOverABurst(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		requests int
		per      time.Duration
	}{{1, 100 * time.Millisecond}, {4, time.Second}, {3, time.Second}, {1, time.Minute}, {2000, time.Second}, {3000, time.Second}} {
		t.Run(fmt.Sprintf("%d per %s", tt.requests, tt.per), func(t *testing.T) {
			run(t, config(at1, limited(tt.requests, tt.per), out(func(d *core.Destination) { d.Concurrency = 1000 })), func(r *rig) {
				n := tt.requests + min(tt.requests, 500) + 5
				r.burst(n)
				r.at(10 * tt.per)
				times := r.times()
				require.Len(t, times, n)
				each := tt.per.Microseconds() * 1000 / int64(tt.requests)
				for i, at := range times {
					want := time.Duration(max(0, int64(i-tt.requests+1)*each))
					require.GreaterOrEqual(t, at, want, "send %d", i)
					require.LessOrEqual(t, at, want+3*time.Millisecond, "send %d", i)
				}
				require.Empty(t, r.left())
			})
		})
	}
}

func TestIdleCreditIsOneBurst(t *testing.T) {
	run(t, config(at1, limited(10, time.Second), out(func(d *core.Destination) { d.Concurrency = 100 })), func(r *rig) {
		r.at(time.Hour)
		r.burst(30)
		r.at(time.Hour + 2*time.Second)
		times := r.times()
		require.Len(t, times, 30)
		require.Equal(t, time.Hour, times[9])
		require.Equal(t, time.Hour+100*time.Millisecond, times[10])
		require.Equal(t, time.Hour+2*time.Second, times[29])
	})
}

func TestAWaitForATokenIsOnTheRecord(t *testing.T) {
	c := config(at1, limited(1, 10*time.Second))
	run(t, c, func(r *rig) {
		r.post(`{"k":"a"}`, `{"k":"a"}`, `{"k":"a"}`)
		r.at(time.Second)
		g := r.only("b")
		require.Len(t, g.Claims, 2)
		for i, claim := range g.Claims {
			require.False(t, claim.Held(), "no worker waits")
			require.True(t, claim.Token)
			require.Zero(t, claim.Attempt)
			require.Equal(t, core.At(r.begin.Add(time.Duration(i+1)*10*time.Second)), claim.Due)
		}
		r.crash(c)
		r.at(time.Minute)
		require.Equal(t, []time.Duration{0, 10 * time.Second, 20 * time.Second}, r.times())
		require.Equal(t, []int{1, 1, 1}, numbers(r))
	})
}

func TestARetryTakesATokenOfItsOwn(t *testing.T) {
	run(t, config(at1, limited(1, 10*time.Second), out(func(d *core.Destination) { d.Retry.Max = time.Second })), func(r *rig) {
		r.replies(func(_ string, b *core.Batch) core.Response {
			if b.Attempt == 3 {
				return core.Response{Status: 200}
			}
			return core.Response{Status: 500}
		})
		r.put("a")
		r.at(time.Minute)
		require.Equal(t, []time.Duration{0, 10 * time.Second, 20 * time.Second}, r.times())
	})
}

func TestOrderUnderARateLimit(t *testing.T) {
	run(t, config(at1, ordered, limited(1, time.Second)), func(r *rig) {
		var want []string
		for i := range 5 {
			body := fmt.Sprintf(`{"k":"a","i":%d}`, i)
			want = append(want, body)
			r.post(body)
		}
		r.at(time.Minute)
		var got []string
		for _, s := range r.sends() {
			got = append(got, bodies(s.Items)...)
		}
		require.Equal(t, want, got)
		require.Equal(t, []time.Duration{0, time.Second, 2 * time.Second, 3 * time.Second, 4 * time.Second}, r.times())
	})
}

func TestALongQueueForTokens(t *testing.T) {
	const n = 1500 // more than a claim may be told to wait for
	run(t, config(at1, limited(1, time.Second)), func(r *rig) {
		r.burst(n)
		r.at(2 * time.Hour)
		times := r.times()
		require.Len(t, times, n)
		for i := range times {
			require.GreaterOrEqual(t, times[i], time.Duration(i)*time.Second, "send %d", i)
		}
		require.LessOrEqual(t, times[n-1], (n+2)*time.Second, "no token is wasted")
	})
}

func TestTokensThatCameWhileNobodySent(t *testing.T) {
	c := config(at1, limited(2, 2*time.Second))
	run(t, c, func(r *rig) {
		r.burst(20)
		r.at(500 * time.Millisecond)
		r.stopWork()
		<-time.After(time.Hour)
		r.start(c)
		r.at(2 * time.Hour)
		times := r.times()
		require.Len(t, times, 20)
		for i := 2; i+3 < len(times); i++ {
			require.GreaterOrEqual(t, times[i+3]-times[i], time.Second, "no more than one burst of two: %v", times)
		}
	})
}

func TestTwoProcessesShareARateLimit(t *testing.T) {
	t.Parallel()
	d := newDock(t)
	c := docked(func(b *core.Buffer) { b.FlushEvery, b.Batch.MaxItems = 0, 1 })
	c.Destinations[0].RateLimit = &core.RateConfig{Requests: 2, Per: time.Second}
	ships := []*ship{d.process(c), d.process(c)}
	var keys []string
	for i := range 12 {
		keys = append(keys, fmt.Sprintf("%02d", i))
	}
	ships[0].keys(keys...)
	var at []time.Duration
	for ms := 0; ms < 10_000; ms += 100 {
		ships[ms/100%2].work()
		for range d.taken() {
			at = append(at, time.Duration(ms)*time.Millisecond)
		}
		d.pass(100 * time.Millisecond)
	}
	require.Len(t, at, 12)
	for i, got := range at {
		require.Equal(t, time.Duration(max(0, i-1))*500*time.Millisecond, got)
	}
}

func TestAFlushTakesNoTokenEarly(t *testing.T) {
	t.Parallel()
	d := newDock(t)
	c := docked(func(b *core.Buffer) { b.FlushEvery, b.Batch.MaxItems = 0, 1 })
	c.Destinations[0].RateLimit = &core.RateConfig{Requests: 1, Per: time.Minute}
	p := d.process(c)
	p.keys("a", "b", "c")
	p.work()
	require.Len(t, d.taken(), 1)
	for range 10 {
		p.flush(core.FlushOptions{Force: true})
		require.Empty(t, d.taken())
	}
	for range 2 {
		d.pass(time.Minute)
		p.work()
		require.Len(t, d.taken(), 1, "nor has it lost any")
	}
	require.Empty(t, d.busyGroups())
}

func TestATokenDoesNotOutliveAnOpenBreaker(t *testing.T) {
	run(t, config(at1, breaks(1, 10*time.Second), limited(1, time.Second)), func(r *rig) {
		r.answers(map[string]int{"out": 500})
		r.burst(8)
		r.at(20 * time.Second)
		r.answers(nil)
		r.at(5 * time.Minute)
		require.Empty(t, r.left())
		times := r.times()
		for i := 1; i < len(times); i++ {
			require.GreaterOrEqual(t, times[i]-times[i-1], time.Second, "%v", times)
		}
	})
}

func TestRateNeverLetsTooManyThrough(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := &core.RateConfig{
			Requests: rapid.IntRange(1, 5000).Draw(t, "requests"),
			Per:      time.Duration(rapid.IntRange(100, 10_000).Draw(t, "per")) * time.Millisecond,
		}
		var r core.Rate
		now := noon
		var at []core.Millis
		for range rapid.IntRange(1, 300).Draw(t, "asked") {
			now += core.Millis(rapid.SampledFrom([]int{0, 0, 0, 1, 3, 1000}).Draw(t, "pass"))
			wait, taken := r.Take(c, time.Minute, now)
			require.LessOrEqual(t, wait, time.Minute)
			if taken {
				at = append(at, now.Add(wait))
			}
		}
		require.True(t, slices.IsSorted(at), "first come, first served")
		for i := range at {
			for _, periods := range []int{1, 2} {
				if j := i + c.Requests*(periods+1); j < len(at) {
					require.GreaterOrEqual(t, at[j].Sub(at[i])+time.Millisecond, time.Duration(periods)*c.Per)
				}
			}
		}
	})
}

func TestARateAndAClockThatWasSetBack(t *testing.T) {
	t.Parallel()
	var r core.Rate
	c := &core.RateConfig{Requests: 1, Per: time.Second}
	for range 100 {
		r.Take(c, time.Hour, noon)
	}
	wait, taken := r.Take(c, time.Hour, noon.Add(-30*time.Second))
	require.True(t, taken)
	require.Equal(t, 130*time.Second, wait, "another process's clock")
	wait, _ = r.Take(c, time.Hour, noon.Add(-time.Hour))
	require.Zero(t, wait)
}

func TestAReplayKeepsToARateLimit(t *testing.T) {
	run(t, config(at1, limited(2, 2*time.Second)), func(r *rig) {
		r.answers(map[string]int{"out": 400})
		r.burst(6)
		r.at(time.Minute)
		require.Len(t, r.deadLetters(), 6)
		r.answers(nil)
		r.broken.Store(true) // that there is no time for the last one is told
		report, err := r.replayer.Replay(context.Background(), core.ReplayRequest{Budget: 3500 * time.Millisecond})
		require.NoError(t, err)
		require.Equal(t, 5, report.Replayed)
		require.Equal(t, 1, report.Failed, "there was no time for it")
		require.Equal(t, 1, report.Left)
		times := r.times()
		for i, want := range []time.Duration{0, 0, 1, 2, 3} {
			require.Equal(t, time.Minute+want*time.Second, times[6+i])
		}
	})
}
