package core_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

// A group whose items can't be read is tried again once a second, however many
// hints and deliveries it began with, and however often it is swept.
func TestUnreadableGroupStaysOne(t *testing.T) {
	t.Parallel()
	m := newManual(t, config(batch(50, 5*s, 15*s)))
	m.put("k")
	m.store.read = broken
	m.pass(5 * s)
	g := m.group("k")
	for range 20 { // doubled by the queue, and handed over by many
		m.handed = append(m.handed, core.Delivery{Ref: ref("k"), Destination: "out", Seen: &g})
		m.hints = append(m.hints, core.Hint{Ref: ref("k"), Life: g.Life, At: m.now})
	}
	tries := 0
	for range 10 { // minutes
		for range 60 {
			m.fire()
			for _, d := range m.handed {
				_, err := m.deliverer.Deliver(context.Background(), d)
				require.Equal(t, core.Unavailable, core.CodeOf(err))
				tries++
			}
			m.handed = nil
			m.pass(1 * s)
		}
		_, err := m.sweeper.Sweep(context.Background())
		require.NoError(t, err)
	}
	require.Less(t, tries, 20+20+2*600, "it multiplied")
	require.LessOrEqual(t, len(m.hints), 3)

	m.store.read = nil
	m.elapse(time.Minute)
	require.Len(t, m.sent, 1, "and is sent when it can be")
}

// A deliverer whose clock is behind the checker's makes up for the delivery
// that it finds too early.
func TestDelivererWhoseClockIsBehind(t *testing.T) {
	t.Parallel()
	m := newManual(t, config(batch(50, 5*s, 15*s)))
	m.put("k")
	m.pass(5 * s)
	m.fire()
	require.Len(t, m.handed, 1)
	d := m.handed[0]
	m.handed = nil
	m.pass(-30 * time.Millisecond)
	for range 2 { // doubled
		_, err := m.deliverer.Deliver(context.Background(), d)
		require.NoError(t, err)
	}
	require.Empty(t, m.sent)
	m.elapse(s)
	require.Equal(t, "5.000 k 1 idle #1", m.summary())

	// what has changed since it was seen has other hints
	armed := len(m.armed)
	_, err := m.deliverer.Deliver(context.Background(), d)
	require.NoError(t, err)
	require.Len(t, m.armed, armed)
}

// One group that fails does not keep a sweep from the others.
func TestSweepBesideABrokenGroup(t *testing.T) {
	t.Parallel()
	const groups = 100
	m := newManual(t, config(batch(50, 5*s, 15*s)))
	for i := range groups {
		m.put(fmt.Sprint("k", i))
	}
	m.hints = nil
	m.pass(time.Minute)
	m.store.write = once(broken)
	n, err := m.sweeper.Sweep(context.Background())
	require.Equal(t, core.Unavailable, core.CodeOf(err), "it says so")
	require.Equal(t, groups-1, n)
}

// A request that opens many groups arms and hands over each of them.
func TestManyHints(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 8, 9, 100, 1000} {
		m := newManual(t, config(batch(2, 5*s, 15*s)))
		var keys []string
		for i := range n {
			keys = append(keys, fmt.Sprint(i), fmt.Sprint(i))
		}
		m.put(keys...)
		require.Len(t, m.armed, n)
		require.Len(t, m.handed, n)
	}
}
