package core_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

// refusing answers 500 to every batch of some groups.
func refusing(status int, groups ...string) func(*core.Batch) core.Response {
	return func(b *core.Batch) core.Response {
		if len(groups) == 0 || slices.Contains(groups, b.Group) {
			return core.Response{Status: status}
		}
		return core.Response{Status: 200}
	}
}

func TestFlushReportsWhatWasWrittenBesideAnError(t *testing.T) {
	t.Parallel()
	d := newDock(t)
	p := d.process(docked())
	p.keys("a", "a", "a", "b", "c")
	d.answer = refusing(500, "b")
	r := p.flush(core.FlushOptions{})
	require.EqualError(t, r.Err, `group "b": status 500`)
	require.Equal(t, core.Unavailable, core.CodeOf(r.Err))
	require.Equal(t, 5, r.Rows)
	require.Equal(t, &core.Shipped{Rows: 4}, r.Written)
	require.NoError(t, r.ReleaseErr)
	require.Equal(t, 54*s, p.wait(), "the cadence counts it as a shipment")
	require.Equal(t, core.Turn{Last: noon}, d.turn())
}

func TestFlushCountsWindowsThatWereWritten(t *testing.T) {
	t.Parallel()
	d := newDock(t)
	p := d.process(docked(windowed))
	for _, ts := range []string{"22:01:00", "22:01:01", "22:01:59.999", "22:02:00", "22:03:00"} {
		p.put(fmt.Sprintf(`{"ts":"2023-11-14T%sZ"}`, ts))
	}
	d.answer = func(b *core.Batch) core.Response { // the last batch of the first window fails, and all of the second
		if minute := b.Window.Start.Time().Minute(); minute == 2 || minute == 1 && len(b.Items) == 1 {
			return core.Response{Status: 500}
		}
		return core.Response{Status: 200}
	}
	r := p.flush(core.FlushOptions{})
	require.Regexp(t, `^2 batches failed; the first, of group "2023-11-14T22:0[12]:00.000Z/.*": status 500$`, core.DetailOf(r.Err))
	require.Equal(t, 3, r.Buckets)
	require.Equal(t, 5, r.Rows)
	require.Equal(t, &core.Shipped{Buckets: 1, Rows: 3}, r.Written)
}

func TestFlushReleaseErr(t *testing.T) {
	t.Parallel()
	d := newDock(t)
	p := d.process(docked())
	p.keys("a")
	d.answer = func(*core.Batch) core.Response {
		d.write = func(core.Ref) error { return broken() }
		return core.Response{Status: 503}
	}
	r := p.flush(core.FlushOptions{})
	require.ErrorContains(t, r.Err, "status 503", "what the destination said")
	require.ErrorContains(t, r.ReleaseErr, "the disk does not answer")
	require.NoError(t, r.AckErr)
	require.Nil(t, r.Written)
	d.write, d.answer = nil, nil
	d.taken()
	require.Zero(t, p.flush(core.FlushOptions{Force: true}).Rows, "the claim is held until its lease ends")
	d.pass(30 * s)
	r = p.flush(core.FlushOptions{})
	require.Equal(t, core.BufferFlush{Buffer: "b", Rows: 1, Recovered: &core.Released{Claims: 1, Rows: 1}}, r)
	require.Equal(t, 1, d.taken()[0].Attempt, "whether the first was made is not known")
}

