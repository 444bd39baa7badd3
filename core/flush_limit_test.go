package core_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

func TestFlushClaimLimit(t *testing.T) {
	t.Parallel()
	limit := func(limit, items int) *core.Config {
		return docked(func(b *core.Buffer) { b.ClaimLimit, b.Batch.MaxItems = limit, items })
	}
	for _, tc := range []struct {
		name       string
		config     *core.Config
		put        int
		final      bool
		adding     bool // an item with each that is sent
		rows, last int  // shipped, in the last batch
	}{
		{"the first that is not full is the last", limit(3, 10), 10, false, false, 10, 1},
		{"just full, and another that finds nothing", limit(3, 10), 9, false, false, 9, 3},
		{"0: as many as a batch", limit(0, 10), 25, false, false, 25, 5},
		{"what comes after one that was not full waits", limit(3, 10), 4, false, true, 4 + 0, 2},
		{"a final flush goes on until one comes back empty", limit(1, 10), 5, true, false, 5, 1},
		{"a hundred claims", limit(1, 10), 150, false, false, 100, 1},
		{"a hundred claims of a final flush", limit(1, 10), 150, true, false, 100, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			d := newDock(t)
			p := d.process(tc.config)
			p.keys(slices.Repeat([]string{"k"}, tc.put)...)
			n := 0
			if tc.adding {
				d.answer = func(*core.Batch) core.Response {
					if n++; n == 2 {
						p.keys("k")
					}
					return core.Response{Status: 200}
				}
			}
			r := p.flush(core.FlushOptions{Final: tc.final})
			require.NoError(t, r.Err)
			sent := d.taken()
			if tc.adding { // 3, then 1: what has come since is for the next flush
				require.Equal(t, []int{3, 1}, []int{len(sent[0].Items), len(sent[1].Items)})
				require.Len(t, sent, 2)
				require.Equal(t, []string{"k"}, d.busyGroups())
				return
			}
			require.Equal(t, tc.rows, r.Rows)
			require.Len(t, sent[len(sent)-1].Items, tc.last)
		})
	}
}

// A final flush does not chase what others go on to add.
func TestFinalFlushEnds(t *testing.T) {
	t.Parallel()
	d := newDock(t)
	p := d.process(docked())
	p.keys("k")
	d.answer = func(*core.Batch) core.Response {
		p.keys("k")
		return core.Response{Status: 200}
	}
	r := p.flush(core.FlushOptions{Final: true})
	require.NoError(t, r.Err)
	require.Equal(t, 100, r.Rows)
	require.Equal(t, []string{"k"}, d.busyGroups())
}

// A flush that has no time left for a send gives its turn back, and says so.
func TestFlushOutOfTime(t *testing.T) {
	t.Parallel()
	deadline := func(at core.Millis) (context.Context, context.CancelFunc) {
		return context.WithDeadline(context.Background(), at.Time())
	}
	d := newDock(t)
	d.now.Store(time.Now().Add(time.Hour).UnixMilli()) // so that the deadline does not come by itself
	c := docked()
	c.Destinations[0].Concurrency = 1
	p := d.process(c)
	p.keys("a", "b", "c")
	ctx, cancel := deadline(d.clock().Add(100 * s))
	defer cancel()
	d.answer = func(*core.Batch) core.Response {
		d.pass(40 * s)
		return core.Response{Status: 200}
	}
	r := p.flushWithin(ctx, core.FlushOptions{})
	require.EqualError(t, r.Err, "the time was over before all was shipped; flush again")
	require.Equal(t, 2, r.Rows, "30 s are needed for a send")
	require.Equal(t, &core.Shipped{Rows: 2}, r.Written)
	require.Equal(t, core.Turn{}, d.turn())
	d.answer = nil
	r = p.flush(core.FlushOptions{})
	require.Equal(t, core.BufferFlush{Buffer: "b", Rows: 1}, r)
}

// A send that is cut off is no turn either, be it the last.
func TestFlushCutOff(t *testing.T) {
	t.Parallel()
	d := newDock(t)
	c := docked()
	c.Destinations[0].Concurrency = 1
	p := d.process(c)
	p.keys("a", "b")
	ctx, cancel := context.WithCancel(context.Background())
	n := 0
	d.answer = func(*core.Batch) core.Response {
		if n++; n == 1 {
			return core.Response{Status: 200}
		}
		cancel()
		return core.Response{Err: core.Errorf(core.Canceled, "stopped")}
	}
	r := p.flushWithin(ctx, core.FlushOptions{})
	require.Error(t, r.Err)
	require.Equal(t, &core.Shipped{Rows: 1}, r.Written)
	require.Equal(t, core.Turn{}, d.turn())
	d.answer = nil
	r = p.flush(core.FlushOptions{})
	require.NoError(t, r.Err)
	require.Equal(t, 1, r.Rows)
}

// While, when it ends, lets the sends under way end.
func TestFlushWhile(t *testing.T) {
	t.Parallel()
	d := newDock(t)
	c := docked()
	c.Destinations[0].Concurrency = 1
	p := d.process(c)
	p.keys("a", "b")
	while, end := context.WithCancel(context.Background())
	d.answer = func(*core.Batch) core.Response {
		end()
		return core.Response{Status: 200}
	}
	r := p.flush(core.FlushOptions{While: while})
	require.EqualError(t, r.Err, "the time was over before all was shipped; flush again")
	require.Equal(t, &core.Shipped{Rows: 1}, r.Written)
	require.Equal(t, core.Turn{}, d.turn())
}

// A claim that the cap on bytes has cut is followed by another.
func TestFlushOfLargeItems(t *testing.T) {
	t.Parallel()
	d := newDock(t)
	p := d.process(docked(func(b *core.Buffer) { b.Overflow.MaxBytes, b.Batch.MaxItems = core.KiB, 10 }))
	large := `{"k":"k","p":"` + strings.Repeat("x", 600) + `"}`
	p.put(large, large, large)
	require.Equal(t, core.BufferFlush{Buffer: "b", Rows: 3}, p.flush(core.FlushOptions{}))
	require.Len(t, d.taken(), 3)
}
