// Package queue is the in-process [core.Queue]: a lane for each destination,
// with its own bound on deliveries under way, in which buffers take turns.
//
//	                 ┌ buffer a: ref ref ref ┐
//	destination x ─▶ ┤                       ├─ in turn ─▶ at most limit(x) at work
//	                 └ buffer b: ref         ┘
//	                   holds: hold hold ─────── every second one while both wait
//	destination y ─▶ …
//
// So a slow destination holds up nothing but what is for it, and a busy buffer
// no other. A delivery that waits already is not queued twice; what waits ends
// with the process, and the store hands it over again.
//
// What sends by itself, as a flush does, takes its part of a lane by [Queue.Hold].
package queue

import (
	"context"
	"sync"

	"sluice/core"
)

// Queue hands deliveries to workers.
type Queue struct {
	limit func(destination string) int
	work  func(context.Context, core.Delivery)

	ctx    context.Context //nolint:containedctx // the workers' own, ended by Stop
	cancel context.CancelFunc

	mu      sync.Mutex
	lanes   map[string]*lane
	started bool
	closed  bool // to deliveries
	stopped bool // to holds, too
	workers sync.WaitGroup
	holders sync.WaitGroup
}

// New makes a queue. limit says how many sends to a destination may be under
// way; it is asked again for each. Nothing begins before Start.
func New(limit func(destination string) int) *Queue {
	ctx, cancel := context.WithCancel(context.Background())
	return &Queue{limit: limit, ctx: ctx, cancel: cancel, lanes: make(map[string]*lane)}
}

// Start begins to work.
func (q *Queue) Start(work func(context.Context, core.Delivery)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.work, q.started = work, true
	for name, l := range q.lanes {
		q.staff(name, l)
	}
}

// Hand queues a delivery, unless one for the same group waits already. Once
// deliveries have ended it is dropped, like those that waited then.
func (q *Queue) Hand(_ context.Context, d core.Delivery) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil
	}
	l := q.lane(d.Destination)
	l.push(d)
	q.staff(d.Destination, l)
	return nil
}

// EndDeliveries drops those that wait, and returns when those under way have
// ended; holds go on. It does not wait beyond the end of ctx, which is then the
// error.
func (q *Queue) EndDeliveries(ctx context.Context) error {
	q.mu.Lock()
	q.closed = true
	for _, l := range q.lanes {
		l.drop()
	}
	q.mu.Unlock()
	return wait(ctx, &q.workers)
}

// Quiet returns when nothing is under way, holds included. It does not wait
// beyond the end of ctx, which is then the error.
func (q *Queue) Quiet(ctx context.Context) error { return wait(ctx, &q.workers, &q.holders) }

// Stop drops what waits, and returns when what is under way has ended. Ending
// ctx cancels the deliveries under way, and is then the error; it is for the
// holders to end then, too.
func (q *Queue) Stop(ctx context.Context) error {
	q.mu.Lock()
	q.closed, q.stopped = true, true
	for _, l := range q.lanes {
		l.drop()
		l.refuse()
	}
	q.mu.Unlock()

	defer q.cancel()
	err := wait(ctx, &q.workers, &q.holders)
	if err != nil {
		q.cancel()
		_ = wait(context.Background(), &q.workers, &q.holders) // does not fail
	}
	return err
}

// wait waits for groups, or until ctx ends.
func wait(ctx context.Context, groups ...*sync.WaitGroup) error {
	ended := make(chan struct{})
	go func() {
		for _, g := range groups {
			g.Wait()
		}
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// lane is the lane of a destination. q.mu is held.
func (q *Queue) lane(destination string) *lane {
	l := q.lanes[destination]
	if l == nil {
		l = newLane()
		q.lanes[destination] = l
	}
	return l
}

// staff gives the free slots of a lane to what waits in it. q.mu is held.
func (q *Queue) staff(destination string, l *lane) {
	for d, ok := q.take(destination, l); ok; d, ok = q.take(destination, l) {
		q.workers.Go(func() { q.serve(destination, l, d) })
	}
}

// take takes the next delivery and a slot for it, if there is one, after it has
// given one to each hold whose turn comes before. q.mu is held.
func (q *Queue) take(destination string, l *lane) (core.Delivery, bool) {
	for q.started && l.waiting() && l.busy < max(1, q.limit(destination)) {
		l.busy++
		h := l.hold()
		if h == nil {
			return l.pop()
		}
		q.holders.Add(1)
		h <- true
	}
	return core.Delivery{}, false
}

// serve makes a delivery, and others until nothing waits in its lane.
func (q *Queue) serve(destination string, l *lane, d core.Delivery) {
	for ok := true; ok; d, ok = q.next(destination, l) {
		q.work(q.ctx, d)
	}
}

// next ends a worker's delivery and takes another; without one, the worker
// leaves.
func (q *Queue) next(destination string, l *lane) (core.Delivery, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l.busy--
	d, ok := q.take(destination, l)
	q.staff(destination, l) // the limit may have been raised
	return d, ok
}
