package core

import (
	"context"
	"errors"
)

// Receive takes events that a queue has handed over, each a message of its own,
// and says of each why it was not taken, or nil: the queue is to hand those over
// again. A message that is not taken holds back those behind it in its own unit
// of order, for the same reason, and no other: where a group has no room, the
// others have, and where another request has an event of the same id in hand
// (Conflict), it alone waits. Like [Ingester.Ingest] it fills in what is missing; the ids must
// be those of the messages.
func (in *Ingester) Receive(ctx context.Context, source string, events []Event) []error {
	r := &receiving{in: in, route: in.catalog.Route(source), events: events, why: make([]error, len(events))}
	at := make([]int, len(events)) // where each of those still to be taken was
	for i := range at {
		at[i] = i
	}
	if r.route == nil {
		r.refuse(at, noSource(source))
		return r.why
	}
	r.all(ctx, at)
	in.count(source, &r.sum, r.refused)
	return r.why
}

// receiving is one call of Receive.
type receiving struct {
	in      *Ingester
	route   *Route
	events  []Event
	why     []error
	sum     Receipt // of those that were taken, the numbers
	refused int     // that would be refused again
}

// all takes events as one request, as long as it is plain which of them to leave.
func (r *receiving) all(ctx context.Context, at []int) {
	for len(at) > 0 {
		err := r.ingest(ctx, at)
		refused, one := errors.AsType[*EventError](err)
		switch {
		case err == nil:
			return
		case one:
			at = r.without(at, at[refused.Index], refused.Err)
		case len(at) == 1 || forAll(err):
			r.refuse(at, err)
			return
		default:
			r.singly(ctx, at)
			return
		}
	}
}

// ingest takes the events at some positions, all or none.
func (r *receiving) ingest(ctx context.Context, at []int) error {
	batch := make([]Event, len(at))
	for n, i := range at {
		batch[n] = r.events[i]
	}
	got, err := r.in.ingest(ctx, r.route, batch)
	r.sum.Accepted += got.Accepted
	r.sum.Unrouted += got.Unrouted
	r.sum.Filtered += got.Filtered
	r.sum.Duplicates += got.Duplicates
	return err
}

// refuse leaves events to the queue. What only has to wait is not refused yet.
func (r *receiving) refuse(at []int, err error) {
	if code := CodeOf(err); code == Invalid || code == TooLarge {
		r.refused += len(at)
	}
	for _, i := range at {
		r.why[i] = err
	}
}

// stopped is why one ahead of an event, of its unit, was not taken. In order
// there are ten at the most.
func (r *receiving) stopped(i int) error {
	unit := r.events[i].Unit
	for j := 0; unit != "" && j < i; j++ {
		if r.why[j] != nil && r.events[j].Unit == unit {
			return r.why[j]
		}
	}
	return nil
}

// without is what is still to be taken when one event is refused.
func (r *receiving) without(at []int, bad int, err error) (next []int) {
	r.refuse([]int{bad}, err)
	for _, i := range at {
		if i == bad {
			continue
		}
		if r.why[i] = r.stopped(i); r.why[i] == nil {
			next = append(next, i)
		}
	}
	return next
}

// singly takes events one by one, in order.
func (r *receiving) singly(ctx context.Context, at []int) {
	for n, i := range at {
		if r.why[i] = r.stopped(i); r.why[i] != nil {
			continue
		}
		err := r.ingest(ctx, at[n:n+1])
		refused, one := errors.AsType[*EventError](err)
		switch {
		case err == nil:
		case one:
			r.refuse(at[n:n+1], refused.Err)
		case forAll(err):
			r.refuse(at[n:], err)
			return
		default:
			r.refuse(at[n:n+1], err)
		}
	}
}

// forAll reports whether what one event meets is met by all.
func forAll(err error) bool {
	switch CodeOf(err) {
	case Unavailable, Canceled, NotFound:
		return true
	default:
		return false
	}
}
