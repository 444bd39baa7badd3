package core_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

func TestCrash(t *testing.T) {
	t.Run("during a send: the batch is taken over at once, as it was", func(t *testing.T) {
		c := config(batch(2, 5*s, 15*s))
		run(t, c, func(r *rig) {
			r.sendsTake(10 * s)
			r.post(numbered("k", 0, 2)...)
			r.at(1 * s)
			r.crash(c)
			r.at(time.Hour)
			require.Equal(t, "0.000 k 2 items #1\n1.000 k 2 items #1", r.summary())
			require.Equal(t, r.sends()[0].ID, r.sends()[1].ID)
		})
	})
	t.Run("before a deadline: it is kept", func(t *testing.T) {
		c := config(batch(50, 5*s, 15*s))
		run(t, c, func(r *rig) {
			r.put("k")
			r.at(4 * s)
			r.crash(c)
			r.at(time.Hour)
			require.Equal(t, "5.000 k 1 idle #1", r.summary())
		})
	})
	t.Run("after a deadline: it is made up for at once", func(t *testing.T) {
		c := config(batch(50, 5*s, 15*s))
		run(t, c, func(r *rig) {
			r.put("k")
			r.at(4 * s)
			r.stopWork()
			r.at(time.Hour)
			r.crash(c)
			r.at(2 * time.Hour)
			require.Equal(t, "3600.000 k 1 wait #1", r.summary())
		})
	})
	t.Run("while a retry waits: it keeps its time", func(t *testing.T) {
		c := config(batch(1, 5*s, 15*s))
		run(t, c, func(r *rig) {
			first := true
			r.answer = func(string, *core.Batch) core.Response {
				if first {
					first = false
					return core.Response{Status: 503, RetryAfter: 20 * s}
				}
				return core.Response{Status: 200}
			}
			r.put("k")
			r.at(7 * s)
			r.crash(c)
			r.at(time.Hour)
			require.Equal(t, "0.000 k 1 items #1\n20.000 k 1 items #2", r.summary())
		})
	})
}

// Stopping with 500 groups that wait sends nothing, and takes no time.
func TestStopKeepsWhatWaits(t *testing.T) {
	c := config(batch(50, 5*time.Minute, 10*time.Minute))
	run(t, c, func(r *rig) {
		for i := range 500 {
			r.put(fmt.Sprint("k", i))
		}
		r.at(1 * s)
		r.stopWork()
		require.Equal(t, 1*s, time.Since(r.begin))
		require.Empty(t, r.sends())
		r.at(1 * time.Minute)
		r.start(c)
		r.at(time.Hour)
		require.Len(t, r.sends(), 500)
		for _, b := range r.sends() {
			require.Equal(t, 5*time.Minute, b.at)
		}
	})
}

// A stop ends a send that outlives the grace; the batch is sent again later.
func TestStopEndsALongSend(t *testing.T) {
	c := config(batch(1, 5*s, 15*s))
	run(t, c, func(r *rig) {
		r.sendsTake(time.Minute)
		r.put("k")
		r.at(1 * s)
		r.timer.Stop()
		ctx, cancel := context.WithTimeout(context.Background(), 10*s)
		defer cancel()
		require.ErrorIs(t, r.queue.Stop(ctx), context.DeadlineExceeded)
		require.Equal(t, 11*s, time.Since(r.begin))
		r.sendsTake(0)
		r.at(20 * s)
		r.start(c)
		r.at(time.Hour)
		require.Equal(t, "0.000 k 1 items #1\n20.000 k 1 items #1", r.summary(), "the attempt that was cut off does not count")
	})
}

func TestConfigurationChanges(t *testing.T) {
	t.Run("fewer items: the next check uses it", func(t *testing.T) {
		run(t, config(batch(50, time.Minute, time.Minute)), func(r *rig) {
			r.post(numbered("k", 0, 5)...)
			r.at(1 * s)
			r.reconfigure(config(batch(2, time.Minute, time.Minute)))
			r.at(2 * s)
			require.Equal(t, "1.000 k 2 items #1\n1.000 k 2 items #1", r.summary())
			r.at(time.Hour)
			require.Len(t, delivered(r), 5)
		})
	})
	t.Run("a shorter idle timeout", func(t *testing.T) {
		run(t, config(batch(50, time.Minute, time.Minute)), func(r *rig) {
			r.put("k")
			r.at(1 * s)
			r.reconfigure(config(batch(50, 3*s, time.Minute)))
			r.at(time.Hour)
			require.Equal(t, "3.000 k 1 idle #1", r.summary())
		})
	})
	t.Run("a longer idle timeout", func(t *testing.T) {
		run(t, config(batch(50, 3*s, time.Minute)), func(r *rig) {
			r.put("k")
			r.at(1 * s)
			r.reconfigure(config(batch(50, 20*s, time.Minute)))
			r.at(time.Hour)
			require.Equal(t, "20.000 k 1 idle #1", r.summary())
		})
	})
	t.Run("a buffer that goes away and comes back", func(t *testing.T) {
		c := config(batch(50, 3*s, time.Minute))
		run(t, c, func(r *rig) {
			r.put("k")
			without := config()
			without.Buffers[0].Name = "other"
			r.reconfigure(without)
			r.at(time.Hour)
			require.Empty(t, r.sends())
			r.reconfigure(c)
			r.at(2 * time.Hour)
			require.Equal(t, "3600.000 k 1 wait #1", r.summary())
		})
	})
	t.Run("another destination: a retry goes there", func(t *testing.T) {
		run(t, config(batch(1, 3*s, time.Minute)), func(r *rig) {
			r.answer = func(d string, _ *core.Batch) core.Response {
				if d == "out" {
					return core.Response{Status: 503, RetryAfter: 10 * s}
				}
				return core.Response{Status: 200}
			}
			r.put("k")
			r.at(1 * s)
			c := config(batch(1, 3*s, time.Minute))
			c.Destinations[0].Name, c.Buffers[0].To = "new", "new"
			r.reconfigure(c)
			r.at(time.Hour)
			require.Len(t, r.sends(), 2)
			require.Equal(t, "new", r.sends()[1].destination)
			require.Equal(t, r.sends()[0].ID, r.sends()[1].ID)
		})
	})
}

func TestClockJumps(t *testing.T) {
	t.Run("forward: nothing is lost", func(t *testing.T) {
		run(t, config(batch(50, 5*s, 15*s)), func(r *rig) {
			r.put("k")
			r.at(1 * s)
			r.setBack.Store(int64(-time.Hour))
			r.put("k")
			r.at(time.Minute)
			require.Len(t, delivered(r), 2)
			require.LessOrEqual(t, r.sends()[0].at, 15*s)
		})
	})
	t.Run("back: no group stalls longer than its timeouts", func(t *testing.T) {
		run(t, config(batch(50, 5*s, 15*s)), func(r *rig) {
			r.put("k")
			r.at(1 * s)
			r.setBack.Store(int64(time.Hour))
			r.at(21 * s)
			require.Len(t, r.sends(), 1, "sent by the max wait after the first check")
			r.put("k")
			r.at(40 * s)
			require.Len(t, delivered(r), 2)
		})
	})
	t.Run("back: a retry waits no longer than it may", func(t *testing.T) {
		run(t, config(batch(1, 5*s, 15*s), attempts(5, s, 10*s)), func(r *rig) {
			r.answer = fails(503, 2)
			r.put("k")
			r.setBack.Store(int64(time.Hour))
			r.at(5 * time.Minute)
			require.Len(t, r.sends(), 3)
		})
	})
}
