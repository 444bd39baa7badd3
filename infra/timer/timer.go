// Package timer is the in-process [core.Timer]: one heap and one goroutine,
// whatever the number of groups.
//
// A hint is kept by the time that is left when it is armed, on the monotonic
// clock: setting the system clock neither delays nor hastens it (nor does time
// pass while a host sleeps; the sweep makes up for that). What it then means is
// for the checker. Hints end with the process; the next one arms them again
// from the store.
//
// A group has one hint for its check: one that comes later in the order of
// [core.Hint.Check], or is of a later life, replaces the one before.
package timer

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"sluice/core"
)

// fires is how many hints are fired at a time.
const fires = 64

// Timer fires hints at their times.
type Timer struct {
	clock core.Clock
	start time.Time // zero of the entries' times

	mu      sync.Mutex
	heap    entries
	byKey   map[key]*entry
	stopped bool

	wake   chan struct{} // the first entry has changed
	cancel context.CancelFunc
	done   sync.WaitGroup
}

// New makes a timer that reads hints' times by a clock. It fires nothing
// before Start.
func New(clock core.Clock) *Timer {
	return &Timer{clock: clock, start: time.Now(), byKey: make(map[key]*entry), wake: make(chan struct{}, 1)}
}

// Start begins to fire hints, at most 64 at a time, in the order of their times.
func (t *Timer) Start(fire func(context.Context, core.Hint)) {
	ctx, cancel := context.WithCancel(context.Background())
	t.cancel = cancel
	t.done.Go(func() { t.run(ctx, fire) })
}

// Arm keeps a hint until its time; one whose time has passed fires at once.
// Once the timer has stopped it is dropped, like those that waited then.
func (t *Timer) Arm(_ context.Context, h core.Hint) error {
	left := h.At.Sub(t.clock.Now())
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopped {
		return nil
	}
	if e := t.place(h, time.Since(t.start)+max(0, left)); e != nil && e.index == 0 {
		select {
		case t.wake <- struct{}{}:
		default:
		}
	}
	return nil
}

// place puts a hint in its place of the heap, unless a later one of the same
// life is there.
func (t *Timer) place(h core.Hint, at time.Duration) *entry {
	k := keyOf(&h)
	e := t.byKey[k]
	for e != nil && e.hint.Life > h.Life {
		k.behind++
		e = t.byKey[k]
	}
	switch {
	case e == nil:
		e = &entry{at: at, key: k, hint: h}
		t.byKey[k] = e
		heap.Push(&t.heap, e)
	case e.hint.Life == h.Life && e.hint.Check > h.Check:
		return nil
	default:
		e.at, e.hint = at, h
		heap.Fix(&t.heap, e.index)
	}
	return e
}

// Stop fires no more, and returns when what was being fired has ended.
func (t *Timer) Stop() {
	t.mu.Lock()
	t.stopped = true
	t.heap, t.byKey = nil, nil
	t.mu.Unlock()
	if t.cancel != nil {
		t.cancel()
	}
	t.done.Wait()
}

func (t *Timer) run(ctx context.Context, fire func(context.Context, core.Hint)) {
	var fired sync.WaitGroup
	defer fired.Wait()
	slots := make(chan struct{}, fires)
	sleep := time.NewTimer(0)
	defer sleep.Stop()
	for {
		h, wait, ok := t.pop()
		if ok {
			select {
			case slots <- struct{}{}:
			case <-ctx.Done():
				return
			}
			fired.Go(func() {
				defer func() { <-slots }()
				fire(ctx, h)
			})
			continue
		}
		sleep.Reset(wait)
		select {
		case <-sleep.C:
		case <-t.wake:
		case <-ctx.Done():
			return
		}
	}
}

// pop takes the first entry off if its time has come; else it says how long
// that will be.
func (t *Timer) pop() (core.Hint, time.Duration, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.heap) == 0 {
		return core.Hint{}, time.Hour, false
	}
	if wait := t.heap[0].at - time.Since(t.start); wait > 0 {
		return core.Hint{}, wait, false
	}
	e := heap.Pop(&t.heap).(*entry)
	delete(t.byKey, e.key)
	return e.hint, 0, true
}