func TestFlushAckErr(t *testing.T) {
	t.Parallel()
	t.Run("the store fails", func(t *testing.T) {
		t.Parallel()
		d := newDock(t)
		p := d.process(docked())
		p.keys("a", "a", "a")
		d.answer = func(*core.Batch) core.Response {
			d.write = func(core.Ref) error { return broken() }
			return core.Response{Status: 200}
		}
		r := p.flush(core.FlushOptions{Final: true})
		d.write, d.answer = nil, nil
		require.NoError(t, r.Err)
		require.ErrorContains(t, r.AckErr, "the disk does not answer")
		require.Equal(t, 2, r.Rows)
		require.Nil(t, r.Written)
		require.Equal(t, 54*s, p.wait(), "the rows count as shipped")
		was := d.taken()
		d.pass(time.Minute)
		r = p.flush(core.FlushOptions{})
		require.Equal(t, &core.Released{Claims: 1, Rows: 2}, r.Recovered)
		require.Equal(t, 3, r.Rows)
		require.Equal(t, was[0].ID, d.taken()[0].ID, "it comes again under its id")
	})
	t.Run("its lease has passed on", func(t *testing.T) {
		t.Parallel()
		d := newDock(t)
		p, q := d.process(docked()), d.process(docked())
		p.keys("a")
		var other core.BufferFlush
		d.answer = func(*core.Batch) core.Response {
			d.answer = nil
			d.pass(61 * s)
			other = q.flush(core.FlushOptions{})
			return core.Response{Status: 200}
		}
		r := p.flush(core.FlushOptions{})
		require.NoError(t, r.Err)
		require.Equal(t, core.Conflict, core.CodeOf(r.AckErr))
		require.Equal(t, 1, r.Rows)
		require.Equal(t, core.BufferFlush{Buffer: "b", Rows: 1, Recovered: &core.Released{Claims: 1, Rows: 1}}, other)
		require.Empty(t, d.busyGroups())
		house := core.FlushReport{Buffers: []core.BufferFlush{r}}
		require.True(t, house.OK(), "rows that were taken are no failure")
	})
}

// The failure of one claim's recovery keeps nothing new from leaving.
func TestFlushRecoverErr(t *testing.T) {
	t.Parallel()
	d := newDock(t)
	p := d.process(docked())
	p.keys("a")
	d.answer = refusing(500)
	p.flush(core.FlushOptions{})
	d.answer = nil
	d.taken()
	d.pass(11 * time.Minute)
	p.keys("a", "b")
	failed := false
	d.read = func() error {
		if !failed {
			failed = true
			return broken()
		}
		return nil
	}
	c := docked()
	c.Destinations[0].Concurrency = 1
	r := d.process(c).flush(core.FlushOptions{Groups: []string{"a", "b"}})
	require.NoError(t, r.Err)
	require.ErrorContains(t, r.RecoverErr, "the disk does not answer")
	require.Nil(t, r.Recovered)
	require.Equal(t, 2, r.Rows)
	require.Len(t, d.taken(), 2)
	d.read = nil
	d.pass(time.Minute)
	r = p.flush(core.FlushOptions{})
	require.Equal(t, core.BufferFlush{Buffer: "b", Rows: 1, Recovered: &core.Released{Claims: 1, Rows: 1}}, r)
}

// A store that fails after a claim was recovered ends the flush of its group.
func TestFlushEndsWhenTheStoreFailsAfterARecovery(t *testing.T) {
	t.Parallel()
	d := newDock(t)
	p := d.process(docked())
	p.keys("a")
	d.answer = refusing(500)
	p.flush(core.FlushOptions{})
	p.keys("a")
	looks := 0
	d.answer = func(*core.Batch) core.Response {
		d.look = func(core.Ref) error {
			if looks++; looks > 100 {
				panic("the flush goes round in circles")
			}
			return broken()
		}
		return core.Response{Status: 200}
	}
	r := p.flush(core.FlushOptions{Force: true})
	require.ErrorContains(t, r.Err, "the disk does not answer")
	require.NoError(t, r.RecoverErr)
	require.Equal(t, &core.Released{Claims: 1, Rows: 1}, r.Recovered)
	require.Equal(t, &core.Shipped{Rows: 1}, r.Written)
	require.Equal(t, 1, looks)
}

