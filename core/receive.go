package core

import (
	"context"
	"errors"
)

// Receive takes events that a queue has handed over, each a message of its own,
// and says by their positions which were not taken: the queue is to hand those
// over again. A message that is not taken holds back those behind it in its own
// unit of order, and no other. Like [Ingester.Ingest] it fills in what is
// missing; the ids must be those of the messages.
func (in *Ingester) Receive(ctx context.Context, source string, events []Event) (left Bits, why error) {
	at := make([]int, len(events)) // where each of those still to be taken was
	for i := range at {
		at[i] = i
	}
	stopped := make(map[string]bool) // units of which one was not taken
	for len(at) > 0 {
		batch := make([]Event, 0, len(at))
		for _, i := range at {
			batch = append(batch, events[i])
		}
		_, err := in.Ingest(ctx, source, batch)
		if err == nil {
			return left, why
		}
		if why == nil {
			why = err
		}
		refused, one := errors.AsType[*EventError](err)
		if !one {
			for _, i := range at {
				left = left.With(i)
			}
			return left, why
		}
		bad := at[refused.Index]
		stopped[events[bad].Unit] = events[bad].Unit != ""
		var next []int
		for _, i := range at {
			if i == bad || i > bad && stopped[events[i].Unit] {
				left = left.With(i)
			} else {
				next = append(next, i)
			}
		}
		at = next
	}
	return left, why
}
