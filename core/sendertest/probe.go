package sendertest

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/core/format"
)

const (
	patience  = time.Minute            // no send of the suite is meant to take this long
	impatient = 100 * time.Millisecond // the least timeout that a destination may have
)

// start is when the batches of the suite begin to arrive.
var start = core.At(time.Date(2026, 3, 4, 5, 6, 7, 89e6, time.UTC))

// probe is what a case works with.
type probe struct {
	t       *testing.T
	harness *Harness
	format  format.Format
}

// open starts a destination.
func (p *probe) open(timeout time.Duration) Destination {
	return p.harness.New(p.t, p.format, timeout)
}

// batch is a batch of an id with these bodies.
func batch(id string, bodies ...string) *core.Batch {
	b := &core.Batch{ID: id, Buffer: "orders", Group: "k/ä 1", Reason: core.ReasonItems, Attempt: 1}
	for i, body := range bodies {
		b.Items = append(b.Items, core.Item{Seq: uint64(i + 1), Event: core.Event{
			ID: fmt.Sprintf("%s ev-%d", id, i), Source: "s", ContentType: "application/json",
			Headers:    []core.Header{{Name: "x-n", Value: fmt.Sprint(i)}},
			ReceivedAt: start + core.Millis(i), Body: []byte(body),
		}})
	}
	return b
}

// numbered is a batch of n small items, all different from those of other ids.
func numbered(id string, n int) *core.Batch {
	bodies := make([]string, n)
	for i := range bodies {
		bodies[i] = fmt.Sprintf(`{"batch":%q,"n":%d}`, id, i)
	}
	return batch(id, bodies...)
}

// deliver sends a batch that must be delivered.
func (p *probe) deliver(d *Destination, b *core.Batch) {
	p.t.Helper()
	r := d.Sender.Send(p.t.Context(), b)
	require.NoError(p.t, r.Err)
	require.Equal(p.t, core.Delivered, core.Classify(&r, nil), "status %d, answer %q", r.Status, r.Answer)
}

// fail sends a batch that must come to an outcome other than delivered.
func (p *probe) fail(ctx context.Context, d *Destination, b *core.Batch, want core.Outcome) core.Response {
	p.t.Helper()
	r := d.Sender.Send(ctx, b)
	require.Equal(p.t, want, core.Classify(&r, nil), "status %d, error %v, answer %q", r.Status, r.Err, r.Answer)
	return r
}

// arrived checks that the destination has these batches and nothing else, byte
// for byte and in this order.
func (p *probe) arrived(d *Destination, batches ...*core.Batch) {
	p.t.Helper()
	if p.harness.Pieces != nil {
		p.piecesArrived(d, batches, p.harness.Ordered)
		return
	}
	var want []byte
	for _, b := range batches {
		want = format.Append(want, p.format, b)
	}
	require.Equal(p.t, string(want), string(bytes.Join(d.Received(), nil)))
}

// arrivedInAnyOrder checks that the destination has each of these batches
// once, whole, and nothing else.
func (p *probe) arrivedInAnyOrder(d *Destination, batches []*core.Batch) {
	p.t.Helper()
	if p.harness.Pieces != nil {
		p.piecesArrived(d, batches, false)
		return
	}
	got := bytes.Join(d.Received(), nil)
	for _, b := range batches {
		want := format.Append(nil, p.format, b)
		require.Equal(p.t, 1, bytes.Count(got, want), "batch %s", b.ID)
		got = bytes.Replace(got, want, []byte{0}, 1) // no format holds a zero byte
	}
	require.Equal(p.t, make([]byte, len(batches)), got)
}

// piecesArrived checks that the destination has the pieces of these batches and
// nothing else, in whatever order or in this one.
func (p *probe) piecesArrived(d *Destination, batches []*core.Batch, ordered bool) {
	p.t.Helper()
	var want [][]byte
	for _, b := range batches {
		want = append(want, p.harness.Pieces(b)...)
	}
	got := slices.Clone(d.Received())
	if !ordered {
		slices.SortFunc(want, bytes.Compare)
		slices.SortFunc(got, bytes.Compare)
	}
	require.Equal(p.t, want, got)
}
