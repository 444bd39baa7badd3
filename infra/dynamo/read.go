package dynamo

import (
	"context"
	"sync/atomic"
	"time"

	"sluice/core"
)

const (
	// polls is how often a reader looks again for a segment that is missing
	// before it leaves off: its writer is mostly no more than a call away.
	polls = 4
	// pollEvery is how long it waits before each.
	pollEvery = 25 * time.Millisecond
)

// Items implements [core.Store]. Numbers that a dead writer has left it fences,
// once they are old enough, so that no late write can fill them.
func (s *Store) Items(ctx context.Context, ref core.Ref, g *core.Group, span core.Span) (core.Page, error) {
	if err := s.enter(); err != nil {
		return core.Page{}, err
	}
	defer s.leave()
	if g == nil || g.Life == "" || span.To > g.Tail {
		r, err := s.read(ctx, ref)
		if err != nil {
			return core.Page{}, err
		}
		g = &r.Group
	}
	w := newWalk(s, g, span)
	for polled := 0; ; {
		h, err := w.advance(ctx)
		if err != nil {
			return core.Page{}, failure(err, "read events")
		}
		if h == nil {
			return w.page, s.prolong(ctx, w.old, g.Life)
		}
		now := s.opts.Clock.Now()
		switch {
		case h.to <= g.Head: // no writer is at work there
			s.lose(Loss{Ref: ref, Life: g.Life, From: h.from, To: h.to})
			w.skip(h)
		case !s.young(h, now):
			if s.gone(h, now) {
				s.lose(Loss{Ref: ref, Life: g.Life, From: h.from, To: h.to})
			}
			if err := s.fence(ctx, w, h); err != nil {
				return core.Page{}, failure(err, "read events")
			}
		case polled < polls:
			polled++
			w.again()
			if err := pause(ctx, pollEvery); err != nil {
				return core.Page{}, failure(err, "read events")
			}
		default:
			w.stop(0, h.before)
			w.page.RetryAt = h.since.Add(s.opts.HoleTimeout)
			return w.page, s.prolong(ctx, w.old, g.Life)
		}
	}
}

// young reports whether the writer of a hole may still be at work. One that
// lies far ahead does not wait until a clock that was set back has caught up:
// to fence early is always safe.
func (s *Store) young(h *hole, now core.Millis) bool {
	return now < h.since.Add(s.opts.HoleTimeout) && h.since <= now.Add(s.opts.HoleTimeout)
}

// gone reports whether a hole may have had items: a claim has taken some off
// the segment that lay there, or it lies behind items of half the retention's
// age, where the table may have deleted what nobody has prolonged. Such a hole
// is fenced like any other: one that a writer has left just now looks the same.
func (s *Store) gone(h *hole, now core.Millis) bool {
	return h.lost || h.before != 0 && h.before < now.Add(-s.opts.Retention/2)
}

func (s *Store) lose(l Loss) {
	if s.opts.OnLoss != nil {
		s.opts.OnLoss(l)
	}
}

// fence puts a tombstone at each number of a hole. A put that loses means that
// a segment has arrived: the walk looks again.
func (s *Store) fence(ctx context.Context, w *walk, h *hole) error {
	var arrived atomic.Bool
	err := each(int(h.to-h.from+1), func(i int) error {
		done, err := s.put(ctx, w.g.Life, &segment{first: h.from + uint64(i), n: 1, at: s.opts.Clock.Now(), tomb: true})
		if err == nil && !done {
			arrived.Store(true)
		}
		return err
	})
	if err != nil {
		return err
	}
	if arrived.Load() {
		w.again()
	} else {
		w.skip(h)
	}
	return nil
}

// pause waits.
func pause(ctx context.Context, d time.Duration) error {
	wait := time.NewTimer(d)
	defer wait.Stop()
	select {
	case <-wait.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// backoff is how long to wait after a try that failed.
func backoff(try int) time.Duration { return time.Duration(try*try) * 10 * time.Millisecond }
