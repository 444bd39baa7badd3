// Package queue is the in-process [core.Queue]: a lane for each destination,
// with its own bound on deliveries under way, in which buffers take turns.
//
//	                 ┌ buffer a: ref ref ref ┐
//	destination x ─▶ ┤                       ├─ in turn ─▶ at most limit(x) at work
//	                 └ buffer b: ref         ┘
//	destination y ─▶ …
//
// So a slow destination holds up nothing but what is for it, and a busy buffer
// no other. A delivery that waits already is not queued twice; what waits ends
// with the process, and the store hands it over again.
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
	stopped bool
	workers sync.WaitGroup
}

// New makes a queue. limit says how many deliveries to a destination may be
// under way; it is asked again for each. Nothing is worked on before Start.
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
// the queue has stopped it is dropped, like those that waited then.
func (q *Queue) Hand(_ context.Context, d core.Delivery) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.stopped {
		return nil
	}
	l := q.lanes[d.Destination]
	if l == nil {
		l = newLane()
		q.lanes[d.Destination] = l
	}
	l.push(d)
	if q.started {
		q.staff(d.Destination, l)
	}
	return nil
}

// Stop drops what waits, and returns when what is under way has ended. Ending
// ctx cancels it, and is then the error.
func (q *Queue) Stop(ctx context.Context) error {
	q.mu.Lock()
	q.stopped = true
	clear(q.lanes)
	q.mu.Unlock()

	ended := make(chan struct{})
	go func() {
		q.workers.Wait()
		close(ended)
	}()
	defer q.cancel()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		q.cancel()
		<-ended
		return ctx.Err()
	}
}

// staff adds a worker to a lane in which something waits, if there is room. A
// worker that takes something does the same. q.mu is held.
func (q *Queue) staff(destination string, l *lane) {
	if l.waiting() > 0 && l.workers < q.room(destination) {
		l.workers++
		q.workers.Go(func() { q.serve(destination, l) })
	}
}

func (q *Queue) room(destination string) int { return max(1, q.limit(destination)) }

// serve works on a lane until nothing waits in it.
func (q *Queue) serve(destination string, l *lane) {
	for {
		d, ok := q.next(destination, l)
		if !ok {
			return
		}
		q.work(q.ctx, d)
	}
}

// next takes the next delivery for a worker; without one, the worker leaves.
func (q *Queue) next(destination string, l *lane) (core.Delivery, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.stopped && l.workers <= q.room(destination) {
		if d, ok := l.pop(); ok {
			q.staff(destination, l)
			return d, true
		}
	}
	l.workers--
	return core.Delivery{}, false
}
