package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

// What is handed over is due no more when its turn comes, because another item
// has arrived: the hint that was used up is made up for.
func TestItemBetweenHandOverAndDelivery(t *testing.T) {
	t.Parallel()
	m := newManual(t, config(batch(50, 5*s, 15*s)))
	m.put("k")
	m.pass(5 * s)
	m.fire()
	require.Len(t, m.handed, 1)
	m.pass(1 * s)
	m.put("k")
	m.handed = nil
	m.deliver("k")
	require.Empty(t, m.sent, "it is not idle")
	require.Equal(t, noon+11_000, m.group("k").CheckAt)
	require.Equal(t, noon+11_000, m.hints[0].At, "and somebody looks at it then")
	m.elapse(time.Hour)
	require.Equal(t, "11.000 k 2 idle #1", m.summary())
}

// The same where it happens: the only sender is busy while a group waits for it.
func TestItemWhileItsGroupWaitsForASender(t *testing.T) {
	c := config(batch(50, 5*s, 15*s))
	c.Destinations[0].Concurrency = 1
	run(t, c, func(r *rig) {
		r.sendsTake(2 * s)
		r.put("busy")
		r.at(ms(500))
		r.put("k")
		r.at(6 * s)
		r.put("k")
		r.at(time.Minute)
		require.Equal(r.t, "5.000 busy 1 idle #1\n11.000 k 2 idle #1", r.summary())
	})
}

// An item that arrives between the reading of a batch and its claim waits from
// its own arrival. The record has no more than a lower bound of it, which is
// that of the batch's last item and not its first, and is corrected in time.
func TestRestOfABurstInheritsNothing(t *testing.T) {
	t.Parallel()
	m := newManual(t, config(batch(5, 5*s, 15*s)))
	for range 5 {
		m.put("k")
		m.pass(2 * s)
	}
	m.store.read = once(func() error {
		m.pass(2 * s) // it is 12 s after the first one
		m.put("k")
		return nil
	})
	m.deliver("k")
	require.Equal(t, "12.000 k 5 items #1", m.summary())
	require.Equal(t, noon+8000, m.group("k").FirstAt)
	m.handed = nil // what the fifth handed over has been done
	for range 3 {  // at 16, 20 and 24 s: never idle
		m.elapse(4 * s)
		m.put("k")
	}
	require.Equal(t, "12.000 k 5 items #1", m.summary(), "23 s is 15 s after the batch's last item, and not due")
	m.elapse(time.Hour)
	require.Equal(t, "12.000 k 5 items #1\n27.000 k 4 wait #1", m.summary())
}

// A group that is open when the idle timeout is made shorter follows the new
// one from then on, whatever arrives before its first check.
func TestShorterTimeoutsAndAnotherItem(t *testing.T) {
	run(t, config(batch(50, 5*time.Minute, 10*time.Minute)), func(r *rig) {
		r.put("k")
		r.at(1 * s)
		r.reconfigure(config(batch(50, 5*s, 15*s)))
		r.at(3 * s)
		r.put("k")
		r.at(time.Hour)
		require.Equal(r.t, "8.000 k 2 idle #1", r.summary())
	})
}

// However little or far the clock is set back, a group that waits is sent when
// its timeouts have passed once more from its first check on, at the latest.
func TestClockSetBackByAnything(t *testing.T) {
	for _, back := range []time.Duration{ms(1), 4 * s, time.Minute, 10 * time.Minute, 15 * time.Minute, 24 * time.Hour} {
		t.Run(back.String(), func(t *testing.T) {
			run(t, config(batch(50, 5*s, 15*s)), func(r *rig) {
				r.put("k")
				r.at(1 * s)
				r.setBack.Store(int64(back))
				r.at(time.Hour)
				require.Len(r.t, r.sends(), 1)
				require.LessOrEqual(r.t, r.sends()[0].at, 20*s)
			})
		})
	}
}

