package wire

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"sluice/core"
)

// schedule has buffers flushed, each as often as its settings say and none
// delayed by another. It is used by one goroutine at a time.
type schedule struct {
	// flush flushes a buffer until ctx ends, and says how long after its begin it
	// is to be flushed again, if that is sooner than its schedule; 0: it is not.
	flush  func(ctx context.Context, buffer string) (early time.Duration)
	rounds map[string]*round
	going  sync.WaitGroup
}

// round is the flushes of one buffer.
type round struct {
	every   atomic.Int64  // a duration
	changed chan struct{} // every is another
	end     context.CancelFunc
}

// set makes it the schedule of these buffers alone, until ctx ends. A buffer
// that is new is flushed at once; a flush under way of one that is gone begins
// no more sends.
func (s *schedule) set(ctx context.Context, wanted []core.Schedule) {
	gone := s.rounds
	s.rounds = make(map[string]*round, len(wanted))
	for _, w := range wanted {
		r := gone[w.Buffer]
		if r == nil {
			r = s.begin(ctx, w)
		} else {
			delete(gone, w.Buffer)
			r.set(w.Every)
		}
		s.rounds[w.Buffer] = r
	}
	for _, r := range gone {
		r.end()
	}
}

func (s *schedule) begin(ctx context.Context, w core.Schedule) *round {
	r := &round{changed: make(chan struct{}, 1)}
	r.every.Store(int64(w.Every))
	ctx, r.end = context.WithCancel(ctx)
	s.going.Go(func() {
		defer r.end()
		for ctx.Err() == nil {
			begin := time.Now()
			r.rest(ctx, begin, s.flush(ctx, w.Buffer))
		}
	})
	return r
}

func (r *round) set(every time.Duration) {
	if r.every.Swap(int64(every)) == int64(every) {
		return
	}
	select {
	case r.changed <- struct{}{}:
	default: // the earlier change has not been seen yet
	}
}

// rest waits until the next flush: until the last one, which began at a time,
// would not have been early, or else as long from then as is set.
func (r *round) rest(ctx context.Context, begin time.Time, early time.Duration) {
	for {
		wait := time.Duration(r.every.Load())
		if early > 0 {
			wait = min(wait, early)
		}
		t := time.NewTimer(time.Until(begin.Add(wait)))
		select {
		case <-t.C:
			return
		case <-r.changed:
			early = 0 // by the old settings
		case <-ctx.Done():
			t.Stop()
			return
		}
		t.Stop()
	}
}
