package timer

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

func clock() core.Clock { return core.ClockFunc(func() core.Millis { return core.At(time.Now()) }) }

// However often a group's check is armed, through however many lives, it takes
// one place; each claim's due time takes one of its own.
func TestPlacesOfAGroup(t *testing.T) {
	t.Parallel()
	x := New(clock())
	at := x.clock.Now().Add(time.Hour)
	ref := core.Ref{Buffer: "b", Key: "k"}
	for i := range 10_000 {
		h := core.Hint{Ref: ref, Life: fmt.Sprintf("life%06d", i/10), At: at + core.Millis(i), Check: uint64(i%10 + 1)}
		require.NoError(t, x.Arm(t.Context(), h))
		h.At, h.Check = at+core.Millis(i%core.MaxClaims), 0
		require.NoError(t, x.Arm(t.Context(), h))
	}
	require.Len(t, x.heap, 1+core.MaxClaims)
	require.Len(t, x.byKey, 1+core.MaxClaims)
	for i, e := range x.heap {
		require.Equal(t, i, e.index)
		require.Same(t, e, x.byKey[e.key])
	}
	x.Stop()
	require.Empty(t, x.heap)
}

// A check that replaces the one before comes at its own time, be it earlier or
// later than that of the other, which comes no more.
func TestReplacedCheck(t *testing.T) {
	t.Parallel()
	for name, second := range map[string]time.Duration{"earlier": time.Second, "later": time.Hour, "at once": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				x := New(clock())
				fired := make(chan core.Hint, 10)
				x.Start(func(_ context.Context, h core.Hint) { fired <- h })
				defer x.Stop()
				begin := time.Now()
				h := core.Hint{Ref: core.Ref{Buffer: "b", Key: "k"}, Life: "l", At: core.At(begin).Add(time.Minute), Check: 1}
				require.NoError(t, x.Arm(t.Context(), h))
				synctest.Wait() // it waits for that one
				h.At, h.Check = core.At(begin).Add(second), 2
				require.NoError(t, x.Arm(t.Context(), h))
				require.Equal(t, h, <-fired)
				require.Equal(t, second, time.Since(begin))
				<-time.After(2 * time.Hour)
				require.Empty(t, fired)
			})
		})
	}
}

// The ids of lives are in order of time, unless the clock was set back. So a
// group's check comes although that of a life with a greater id waits, and the
// lives since then have one place among them.
func TestLifeFromBeforeTheClockWasSetBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		x := New(clock())
		fired := make(chan core.Hint, 10)
		x.Start(func(_ context.Context, h core.Hint) { fired <- h })
		defer x.Stop()
		now := x.clock.Now()
		hint := func(life string, check uint64, in time.Duration) core.Hint {
			h := core.Hint{Ref: core.Ref{Buffer: "b", Key: "k"}, Life: life, At: now.Add(in), Check: check}
			require.NoError(t, x.Arm(t.Context(), h))
			return h
		}
		ahead := hint("life9", 3, time.Hour)
		for _, life := range []string{"life1", "life2", "life3"} {
			hint(life, 1, 2*time.Second)
		}
		newest := hint("life3", 2, time.Second)
		hint("life3", 1, time.Millisecond)
		require.Equal(t, newest, <-fired)
		require.Equal(t, ahead, <-fired)
		require.Equal(t, time.Hour, x.clock.Now().Sub(now))
		require.Empty(t, fired, "a life that a later one has replaced comes no more")
	})
}
