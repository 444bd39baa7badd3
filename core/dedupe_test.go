package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

func deduped(c *core.Config) { c.Buffers[0].Dedupe = time.Minute }

// ids sends events of these ids in one request.
func (r *rig) ids(ids ...string) core.Receipt {
	events := make([]core.Event, len(ids))
	for i, id := range ids {
		events[i] = core.Event{ID: id, Body: []byte(`{"k":"a"}`)}
	}
	receipt, err := r.ingester.Ingest(context.Background(), "in", events)
	require.NoError(r.t, err)
	return receipt
}

// case 7 of what users of such systems report.
func TestADoubleOfWhatIsAlreadyClaimed(t *testing.T) {
	run(t, config(at1, deduped), func(r *rig) {
		r.sendsTake(10 * time.Second)
		require.Equal(t, 1, r.ids("x").Accepted)
		r.at(time.Second)
		receipt := r.ids("x")
		require.Equal(t, core.Receipt{IDs: []string{"x"}, Duplicates: 1}, receipt)
		r.at(30 * time.Second)
		require.Equal(t, []string{"x"}, r.of("b"))
		r.at(2 * time.Minute)
		require.Equal(t, 1, r.ids("x").Accepted, "after its window it is another")
	})
}

func TestDoublesAmongOthers(t *testing.T) {
	run(t, config(at1, deduped, waits, beside("second", func(b *core.Buffer) { b.Dedupe = 0 })), func(r *rig) {
		r.ids("x")
		receipt := r.ids("x", "y", "y")
		require.Equal(t, 3, receipt.Accepted, "the other buffer takes them all")
		require.Equal(t, core.StatusPending, receipt.Status, "another request knows what became of the doubles")
		r.at(time.Second)
		require.Equal(t, []string{"x", "y"}, r.of("b"))
		require.Equal(t, []string{"x", "x", "y", "y"}, r.of("second"))
	})
}

func TestARequestOfDoublesOnly(t *testing.T) {
	run(t, config(at1, deduped, waits), func(r *rig) {
		require.Equal(t, core.StatusDelivered, r.ids("x").Status)
		require.Equal(t, core.Receipt{IDs: []string{"x", "x"}, Duplicates: 2}, r.ids("x", "x"))
	})
}