// A group that is due, while what is in its way is being sent, is looked at
// when that may have changed, and not round and round.
func TestBlockedGroupIsNotCheckedInALoop(t *testing.T) {
	t.Parallel()
	later := func(at time.Duration) core.Response { return core.Response{Status: 503, RetryAfter: at} }
	t.Run("a retry comes due while another batch is being sent", func(t *testing.T) {
		t.Parallel()
		m := newManual(t, config(batch(1, 5*s, 15*s)))
		m.late = ms(1)
		m.answer = func(_ context.Context, b *core.Batch) core.Response {
			switch {
			case b.Items[0].Seq == 1 && b.Attempt == 1:
				return later(2 * s)
			case b.Items[0].Seq == 2:
				m.elapse(10 * s)
			}
			return core.Response{Status: 200}
		}
		m.put("k")
		m.elapse(0)
		m.put("k", "k")
		m.elapse(time.Hour)
		require.Equal(t, "0.000 k 1 items #1\n0.000 k 1 items #1\n10.000 k 1 items #2\n10.000 k 1 items #1", m.summary())
		require.Less(t, m.checks, 20)
	})
	t.Run("a retry comes due behind another of a group that has become ordered", func(t *testing.T) {
		t.Parallel()
		m := newManual(t, config(batch(1, 5*s, 15*s)))
		m.late = ms(1)
		m.answer = func(_ context.Context, b *core.Batch) core.Response {
			if b.Attempt == 1 && b.Items[0].Seq < 3 {
				return later([]time.Duration{1: time.Minute, 2: 10 * s}[b.Items[0].Seq])
			}
			return core.Response{Status: 200}
		}
		m.put("k", "k")
		m.elapse(1 * s)
		m.configure(config(batch(1, 5*s, 15*s), ordered))
		m.put("k")
		m.elapse(time.Hour)
		require.Equal(t, "0.000 k 1 items #1\n0.000 k 1 items #1\n60.001 k 1 items #2\n60.001 k 1 items #2\n60.001 k 1 items #1", m.summary())
		require.Less(t, m.checks, 20)
	})
}

// However many batches a group sends, one hint at a time is for its check: a
// later one, by [core.Hint.Check] and the group's life, makes the earlier ones
// pointless. So no timer has to keep one a batch.
func TestOneHintOfAGroup(t *testing.T) {
	t.Parallel()
	m := newManual(t, config(batch(2, 5*time.Minute, 10*time.Minute)))
	for range 1001 { // every other time the group is left empty, and begins a new life
		m.put("k", "k", "k")
		m.elapse(ms(1))
	}
	require.Len(t, m.sent, 1501)
	require.GreaterOrEqual(t, len(m.armed), 1000)
	last := m.armed[0]
	for _, h := range m.armed[1:] {
		require.True(t, h.Life > last.Life || h.Life == last.Life && h.Check > last.Check, "%+v behind %+v", h, last)
		last = h
	}
	g := m.group("k")
	require.Equal(t, core.Hint{Ref: ref("k"), Life: g.Life, At: g.CheckAt, Check: last.Check}, last, "the newest is the one that counts")
}

// Whatever a transition moves the check to is armed, also by a retry or by
// dead-lettering that goes on while items arrive.
func TestItemsThatArriveAroundARetryLeaveOnTime(t *testing.T) {
	for _, tc := range []struct {
		name   string
		answer core.Response
	}{
		{"that succeeds", core.Response{Status: 200}},
		{"that is refused for good", core.Response{Status: 400}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			run(t, config(batch(50, 2*s, 15*s)), func(r *rig) {
				r.answer = func(_ string, b *core.Batch) core.Response {
					switch {
					case b.Items[0].Seq > 1:
						return core.Response{Status: 200}
					case b.Attempt == 1:
						return core.Response{Status: 503, RetryAfter: 3 * s}
					}
					return tc.answer
				}
				r.put("k")
				r.at(4 * s)
				r.put("k")
				r.at(ms(4500))
				r.put("k")
				r.at(ms(4600))
				r.sendsTake(1 * s)
				r.at(ms(5500))
				r.put("k")
				r.at(time.Minute)
				require.Equal(t, "2.000 k 1 idle #1\n5.000 k 1 idle #2\n7.500 k 3 idle #1", r.summary())
			})
		})
	}
}
