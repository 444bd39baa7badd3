package cloud

import (
	"context"
	"time"

	"sluice/core"
)

// moment is how long a letter waits for a breaker or a rate limit, in a slot that
// others want: its queue brings it again.
const moment = 3 * time.Second

// redrive sends dead letters that come by queue, one a message. One that is
// not taken again goes back to its queue, and from there to the dead letters.
type redrive struct {
	catalog    *core.Catalog
	ports      core.Ports
	deliveries *deliveries
}

func (r *redrive) work(ctx context.Context, l core.DeadLetter) error {
	dest := r.catalog.Destination(l.Destination)
	if dest == nil {
		return core.Errorf(core.NotFound, "dead letter %s is for destination %s, which is not configured", l.ID, l.Destination)
	}
	begin, stop := latest(ctx, dest.Timeout)
	defer stop()
	free, ok := r.deliveries.slots.take(begin, dest.Name)
	if !ok {
		return core.Errorf(core.Unavailable, "dead letter %s was not sent: there was no time for it", l.ID)
	}
	defer free()
	one := &inHand{letter: l}
	q := core.ReplayRequest{Max: 1}
	q.Budget = moment
	if at, ok := begin.Deadline(); ok { // it does not wait for a breaker or a rate limit until there is no time to send
		q.Budget = max(time.Millisecond, min(q.Budget, time.Until(at)))
	}
	report, err := core.NewReplayer(r.catalog, r.ports, one).Replay(ctx, q)
	if err == nil && report.Replayed == 0 {
		err = core.Errorf(core.Unavailable, "dead letter %s was not taken by %s; the log says why", l.ID, dest.Name)
	}
	return err
}

// inHand is a queue of the one dead letter that a message has brought. To
// remove it is to have the message deleted.
type inHand struct {
	letter core.DeadLetter
	taken  bool
}

var _ core.DeadLetterQueue = (*inHand)(nil)

// List is the letter.
func (q *inHand) List(context.Context, core.DeadLetterFilter, string, int) ([]core.DeadLetter, string, error) {
	return []core.DeadLetter{q.letter}, "", nil
}

// Count is how many letters are left to take.
func (q *inHand) Count(context.Context, core.DeadLetterFilter) (int, error) {
	if q.taken {
		return 0, nil
	}
	return 1, nil
}

// Take takes the letter, once.
func (q *inHand) Take(context.Context, core.DeadLetterFilter, int, core.Millis, core.Millis) ([]core.DeadLetter, error) {
	if q.taken {
		return nil, nil
	}
	q.taken = true
	return []core.DeadLetter{q.letter}, nil
}

// Settle does nothing: what becomes of the message is the function's answer.
func (*inHand) Settle(context.Context, []core.DeadLetter, []core.DeadLetter) error { return nil }
