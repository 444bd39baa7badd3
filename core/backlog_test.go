package core_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

// However much is overdue that a sweep cannot help, it finds what it can.
func TestSweepIsNotStarved(t *testing.T) {
	t.Parallel()
	const many = 10_001
	fill := func(m *manual, buffer string, then func(core.Ref, *core.Policy)) {
		p := &m.catalog.Buffer(buffer).Policy
		for i := range many {
			r := core.Ref{Buffer: buffer, Key: fmt.Sprint("other", i)}
			_, err := m.memory.Append(context.Background(), m.now, []core.Part{{Ref: r, Life: "life", Events: make([]core.Event, 1), Policy: p}})
			require.NoError(m.t, err)
			if then != nil {
				then(r, p)
			}
		}
	}
	finds := func(m *manual) { // a group whose hint is lost
		m.pass(1 * s)
		m.put("k")
		m.hints, m.handed = nil, nil
		m.pass(time.Minute)
		_, err := m.sweeper.Sweep(context.Background())
		require.NoError(m.t, err)
		require.Contains(m.t, m.handed, core.Delivery{Ref: ref("k"), Destination: "out"})
	}
	t.Run("by the groups of a removed buffer", func(t *testing.T) {
		t.Parallel()
		c := config(batch(50, 5*s, 15*s))
		c.Buffers = append(c.Buffers, c.Buffers[0])
		c.Buffers[1].Name = "gone"
		m := newManual(t, c)
		fill(m, "gone", nil)
		m.configure(config(batch(50, 5*s, 15*s)))
		finds(m)
		require.Len(t, m.handed, 1)
	})
	t.Run("by retries that are overdue", func(t *testing.T) {
		t.Parallel()
		m := newManual(t, config(batch(50, 5*s, 15*s)))
		fill(m, "b", func(r core.Ref, p *core.Policy) {
			_, err := m.memory.Update(context.Background(), r, nil, func(g *core.Group) error {
				c, err := g.Claim(core.Taking{From: 1, To: 1, Items: 1}, p, m.now)
				if err != nil {
					return err
				}
				return g.Release(c.ID, c.Lease, m.now.Add(s), "no", p, m.now)
			})
			require.NoError(t, err)
		})
		finds(m)
		require.Len(t, m.handed, many+1)
	})
}

// A sweep that finds the store broken does not go on to ask it for every group.
func TestSweepOfABrokenStore(t *testing.T) {
	t.Parallel()
	m := newManual(t, config(batch(50, 5*s, 15*s)))
	for i := range 100 {
		m.put(fmt.Sprint("k", i))
	}
	m.pass(time.Minute)
	var asked atomic.Int64
	m.store.write = func() error {
		asked.Add(1)
		return broken()
	}
	n, err := m.sweeper.Sweep(context.Background())
	require.Equal(t, core.Unavailable, core.CodeOf(err))
	require.Zero(t, n)
	require.Less(t, asked.Load(), int64(50), "beyond those that were asked for at the same time")
}
