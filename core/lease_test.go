package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

// A send goes by the settings with which it began. Shorter ones that come
// meanwhile do not end its lease, so nothing of an ordered group overtakes it.
func TestReloadLeavesALiveLease(t *testing.T) {
	t.Parallel()
	settings := func(timeout, longest time.Duration) *core.Config {
		c := config(batch(1, 5*s, 15*s), ordered)
		c.Destinations[0].Timeout, c.Destinations[0].Retry.Max = timeout, longest
		return c
	}
	m := newManual(t, settings(5*time.Minute, 10*time.Minute))
	m.answer = func(_ context.Context, b *core.Batch) core.Response {
		if b.Items[0].Seq > 1 {
			return core.Response{Status: 200}
		}
		lease := m.group("k").Claims[0].Due
		m.configure(settings(1*s, 1*s))
		_, err := m.sweeper.Resume(context.Background())
		require.NoError(t, err)
		m.elapse(4 * time.Minute)
		_, err = m.sweeper.Sweep(context.Background())
		require.NoError(t, err)
		m.elapse(30 * s)
		require.Len(t, m.sent, 1, "another began meanwhile")
		require.Equal(t, lease, m.group("k").Claims[0].Due)
		return core.Response{Status: 200}
	}
	m.put("k", "k")
	m.elapse(time.Hour)
	require.Equal(t, "0.000 k 1 items #1\n270.000 k 1 items #1", m.summary())
}

// A deliverer that was held up until its lease had passed, while another took
// the batch over and delivered it, changes nothing, whatever its own send said.
func TestLateDelivererBuriesNothing(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]core.Response{
		"refused for good":   {Status: 400},
		"the last attempt":   {Status: 503},
		"the last, in parts": {Status: 200, Failed: core.Bits(nil).With(1)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newManual(t, config(batch(2, 5*s, 15*s), attempts(1, s, s)))
			m.answer = func(context.Context, *core.Batch) core.Response {
				if len(m.sent) > 1 {
					return core.Response{Status: 200}
				}
				m.pass(time.Minute) // a pause of the process, or a clock that jumps
				_, err := m.sweeper.Sweep(context.Background())
				require.NoError(t, err)
				m.elapse(0)
				require.Len(t, m.sent, 2, "another has taken it over")
				return late
			}
			m.put("k", "k")
			m.elapse(0)
			require.Equal(t, m.sent[0].ID, m.sent[1].ID)
			require.Empty(t, m.group("k"))
			require.Zero(t, m.deadLetters())
			require.Zero(t, m.told, "and counts none")
		})
	}
}

// A claim whose settling the store refused is taken over when its lease ends,
// and so is what waits behind it, without a sweep.
func TestFailedSettlingLeavesTheClaimArmed(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]core.Response{
		"delivered":        {Status: 200},
		"to be retried":    {Status: 503, RetryAfter: s},
		"taken in part":    {Status: 200, Failed: core.Bits(nil).With(0)},
		"refused for good": {Status: 400},
	} {
		for behind, want := range map[string]string{
			"":                        "0.000 k 2 items #1\n30.000 k 2 items #1",
			", and a batch behind it": "0.000 k 2 items #1\n30.000 k 2 items #1\n30.000 k 2 items #1",
		} {
			t.Run(name+behind, func(t *testing.T) {
				t.Parallel()
				m := newManual(t, config(batch(2, 5*s, 15*s)))
				m.answer = func(context.Context, *core.Batch) core.Response {
					if len(m.sent) > 1 {
						return core.Response{Status: 200}
					}
					m.store.write = once(broken)
					return answer
				}
				m.put("k", "k")
				if behind != "" {
					m.put("k", "k")
				}
				m.handed = nil
				require.Equal(t, core.Unavailable, core.CodeOf(m.tryDeliver(context.Background(), ref("k"))))
				m.elapse(time.Hour)
				require.Equal(t, want, m.summary())
				require.Equal(t, m.sent[0].ID, m.sent[1].ID)
				require.Zero(t, m.deadLetters())
			})
		}
	}
}

// A claim that was taken up again, but whose items could not be read, is tried
// again soon. That no send was made costs no attempt.
func TestFailedReadLeavesTheClaimArmed(t *testing.T) {
	t.Parallel()
	setup := func(t *testing.T) *manual {
		m := newManual(t, config(batch(1, 5*s, 15*s), attempts(2, s, time.Minute)))
		m.answer = func(_ context.Context, b *core.Batch) core.Response {
			if b.Attempt == 1 {
				return core.Response{Status: 503, RetryAfter: 2 * s}
			}
			return core.Response{Status: 200}
		}
		m.put("k")
		m.elapse(1 * s)
		m.pass(1 * s)
		m.fire()
		m.handed, m.hints = nil, nil
		m.store.read = once(broken)
		return m
	}
	t.Run("once", func(t *testing.T) {
		t.Parallel()
		m := setup(t)
		require.Equal(t, core.Unavailable, core.CodeOf(m.tryDeliver(context.Background(), ref("k"))))
		m.elapse(time.Hour)
		require.Equal(t, "0.000 k 1 items #1\n3.000 k 1 items #2", m.summary())
	})
	t.Run("and given back neither", func(t *testing.T) {
		t.Parallel()
		m := setup(t)
		m.store.read = once(func() error {
			m.store.write = once(broken)
			return broken()
		})
		require.Equal(t, core.Unavailable, core.CodeOf(m.tryDeliver(context.Background(), ref("k"))))
		m.elapse(time.Hour)
		require.Equal(t, "0.000 k 1 items #1\n32.000 k 1 items #2", m.summary(), "when its lease has ended")
	})
}