func TestFlushOfAStoreThatFails(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		fail func(*dock)
		want string
	}{
		{"the turn", func(d *dock) { d.turns.fail = broken }, "cannot take the turn of buffer b"},
		{"what is due", func(d *dock) { d.due = broken }, "the disk does not answer"},
		{"a record", func(d *dock) { d.look = func(core.Ref) error { return broken() } }, "the disk does not answer"},
		{"items", func(d *dock) { d.read = broken }, "the disk does not answer"},
		{"a claim", func(d *dock) { d.write = func(core.Ref) error { return broken() } }, "the disk does not answer"},
		{"a slot", func(d *dock) { d.slot = broken }, "the disk does not answer"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			d := newDock(t)
			p := d.process(docked())
			p.keys("a")
			tc.fail(d)
			house, err := p.flusher.Flush(context.Background(), core.FlushOptions{})
			require.NoError(t, err)
			require.False(t, house.OK())
			require.EqualError(t, house.Err(), "the flush failed for b: "+tc.want)
			r := house.Buffers[0]
			require.ErrorContains(t, r.Err, tc.want)
			require.Equal(t, core.Unavailable, core.CodeOf(r.Err))
			r.Err = nil
			require.Equal(t, core.BufferFlush{Buffer: "b"}, r, "nothing has left the store")
			require.Empty(t, d.taken())
			d.turns.fail, d.due, d.look, d.read, d.write, d.slot = nil, nil, nil, nil, nil, nil
			require.Equal(t, core.BufferFlush{Buffer: "b", Rows: 1}, p.flush(core.FlushOptions{}))
		})
	}
}

// A turn that can't be given back ends with its lease.
func TestFlushWhoseTurnCannotBeEnded(t *testing.T) {
	t.Parallel()
	d := newDock(t)
	p := d.process(docked())
	p.keys("a")
	d.answer = func(*core.Batch) core.Response {
		d.turns.fail = broken
		return core.Response{Status: 200}
	}
	r := p.flush(core.FlushOptions{})
	require.Equal(t, core.BufferFlush{Buffer: "b", Rows: 1}, r)
	require.Equal(t, []string{"end the turn: the disk does not answer"}, d.observed)
	d.turns.fail, d.answer = nil, nil
	require.Equal(t, 54*s, d.process(docked()).wait())
	d.pass(time.Minute)
	require.Zero(t, d.process(docked()).wait())
}

func TestFlushOfADeadEndpointStops(t *testing.T) {
	t.Parallel()
	d := newDock(t)
	p := d.process(docked()) // concurrency 4
	for i := range 100 {
		p.keys(fmt.Sprint(i))
	}
	d.answer = func(*core.Batch) core.Response {
		return core.Response{Err: core.Errorf(core.Unavailable, "connection refused")}
	}
	r := p.flush(core.FlushOptions{})
	require.Error(t, r.Err)
	require.GreaterOrEqual(t, r.Rows, 8)
	require.Less(t, r.Rows, 8+4, "those under way end")
	require.Nil(t, r.Written)
	require.Zero(t, p.wait(), "nothing shipped")

	d.answer = refusing(500, "7", "17", "27", "37", "47", "57", "67", "77", "87", "97")
	r = p.flush(core.FlushOptions{})
	require.GreaterOrEqual(t, r.Rows, 100-11, "failures here and there do not stop it")

	for i := range 100 {
		p.keys(fmt.Sprint("x", i))
	}
	d.answer = refusing(500)
	require.GreaterOrEqual(t, p.flush(core.FlushOptions{Force: true}).Rows, 100, "it answers, though with 500")
}

func TestFlushBuriesWhatIsRefusedForGood(t *testing.T) {
	t.Parallel()
	d := newDock(t)
	p := d.process(docked())
	for i := range 40 {
		p.keys(fmt.Sprint(i))
	}
	d.answer = refusing(400)
	r := p.flush(core.FlushOptions{})
	require.ErrorContains(t, r.Err, "40 batches failed; the first, of group ")
	require.Equal(t, 40, r.Rows, "the endpoint answers, so it goes on")
	require.Nil(t, r.Written)
	n, err := d.memory.DeadLetters().Count(context.Background(), core.DeadLetterFilter{})
	require.NoError(t, err)
	require.Equal(t, 40, n)
	require.Empty(t, d.busyGroups())

	p.keys("x")
	d.beforePut = func([]core.DeadLetter) error { return broken() }
	r = p.flush(core.FlushOptions{})
	require.ErrorContains(t, r.Err, "status 400")
	require.Equal(t, []string{"x"}, d.busyGroups(), "not dropped")
	require.Contains(t, d.observed, "put dead letters: the disk does not answer")
}

