package core_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

func TestShrink(t *testing.T) {
	t.Parallel()
	bits := func(n ...int) core.Bits {
		var b core.Bits
		for _, i := range n {
			b = b.With(i)
		}
		return b
	}
	for _, c := range []struct {
		name     string
		ordered  bool
		failed   core.Bits
		again    core.Bits // of the residue, by its own From; nil: none
		left     []uint64
		from, to uint64
		id       string
	}{
		{"one of five", false, bits(1), nil, []uint64{2}, 2, 2, "life-1.2"},
		{"first and last", false, bits(0, 4), nil, []uint64{1, 5}, 1, 5, "life-1.2"},
		{"inner ones", false, bits(1, 3), nil, []uint64{2, 4}, 2, 4, "life-1.2"},
		{"all", false, bits(0, 1, 2, 3, 4), nil, []uint64{1, 2, 3, 4, 5}, 1, 5, "life-1.2"},
		{"more than there are", false, bits(4, 5, 17), nil, []uint64{5}, 5, 5, "life-1.2"},
		{"twice", false, bits(1, 2, 4), bits(1, 3), []uint64{3, 5}, 3, 5, "life-1.3"},
		{"twice, naming one that is settled", false, bits(1, 4), bits(1, 3), []uint64{5}, 5, 5, "life-1.3"},
		{"ordered: from the first failed one on", true, bits(1), nil, []uint64{2, 3, 4, 5}, 2, 5, "life-1.2"},
		{"ordered: the last", true, bits(4), nil, []uint64{5}, 5, 5, "life-1.2"},
		{"ordered, twice", true, bits(1, 3), bits(2), []uint64{4, 5}, 4, 5, "life-1.3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := evaluated()
			p.Ordered = c.ordered
			g := opened(t, p, 7)
			held := claimed(t, g, p, 5, noon)
			require.NoError(t, g.Shrink(held.ID, held.Lease, c.failed, noon+1000, "some failed", p, noon+100))
			if c.again != nil {
				var err error
				held, err = g.Recover(g.Claims[0].ID, p, noon+1000)
				require.NoError(t, err)
				require.NoError(t, g.Shrink(held.ID, held.Lease, c.again, noon+2000, "some failed again", p, noon+1100))
			}
			require.Len(t, g.Claims, 1)
			r := g.Claims[0]
			var left []uint64
			for seq := range uint64(7) {
				if r.Has(seq) {
					left = append(left, seq)
				}
				require.Equal(t, r.Has(seq) || seq > 5, g.Live(seq), "%d", seq)
			}
			require.Equal(t, c.left, left)
			require.Equal(t, []uint64{c.from, c.to}, []uint64{r.From, r.To}, "no wider than what is left")
			require.Equal(t, c.id, r.ID)
			require.False(t, r.Held())
			require.Equal(t, core.ReasonItems, r.Reason)
			require.Equal(t, held.Attempt, r.Attempt, "the next send is the next attempt")
			require.Greater(t, r.Lease, held.Lease)
			require.Equal(t, noon+100, r.FirstErrorAt, "of the first batch")
			conflicts(t, g.Ack(held.ID, held.Lease, p, noon), "settling the batch that was")
		})
	}
}

func TestShrinkToNothing(t *testing.T) {
	t.Parallel()
	p := evaluated()
	g := opened(t, p, 3)
	c := claimed(t, g, p, 3, noon)
	for _, failed := range []core.Bits{nil, {0}, core.Bits(nil).With(3)} {
		before := g.Clone()
		err := g.Shrink(c.ID, c.Lease, failed, noon, "", p, noon)
		require.Equal(t, core.Internal, core.CodeOf(err))
		require.Error(t, err)
		require.Equal(t, before, *g)
	}
}

func TestResidueIDs(t *testing.T) {
	t.Parallel()
	p := evaluated()
	g := opened(t, p, 1)
	c := claimed(t, g, p, 1, noon)
	now := noon
	for n := 2; n < 130; n++ {
		require.NoError(t, g.Shrink(c.ID, c.Lease, core.Bits{1}, now, "no", p, now))
		require.Equal(t, fmt.Sprintf("life-1.%d", n), g.Claims[0].ID)
		var err error
		c, err = g.Recover(g.Claims[0].ID, p, now)
		require.NoError(t, err)
		require.Equal(t, n, c.Attempt, "attempts go on through partial successes")
	}
}
