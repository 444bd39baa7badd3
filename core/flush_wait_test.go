package core_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

// spared gives a configuration's destination a fallback like it.
func spared(c *core.Config, change func(first, second *core.Destination)) *core.Config {
	second := c.Destinations[0]
	second.Name = "second"
	c.Destinations = append(c.Destinations, second)
	c.Destinations[0].Fallbacks = []string{"second"}
	change(&c.Destinations[0], &c.Destinations[1])
	return c
}

// A token of a fallback that comes too late keeps its own group alone from leaving.
func TestAFarTokenOfAFallbackCutsNobodyOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDock(t)
		d.ticking()
		c := spared(docked(func(b *core.Buffer) { b.Batch.MaxItems = 1 }), func(first, second *core.Destination) {
			first.Concurrency = 2
			second.RateLimit = &core.RateConfig{Requests: 1, Per: time.Hour}
		})
		p := d.process(c)
		d.answer = func(b *core.Batch) core.Response {
			if b.Group != "z" {
				return core.Response{Status: 400}
			}
			<-time.After(time.Second) // while nothing else is left to do
			return core.Response{Status: 200}
		}
		p.keys("a", "b") // one of them has the one token
		p.keys(slices.Repeat([]string{"z"}, 10)...)
		ctx, cancel := context.WithDeadline(context.Background(), noon.Add(100*s).Time())
		defer cancel()
		r := p.flushWithin(ctx, core.FlushOptions{Final: true})
		require.Error(t, r.Err)
		require.Equal(t, 10, r.Written.Rows)
		left := d.busyGroups()
		require.Len(t, left, 1)
		require.Contains(t, []string{"a", "b"}, left[0])
		require.Equal(t, core.Turn{}, d.turn(), "it had not the time for all")
		require.True(t, slices.ContainsFunc(d.armed, func(h core.Hint) bool {
			return h.Ref.Key == left[0] && h.Check == 0 && h.At == noon.Add(time.Hour)
		}), "it leaves by itself when its token comes")
	})
}

// Whatever a flush waited for when it ended has a hint, though its token has just
// come; and they don't wait for each other to get theirs.
func TestWhatAFlushLeavesHasAHint(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDock(t)
		p := d.process(rationed(1, time.Minute))
		p.keys(twoDigits(100)...)
		ctx, cancel := context.WithCancel(context.Background())
		d.sleep = func(_ context.Context, by time.Duration) error {
			if d.pass(by); d.clock() >= noon.Add(time.Minute) {
				cancel()
			}
			return nil
		}
		d.armed, d.arm = nil, func() { <-time.After(100 * time.Millisecond) }
		begin := time.Now()
		require.Equal(t, 1, p.flush(core.FlushOptions{While: ctx}).Rows)
		require.Less(t, time.Since(begin), 3*time.Second)
		require.Len(t, d.busyGroups(), 99)
		for _, key := range d.busyGroups() {
			due := d.group(key).Claims[0].Due
			require.True(t, slices.ContainsFunc(d.armed, func(h core.Hint) bool { return h.Ref.Key == key && h.At == due }), key)
		}
	})
}

// While a fallback's breaker is open, so that what waits for it stays, a flush
// waits for the tokens of what is new all the same: it claims one after the other.
func TestAFlushOfWhatIsNewWaitsForItsTokens(t *testing.T) {
	t.Parallel()
	d := newDock(t)
	at := d.ticking()
	c := spared(rationed(1, time.Minute), func(_, second *core.Destination) {
		second.RateLimit, second.Breaker = nil, &core.BreakerConfig{Failures: 1, Cooldown: time.Hour}
	})
	p := d.process(c)
	tick := d.answer
	d.answer = func(b *core.Batch) core.Response {
		switch {
		case d.to[len(d.to)-1] == "second":
			return core.Response{Status: 500}
		case strings.HasSuffix(b.ID, "-1"):
			return core.Response{Status: 400}
		}
		require.Len(t, d.group("k").Claims, 2, "the one of the fallback, and its own")
		return tick(b)
	}
	p.keys("k", "k")
	require.Error(t, p.flush(core.FlushOptions{}).Err)
	require.Equal(t, []string{"out", "second"}, d.to)
	d.pass(10 * time.Minute)
	begin := d.clock()
	p.keys(slices.Repeat([]string{"k"}, 60)...)
	r := p.flush(core.FlushOptions{Final: true, Force: true})
	require.ErrorContains(t, r.Err, "the breaker of destination second is open")
	require.Equal(t, 60, r.Written.Rows)
	require.Nil(t, r.Recovered)
	require.Len(t, *at, 30)
	require.Equal(t, 29*time.Minute, d.clock().Sub(begin))
	require.Len(t, d.group("k").Claims, 1)
}
