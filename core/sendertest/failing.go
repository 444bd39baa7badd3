package sendertest

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

var stallTests = []test{
	{"a caller that goes away ends its send", stallCanceled},
	{"a caller's deadline ends its send", stallDeadline},
	{"a send that gets no answer in time is to be retried", stallTimeout},
}

func stallCanceled(t *testing.T, p *probe) {
	d := p.open(patience)
	reached := d.Stall()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan core.Response, 1)
	go func() { done <- d.Sender.Send(ctx, numbered("b", 2)) }()
	<-reached
	cancel()
	r := <-done
	require.Equal(t, core.Interrupted, core.Classify(&r, nil), "error %v", r.Err)
}

func stallDeadline(t *testing.T, p *probe) {
	d := p.open(patience)
	d.Stall()
	ctx, cancel := context.WithTimeout(t.Context(), impatient)
	defer cancel()
	p.fail(ctx, &d, numbered("b", 2), core.Interrupted)
}

func stallTimeout(t *testing.T, p *probe) {
	d := p.open(impatient)
	d.Stall()
	r := p.fail(t.Context(), &d, numbered("b", 2), core.Retry)
	require.Equal(t, core.Unavailable, core.CodeOf(r.Err))
}

var partialTests = []test{
	{"one failed item of five", partialOne},
	{"a failed item named twice", partialTwice},
	{"every item fails", partialAll},
	{"no item fails", partialNone},
	{"an item that is not in the batch", partialUnknown},
}

func partialOne(t *testing.T, p *probe) {
	d, b := p.open(patience), numbered("b", 5)
	d.FailItems(p.format.ItemID(b, 1))
	r := p.fail(t.Context(), &d, b, core.Partial)
	require.Equal(t, core.Bits(nil).With(1), r.Failed)
}

func partialTwice(t *testing.T, p *probe) {
	d, b := p.open(patience), numbered("b", 20)
	d.FailItems(p.format.ItemID(b, 17), p.format.ItemID(b, 0), p.format.ItemID(b, 17))
	r := p.fail(t.Context(), &d, b, core.Partial)
	require.Equal(t, core.Bits(nil).With(0).With(17), r.Failed)
}

// partialAll: whether the destination says so item by item or at once, no
// item counts as delivered.
func partialAll(t *testing.T, p *probe) {
	d, b := p.open(patience), numbered("b", 2)
	d.FailItems(p.format.ItemID(b, 0), p.format.ItemID(b, 1))
	r := d.Sender.Send(t.Context(), b)
	if core.Classify(&r, nil) != core.Retry {
		require.Equal(t, core.Partial, core.Classify(&r, nil))
		require.Equal(t, len(b.Items), r.Failed.Len())
	}
}

func partialNone(t *testing.T, p *probe) {
	d := p.open(patience)
	d.FailItems()
	p.deliver(&d, numbered("b", 2))
}

func partialUnknown(t *testing.T, p *probe) {
	d, b := p.open(patience), numbered("b", 5)
	d.FailItems(p.format.ItemID(b, 1), "nobody")
	r := p.fail(t.Context(), &d, b, core.Retry)
	require.Zero(t, r.Failed.Len())
}

var throttleTests = []test{{"a destination that asks for a pause is to be retried after it", throttled}}

func throttled(t *testing.T, p *probe) {
	d := p.open(patience)
	told := d.Throttle(3 * time.Second)
	r := p.fail(t.Context(), &d, numbered("b", 2), core.Retry)
	require.Equal(t, told, r.RetryAfter)
}

var refusalTests = []test{{"a refused batch is refused for good", refused}}

func refused(t *testing.T, p *probe) {
	d := p.open(patience)
	d.Refuse()
	p.fail(t.Context(), &d, numbered("b", 2), core.Permanent)
}

var oversizeTests = []test{{"what is too large is refused for good", oversized}}

// oversized: whether the destination says so item by item or at once, no item
// is to be sent again.
func oversized(t *testing.T, p *probe) {
	d := p.open(patience)
	d.TooLarge()
	large := strings.Repeat("x", 2<<10)
	r := d.Sender.Send(t.Context(), batch("b", large, large))
	if core.Classify(&r, nil) != core.Permanent {
		require.Equal(t, core.Partial, core.Classify(&r, nil), "%+v", r)
		require.Equal(t, 2, r.Refused.Len())
	}
}
