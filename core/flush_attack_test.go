package core_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

// The rows of other settings have the numbers of earlier ones, but are others:
// each that is refused for good is a dead letter of its own.
func TestDeadLettersOfRowsUnderOtherSettings(t *testing.T) {
	t.Parallel()
	d := newDock(t)
	letters := map[string]string{}
	d.beforePut = func(put []core.DeadLetter) error {
		for i := range put {
			if was, known := letters[put[i].ID]; known {
				require.Equal(t, was, string(put[i].Item.Body), "letter %s", put[i].ID)
			}
			letters[put[i].ID] = string(put[i].Item.Body)
			require.Contains(t, put[i].Batch, fmt.Sprintf(".%d-%d", 1, 2), "the batch that was sent")
		}
		return nil
	}
	columns := func(name string) *core.Config {
		return docked(windowed, func(b *core.Buffer) { b.Fold = []core.FoldColumn{{Name: name, Expr: "count"}} })
	}
	p := d.process(columns("n"))
	for key := range 4 {
		p.put(fmt.Sprintf(`{"ts":"2023-11-14T22:01:00Z","k":"%d"}`, key))
	}
	d.answer = func(b *core.Batch) core.Response {
		if strings.Contains(b.ID, ".1-2") {
			return core.Response{Status: 400}
		}
		return core.Response{Status: 500}
	}
	require.Error(t, p.flush(core.FlushOptions{}).Err)
	require.Error(t, d.process(columns("m")).flush(core.FlushOptions{Force: true}).Err)
	require.Len(t, letters, 4, "two rows of each settings")
}

// A folded claim tells of its first failure, also when its last batch is taken.
func TestFlushTellsOfARowThatWasRefused(t *testing.T) {
	t.Parallel()
	d := newDock(t)
	p := d.process(docked(windowed, func(b *core.Buffer) { b.Fold = []core.FoldColumn{{Name: "n", Expr: "count"}} }))
	for key := range 4 {
		p.put(fmt.Sprintf(`{"ts":"2023-11-14T22:01:00Z","k":"%d"}`, key))
	}
	d.answer = func(b *core.Batch) core.Response {
		if strings.Contains(b.ID, ".1-2") {
			return core.Response{Status: 400}
		}
		return core.Response{Status: 200}
	}
	r := p.flush(core.FlushOptions{})
	require.ErrorContains(t, r.Err, "status 400")
	require.Equal(t, 1, r.Buckets)
	require.Equal(t, &core.Shipped{Rows: 2}, r.Written)
	require.Empty(t, d.busyGroups(), "and yet all of it has left")
}

// A flush that ends between two batches of a window has not shipped it.
func TestFlushThatEndsWithinAWindow(t *testing.T) {
	t.Parallel()
	d := newDock(t)
	p := d.process(docked(windowed, func(b *core.Buffer) { b.Fold = []core.FoldColumn{{Name: "n", Expr: "count"}} }))
	for key := range 6 {
		p.put(fmt.Sprintf(`{"ts":"2023-11-14T22:01:00Z","k":"%d"}`, key))
	}
	while, end := context.WithCancel(context.Background())
	defer end()
	d.answer = func(*core.Batch) core.Response {
		end()
		return core.Response{Status: 200}
	}
	r := p.flush(core.FlushOptions{While: while})
	require.ErrorContains(t, r.Err, "the time was over")
	require.Equal(t, &core.Shipped{Rows: 2}, r.Written, "no whole window")
	require.Zero(t, p.wait(), "it has not had its turn")
	d.answer = nil
	r = p.flush(core.FlushOptions{})
	require.NoError(t, r.Err)
	require.Equal(t, 4, r.Rows)
}

// A batch that is refused for good does not keep a flush from those behind it.
func TestFlushGoesOnBehindARefusedBatch(t *testing.T) {
	t.Parallel()
	d := newDock(t)
	p := d.process(docked())
	for range 6 {
		p.keys("a")
	}
	d.answer = func(b *core.Batch) core.Response {
		if b.Items[0].Seq == 1 {
			return core.Response{Status: 400}
		}
		return core.Response{Status: 200}
	}
	r := p.flush(core.FlushOptions{})
	require.ErrorContains(t, r.Err, "status 400")
	require.Equal(t, 6, r.Rows)
	require.Equal(t, &core.Shipped{Rows: 4}, r.Written)
	require.Empty(t, d.busyGroups())
}

// What another is sending a flush waits for, and then ships what is behind it.
func TestFlushWaitsForWhoIsSending(t *testing.T) {
	t.Parallel()
	d := newDock(t)
	c := docked(func(b *core.Buffer) { b.FlushEvery = 0 })
	p, q := d.process(c), d.process(c)
	p.keys("a", "a", "a")
	sending, answer := make(chan struct{}), make(chan struct{})
	d.answer = func(b *core.Batch) core.Response {
		if b.Items[0].Seq == 1 {
			close(sending)
			<-answer
		}
		return core.Response{Status: 200}
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.flush(core.FlushOptions{})
	}()
	<-sending
	p.keys("a")
	d.sleep = func(context.Context, time.Duration) error {
		select {
		case <-answer:
		default:
			close(answer)
		}
		<-ended
		return nil
	}
	require.NoError(t, q.flush(core.FlushOptions{Force: true}).Err)
	<-ended
	require.Empty(t, d.busyGroups())
}

// When a deliverer is known to have died, its claim's deadline is not known,
// and lateness is counted from the takeover.
func TestLatenessOfAnAbandonedClaim(t *testing.T) {
	t.Parallel()
	d := newDock(t)
	p := d.process(docked(func(b *core.Buffer) { b.FlushEvery = 0 }))
	p.keys("a")
	ref := core.Ref{Buffer: "b", Key: "a"}
	_, err := d.memory.Update(context.Background(), ref, nil, func(g *core.Group) error {
		_, err := g.Claim(core.Taking{From: 1, To: 1, Through: g.TailBytes, Items: 1, Reason: core.ReasonIdle},
			&core.Policy{MaxItems: 1, MaxBytes: 1, IdleTimeout: s, MaxWait: s, Lease: s, MaxHold: s}, d.clock())
		g.Abandon()
		return err
	})
	require.NoError(t, err)
	d.pass(time.Minute)
	_, err = p.deliverer.Deliver(context.Background(), core.Delivery{Ref: ref, Destination: "out"})
	require.NoError(t, err)
	require.Equal(t, []time.Duration{0}, d.lateness)
}
