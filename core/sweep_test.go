package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

func TestSweepFindsWhatHintsLost(t *testing.T) {
	t.Run("a check", func(t *testing.T) {
		run(t, config(batch(50, 5*s, 15*s)), func(r *rig) {
			r.lost.Store(true)
			r.put("k")
			r.at(time.Minute)
			require.Empty(t, r.sends())
			n, err := r.sweeper.Sweep(context.Background())
			require.NoError(t, err)
			require.Equal(t, 1, n)
			r.at(2 * time.Minute)
			require.Equal(t, "60.000 k 1 wait #1", r.summary())
		})
	})
	t.Run("a retry", func(t *testing.T) {
		run(t, config(batch(1, 5*s, 15*s)), func(r *rig) {
			r.answer = fails(503, 1)
			r.lost.Store(true)
			r.put("k")
			r.at(time.Minute)
			require.Len(t, r.sends(), 1)
			_, err := r.sweeper.Sweep(context.Background())
			require.NoError(t, err)
			r.at(2 * time.Minute)
			require.Len(t, r.sends(), 2)
		})
	})
	t.Run("nothing that is not due", func(t *testing.T) {
		run(t, config(batch(50, 5*time.Minute, 10*time.Minute)), func(r *rig) {
			r.put("k")
			r.at(time.Minute)
			n, err := r.sweeper.Sweep(context.Background())
			require.NoError(t, err)
			require.Zero(t, n)
		})
	})
}

// Doubled hints deliver once and do not multiply.
func TestDoubledHints(t *testing.T) {
	run(t, config(batch(50, 5*s, 15*s)), func(r *rig) {
		r.put("k")
		r.at(3 * s)
		r.put("k")
		var hints []core.Hint
		for h, err := range r.store.Due(context.Background(), core.At(r.begin.Add(time.Hour))) {
			require.NoError(t, err)
			hints = append(hints, h)
		}
		require.Len(t, hints, 1)
		for range 10 {
			require.NoError(t, r.timer.Arm(context.Background(), hints[0]))
		}
		r.at(time.Hour)
		require.Equal(t, "8.000 k 2 idle #1", r.summary())
	})
}

func TestReplay(t *testing.T) {
	withLetters := func(r *rig) {
		r.answer = fails(400, 3)
		for _, k := range []string{"k1", "k2", "k3"} {
			r.post(numbered(k, 0, 2)...)
			r.at(time.Since(r.begin) + 10*s)
		}
		require.Len(r.t, r.deadLetters(), 6)
	}
	t.Run("all", func(t *testing.T) {
		run(t, config(), func(r *rig) {
			withLetters(r)
			report, err := r.replayer.Replay(context.Background(), core.ReplayRequest{})
			require.NoError(t, err)
			require.Equal(t, core.ReplayReport{Replayed: 6}, report)
			require.Empty(t, r.deadLetters())
			sends := r.sends()
			require.Len(t, sends, 6)
			require.Equal(t, sends[0].Items, sends[3].Items)
			require.Equal(t, core.ReasonReplay, sends[3].Reason)
			require.NotEqual(t, sends[0].ID, sends[3].ID)
		})
	})
	t.Run("at most some", func(t *testing.T) {
		run(t, config(), func(r *rig) {
			withLetters(r)
			report, err := r.replayer.Replay(context.Background(), core.ReplayRequest{Max: 3})
			require.NoError(t, err)
			require.Equal(t, core.ReplayReport{Replayed: 3, Left: 3}, report)
		})
	})
	t.Run("by id, to another destination", func(t *testing.T) {
		c := config()
		other := c.Destinations[0]
		other.Name = "other"
		c.Destinations = append(c.Destinations, other)
		run(t, c, func(r *rig) {
			withLetters(r)
			id := r.deadLetters()[1].ID
			report, err := r.replayer.Replay(context.Background(), core.ReplayRequest{
				Filter: core.DeadLetterFilter{IDs: []string{id}}, To: "other",
			})
			require.NoError(t, err)
			require.Equal(t, 1, report.Replayed)
			last := r.sends()[3]
			require.Equal(t, "other", last.destination)
			require.Equal(t, []string{`{"k":"k1","n":1}`}, bodies(last.Items))
		})
	})
	t.Run("that fails again leaves them", func(t *testing.T) {
		run(t, config(), func(r *rig) {
			withLetters(r)
			r.answer = fails(500, 2)
			report, err := r.replayer.Replay(context.Background(), core.ReplayRequest{})
			require.NoError(t, err)
			require.Equal(t, core.ReplayReport{Replayed: 2, Failed: 4, Left: 4}, report)
			report, err = r.replayer.Replay(context.Background(), core.ReplayRequest{})
			require.NoError(t, err)
			require.Equal(t, core.ReplayReport{Replayed: 4}, report)
		})
	})
	t.Run("to nowhere", func(t *testing.T) {
		run(t, config(), func(r *rig) {
			_, err := r.replayer.Replay(context.Background(), core.ReplayRequest{To: "nope"})
			require.Equal(t, core.Invalid, core.CodeOf(err))
		})
	})
}
