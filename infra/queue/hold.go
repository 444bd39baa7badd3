package queue

import (
	"context"
	"slices"
	"sync"

	"sluice/core"
)

// Hold waits for a part of a destination's lane, as a delivery does: it is one
// more send under way until release is called. While deliveries wait, too, the
// two take turns. Unavailable: the queue has stopped. Ending ctx ends the
// waiting, and is then the error.
func (q *Queue) Hold(ctx context.Context, destination string) (release func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	q.mu.Lock()
	if q.stopped {
		q.mu.Unlock()
		return nil, errStopped()
	}
	l, h := q.lane(destination), make(hold, 1)
	l.holds = append(l.holds, h)
	q.staff(destination, l)
	q.mu.Unlock()

	select {
	case granted := <-h:
		if !granted {
			return nil, errStopped()
		}
		return sync.OnceFunc(func() { q.release(destination, l) }), nil
	case <-ctx.Done():
		q.withdraw(destination, l, h)
		return nil, ctx.Err()
	}
}

func errStopped() error { return core.Errorf(core.Unavailable, "the process is stopping") }

// release gives a holder's slot to what waits.
func (q *Queue) release(destination string, l *lane) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l.busy--
	q.holders.Done()
	q.staff(destination, l)
}

// withdraw gives a hold up. If it has got its slot meanwhile, it releases that.
func (q *Queue) withdraw(destination string, l *lane, h hold) {
	q.mu.Lock()
	i := slices.Index(l.holds, h)
	if i >= 0 {
		l.holds = slices.Delete(l.holds, i, i+1)
	}
	q.mu.Unlock()
	if i < 0 && <-h {
		q.release(destination, l)
	}
}
