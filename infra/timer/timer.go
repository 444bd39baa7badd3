// Package timer is the in-process [core.Timer]: one heap and one goroutine,
// whatever the number of groups.
//
// A hint is kept by the time that is left when it is armed, on the monotonic
// clock: setting the system clock neither delays nor hastens it. What it then
// means is for the checker. Hints end with the process; the next one arms them
// again from the store.
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
	entries entries
	seq     uint64
	stopped bool

	wake   chan struct{} // an earlier entry was armed
	cancel context.CancelFunc
	done   sync.WaitGroup
}

// New makes a timer that reads hints' times by a clock. It fires nothing
// before Start.
func New(clock core.Clock) *Timer {
	return &Timer{clock: clock, start: time.Now(), wake: make(chan struct{}, 1)}
}

// Start begins to fire hints, at most 64 at a time, in the order of their times.
func (t *Timer) Start(fire func(context.Context, core.Hint)) {
	ctx, cancel := context.WithCancel(context.Background())
	t.cancel = cancel
	t.done.Go(func() { t.run(ctx, fire) })
}

// Arm keeps a hint until its time; one whose time has passed fires at once.
// Unavailable: the timer has stopped.
func (t *Timer) Arm(_ context.Context, h core.Hint) error {
	left := h.At.Sub(t.clock.Now())
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopped {
		return core.Errorf(core.Unavailable, "the timer has stopped")
	}
	t.seq++
	e := entry{at: time.Since(t.start) + max(0, left), seq: t.seq, hint: h}
	heap.Push(&t.entries, e)
	if t.entries[0].seq == e.seq {
		select {
		case t.wake <- struct{}{}:
		default:
		}
	}
	return nil
}

// Stop fires no more, and returns when what was being fired has ended.
func (t *Timer) Stop() {
	t.mu.Lock()
	t.stopped = true
	t.entries = nil
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
	if len(t.entries) == 0 {
		return core.Hint{}, time.Hour, false
	}
	if wait := t.entries[0].at - time.Since(t.start); wait > 0 {
		return core.Hint{}, wait, false
	}
	return heap.Pop(&t.entries).(entry).hint, 0, true
}

// entry is an armed hint. Equal times fire in the order armed.
type entry struct {
	at   time.Duration // since Timer.start
	seq  uint64
	hint core.Hint
}

type entries []entry

func (e entries) Len() int { return len(e) }

func (e entries) Less(i, j int) bool {
	return e[i].at < e[j].at || (e[i].at == e[j].at && e[i].seq < e[j].seq)
}

func (e entries) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *entries) Push(x any)   { *e = append(*e, x.(entry)) }

func (e *entries) Pop() any {
	old := *e
	last := old[len(old)-1]
	old[len(old)-1] = entry{}
	*e = old[:len(old)-1]
	return last
}
