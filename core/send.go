package core

import (
	"context"
	"fmt"
	"time"
)

// send sends one batch to a destination, and says what came of it.
func (p *Ports) send(ctx context.Context, c *Catalog, d *Destination, b *Batch) (Response, Outcome) {
	r := p.call(ctx, c, d.Name, b)
	outcome := Classify(&r, d.Retry.On)
	switch {
	case outcome == Interrupted && ctx.Err() == nil:
		outcome = Retry // it was not this process that ended the send
	case outcome == Partial:
		outcome = partial(b, &r)
	}
	return r, outcome
}

// partial is the outcome of a batch of which items were not taken.
func partial(b *Batch, r *Response) Outcome {
	n := len(failedItems(b.Items, r.Failed))
	refused := r.Refused.And(r.Failed).Len()
	switch {
	case n < r.Failed.Len():
		return Retry // which were taken is not clear: the batch stays as it is
	case n < len(b.Items), 0 < refused && refused < n:
		return Partial
	case refused == n:
		return Permanent
	}
	return Retry // none was taken: neither does anything change
}

// call makes the call. A sender that panics has failed, and nothing else has.
func (p *Ports) call(ctx context.Context, c *Catalog, destination string, b *Batch) (r Response) {
	defer func() {
		if v := recover(); v != nil {
			r = Response{Err: &Error{Code: Internal, Detail: "the sender failed", Err: fmt.Errorf("panic: %v", v)}}
		}
	}()
	s := p.sender(c, destination)
	if s == nil {
		return Response{Err: Errorf(Unavailable, "there is no sender for destination %s", destination)}
	}
	return s.Send(ctx, b)
}

// timely reports whether there is time for one more send and its settling.
func (p *Ports) timely(ctx context.Context, timeout time.Duration) bool {
	if ctx.Err() != nil {
		return false
	}
	deadline, ok := ctx.Deadline()
	return !ok || At(deadline).Sub(p.Clock.Now()) >= timeout+leaseMargin
}