// A later flush that was forced ends before an earlier one: it is still the latest.
func TestCadenceCountsTheLatestBegin(t *testing.T) {
	t.Parallel()
	d := newDock(t)
	d.turns = &hookedTurns{Coordinator: d.turns.Coordinator}
	p := d.process(docked())
	p.keys("a")
	d.answer = func(b *core.Batch) core.Response {
		if b.Group == "a" {
			d.pass(20 * s)
			p.keys("b")
			require.Equal(t, 1, p.flush(core.FlushOptions{Force: true}).Rows)
		}
		return core.Response{Status: 200}
	}
	require.Equal(t, 1, p.flush(core.FlushOptions{}).Rows)
	require.Equal(t, 54*s, p.wait())
	d.pass(54 * s)
	require.Zero(t, p.wait())
}

// A flush keeps its turn while it sends the many batches of one window.
func TestFlushKeepsItsTurn(t *testing.T) {
	t.Parallel()
	d := newDock(t)
	folds := func(b *core.Buffer) {
		windowed(b)
		b.FlushEvery = s
		b.Fold = []core.FoldColumn{{Name: "n", Expr: "count"}}
	}
	p, q := d.process(docked(folds)), d.process(docked(folds))
	for i := range 20 {
		p.put(fmt.Sprintf(`{"ts":"2023-11-14T22:01:00Z","k":"%d"}`, i))
	}
	skipped := 0
	d.answer = func(*core.Batch) core.Response {
		d.pass(15 * s)
		if q.flush(core.FlushOptions{}).Skipped {
			skipped++
		}
		return core.Response{Status: 200}
	}
	require.Equal(t, core.BufferFlush{Buffer: "b", Buckets: 1, Rows: 20}, p.flush(core.FlushOptions{}))
	require.Len(t, d.taken(), 10)
	require.Equal(t, 10, skipped)
}

// The error of a claim is not that of a batch.
func TestFlushTellsFailuresApart(t *testing.T) {
	t.Parallel()
	d := newDock(t)
	c := docked()
	c.Destinations[0].Concurrency = 1
	p := d.process(c)
	p.keys("a", "b", "c")
	d.look = func(r core.Ref) error {
		if r.Key == "a" {
			return broken()
		}
		return nil
	}
	d.answer = refusing(500, "b", "c")
	r := p.flush(core.FlushOptions{})
	require.EqualError(t, r.Err, "the disk does not answer")
	require.Equal(t, 2, r.Rows)
}

// What was taken of a batch was written; what was not is a failure.
func TestFlushOfWhatIsTakenInPart(t *testing.T) {
	t.Parallel()
	d := newDock(t)
	p := d.process(docked(func(b *core.Buffer) { b.Batch.MaxItems = 10 }))
	p.keys("a", "a", "a")
	d.answer = func(*core.Batch) core.Response {
		return core.Response{Status: 200, Failed: core.Bits(nil).With(1)}
	}
	r := p.flush(core.FlushOptions{})
	require.Equal(t, `group "a": status 200, but not for 1 of its items`, core.DetailOf(r.Err))
	require.Equal(t, 3, r.Rows)
	require.Equal(t, &core.Shipped{Rows: 2}, r.Written)
	require.Equal(t, 54*s, p.wait())
	d.answer = nil
	r = p.flush(core.FlushOptions{Force: true})
	require.Equal(t, core.BufferFlush{Buffer: "b", Rows: 1, Recovered: &core.Released{Claims: 1, Rows: 1}}, r)
}

// What could not be settled is told beside a later failure.
func TestFlushAckErrBesideAnError(t *testing.T) {
	t.Parallel()
	d := newDock(t)
	c := docked()
	c.Destinations[0].Concurrency = 1
	p := d.process(c)
	p.keys("a", "b")
	d.answer = func(b *core.Batch) core.Response {
		d.write = nil
		if b.Group == "b" {
			return core.Response{Status: 500}
		}
		d.write = func(core.Ref) error {
			d.write = nil
			return broken()
		}
		return core.Response{Status: 200}
	}
	r := p.flush(core.FlushOptions{})
	require.ErrorContains(t, r.Err, `group "b"`)
	require.ErrorContains(t, r.AckErr, "the disk does not answer")
	require.NoError(t, r.ReleaseErr)
	require.Equal(t, &core.Shipped{Rows: 1}, r.Written)
}
