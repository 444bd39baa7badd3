package core_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

// Every claim that waits keeps its time, over a crash as over a reload, not
// the earliest alone.
func TestEveryRetryIsArmedAgain(t *testing.T) {
	c := config(batch(1, 5*s, 15*s))
	for name, again := range map[string]func(*rig){
		"crash":  func(r *rig) { r.crash(c) },
		"reload": func(r *rig) { r.reconfigure(c) },
	} {
		t.Run(name, func(t *testing.T) {
			run(t, c, func(r *rig) {
				r.answer = func(_ string, b *core.Batch) core.Response {
					if b.Attempt == 1 {
						return core.Response{Status: 503, RetryAfter: time.Duration(b.Items[0].Seq) * 20 * s}
					}
					return core.Response{Status: 200}
				}
				for range 3 {
					r.put("k")
				}
				r.at(1 * s)
				again(r)
				r.at(time.Hour)
				require.Equal(r.t, "0.000 k 1 items #1\n0.000 k 1 items #1\n0.000 k 1 items #1\n"+
					"20.000 k 1 items #2\n40.000 k 1 items #2\n60.000 k 1 items #2", r.summary())
			})
		})
	}
}

// Stopping waits for what is being sent, and begins nothing: neither with the
// same group nor with another.
func TestStopBeginsNoSend(t *testing.T) {
	c := config(batch(1, 5*s, 15*s))
	c.Destinations[0].Concurrency = 2
	run(t, c, func(r *rig) {
		r.sendsTake(4 * s)
		for i := range 6 {
			r.put(fmt.Sprint("k", i%3))
		}
		r.at(1 * s)
		r.stopWork()
		require.Equal(r.t, 4*s, time.Since(r.begin), "no longer than the sends under way")
		require.ElementsMatch(r.t, []string{"0.000 k0 1 items #1", "0.000 k1 1 items #1"}, strings.Split(r.summary(), "\n"), "side by side")
		r.start(c)
		r.at(time.Hour)
		require.Len(r.t, r.sends(), 6)
	})
}

// A deliverer that begins when all is being stopped takes nothing.
func TestDelivererThatIsStoppedClaimsNothing(t *testing.T) {
	t.Parallel()
	m := newManual(t, config(batch(1, 5*s, 15*s)))
	m.put("k")
	ctx, stop := context.WithCancel(context.Background())
	stop()
	require.NoError(t, m.tryDeliver(ctx, ref("k")))
	require.Empty(t, m.sent)
	require.Empty(t, m.group("k").Claims)
}

// Each time a send is cut off by a stop its batch is sent again, as the same
// attempt: those that the destination never answered are not used up.
func TestStopsUseUpNoAttempt(t *testing.T) {
	c := config(batch(1, 5*s, 15*s), attempts(2, s, s))
	run(t, c, func(r *rig) {
		r.sendsTake(time.Minute)
		r.put("k")
		for i := range 5 {
			r.at(time.Duration(i+1) * s)
			r.timer.Stop()
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			require.ErrorIs(r.t, r.queue.Stop(ctx), context.Canceled)
			if i == 4 {
				r.sendsTake(0)
				r.answer = fails(503, 1)
			}
			r.start(c)
		}
		r.at(time.Hour)
		sends := r.sends()
		require.Len(r.t, sends, 7)
		for _, b := range sends[:6] {
			require.Equal(r.t, 1, b.Attempt)
			require.Equal(r.t, sends[0].ID, b.ID)
		}
		require.Equal(r.t, 2, sends[6].Attempt)
		require.Empty(r.t, r.deadLetters(), "one failure of two attempts")
	})
}

// Claims that a group has from before it became ordered are sent in order from
// then on, each when the one before it is settled.
func TestClaimsOfAGroupThatBecomesOrdered(t *testing.T) {
	c := config(batch(1, 5*s, 15*s))
	run(t, c, func(r *rig) {
		r.answer = func(_ string, b *core.Batch) core.Response {
			if b.Attempt == 1 && b.Items[0].Seq <= 3 {
				return core.Response{Status: 503, RetryAfter: time.Duration(4-b.Items[0].Seq) * 20 * s}
			}
			return core.Response{Status: 200}
		}
		for range 3 { // to be sent again at 60, 40 and 20 s
			r.put("k")
		}
		r.at(1 * s)
		r.reconfigure(config(batch(1, 5*s, 15*s), ordered))
		r.put("k")
		r.at(time.Hour)
		sends := r.sends()[3:]
		require.Len(r.t, sends, 4)
		for i, b := range sends {
			require.Equal(r.t, uint64(i+1), b.Items[0].Seq)
			require.Equal(r.t, time.Minute, b.at)
		}
	})
}
