package core_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sluice/core"
)

// edge is randomness at one end of its range; it notes what it was asked for.
type edge struct {
	high  bool
	asked []int64
}

func (e *edge) Int64N(n int64) int64 {
	e.asked = append(e.asked, n)
	if e.high {
		return n - 1
	}
	return 0
}

func TestWaitDoubles(t *testing.T) {
	t.Parallel()
	p := core.RetryPolicy{MaxAttempts: 1000, Initial: time.Second, Max: time.Minute}
	for _, c := range []struct {
		attempts int
		longest  time.Duration
	}{
		{0, time.Second}, {1, time.Second}, {2, 2 * time.Second}, {3, 4 * time.Second}, {6, 32 * time.Second},
		{7, time.Minute}, {8, time.Minute}, {64, time.Minute}, {65, time.Minute}, {1000, time.Minute},
	} {
		require.Equal(t, c.longest, p.Wait(c.attempts, 0, &edge{high: true}), "longest after %d", c.attempts)
		require.Zero(t, p.Wait(c.attempts, 0, &edge{}), "shortest after %d: full jitter", c.attempts)
	}
}

func TestWaitAsked(t *testing.T) {
	t.Parallel()
	p := core.RetryPolicy{MaxAttempts: 20, Initial: time.Second, Max: 15 * time.Minute}
	for asked, want := range map[time.Duration]time.Duration{
		time.Nanosecond:      time.Nanosecond,
		3 * time.Second:      3 * time.Second,
		15 * time.Minute:     15 * time.Minute,
		15*time.Minute + 1:   15 * time.Minute,
		365 * 24 * time.Hour: 15 * time.Minute,
		math.MaxInt64:        15 * time.Minute,
	} {
		r := &edge{high: true}
		require.Equal(t, want, p.Wait(5, asked, r), "asked for %v", asked)
		require.Empty(t, r.asked, "what was asked for has no jitter")
	}
	require.Equal(t, time.Second, p.Wait(1, -time.Hour, &edge{high: true}), "a time that has passed is not asked for")
}

func TestWaitBounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		duration := rapid.Int64Range(0, int64(100*365*24*time.Hour)) // far beyond what a configuration may say
		p := core.RetryPolicy{
			Initial: time.Duration(duration.Draw(t, "initial")),
			Max:     time.Duration(duration.Draw(t, "max")),
		}
		attempts := rapid.IntRange(0, 1000).Draw(t, "attempts")
		longest := p.Wait(attempts, 0, &edge{high: true})
		require.GreaterOrEqual(t, longest, time.Duration(0))
		require.LessOrEqual(t, longest, p.Max)
		require.GreaterOrEqual(t, longest, min(p.Initial, p.Max))
		require.GreaterOrEqual(t, p.Wait(attempts+1, 0, &edge{high: true}), longest, "bounds never shrink")
	})
}

// TestWaitJitter shows that waits spread over the whole range, evenly.
func TestWaitJitter(t *testing.T) {
	t.Parallel()
	const n, tenths = 10_000, 10
	p := core.RetryPolicy{MaxAttempts: 20, Initial: time.Second, Max: time.Minute}
	r := rand.New(rand.NewPCG(1, 2))
	var hits [tenths]int
	for range n {
		wait := p.Wait(4, 0, r)
		require.LessOrEqual(t, wait, 8*time.Second)
		hits[min(int(wait*tenths/(8*time.Second)), tenths-1)]++
	}
	for i, h := range hits {
		require.InDelta(t, n/tenths, h, 150, "tenth %d of the range", i)
	}
}
