package core

import (
	"context"
	"sync"
	"time"
)

// maxClaims is how many new claims a flush opens on one group: it does not
// chase what others go on to add.
const maxClaims = 100

// shipping is the flush of one buffer under way.
type shipping struct {
	*Flusher

	ctx  context.Context //nolint:containedctx // of one call: its end cuts sends off
	may  context.Context //nolint:containedctx // its end keeps more from being begun
	sub  *Subscription
	opts *FlushOptions
	turn *turn

	mu      sync.Mutex
	report  *BufferFlush
	windows map[Ref]passage // handed over
	failed  int             // claims whose send failed
	sendErr bool            // the first of all failures was one of them
	inRow   int             // of them, without a success in between
	stopped bool            // too many failed
	cut     bool            // the time was over
	short   bool            // there was not the time for all
	dry     bool            // no more groups are begun, as there is not the time for their tokens
	parked  []*visit        // groups that wait for a token of a rate limit
	limited string          // whose, the last time
}

// passage is what became of one shard of a time window.
type passage struct {
	id     string
	failed bool // some of it was not taken
	empty  bool // nothing of it is left
}

// ship sends everything that is finished in a buffer, many groups at a time. It
// reports whether it had the time for all: one that had not has not had its turn.
func (f *Flusher) ship(ctx context.Context, sub *Subscription, o *FlushOptions, t *turn, r *BufferFlush) bool {
	may := ctx
	if o.While != nil {
		may = o.While
	}
	s := &shipping{Flusher: f, ctx: ctx, may: may, sub: sub, opts: o, turn: t, report: r, windows: make(map[Ref]passage)}
	groups := make(chan Ref)
	var working sync.WaitGroup
	for range sub.Destination.Concurrency {
		working.Go(func() { s.work(groups) })
	}
	if err := s.finished(groups); err != nil && !s.ended() {
		s.fail(err)
	}
	close(groups)
	working.Wait()
	s.conclude()
	return !s.cut && !s.short
}

// finished sends every group that may have something finished to a channel,
// each once.
func (s *shipping) finished(to chan<- Ref) error {
	seen := make(map[Ref]bool)
	give := func(ref Ref) bool {
		if s.ended() || s.isDry() {
			return false
		}
		if w, ok := s.sub.Window(ref); !seen[ref] && !(ok && w.End > s.ports.Clock.Now()) { // an open window needs no reading
			seen[ref] = true
			to <- ref
		}
		return true
	}
	if s.opts.Groups == nil {
		for h, err := range s.ports.Store.Due(s.may, maxMillis) {
			if err != nil {
				return err
			}
			if h.Ref.Buffer == s.sub.Buffer.Name && !give(h.Ref) {
				return nil
			}
		}
		return nil
	}
	for _, key := range s.opts.Groups {
		for shard := range max(1, s.sub.Buffer.Shards) {
			if !give(Ref{Buffer: s.sub.Buffer.Name, Key: key, Shard: shard}) {
				return nil
			}
		}
	}
	return nil
}

// ended reports whether no more is to be begun.
func (s *shipping) ended() bool {
	timely := s.timely(0)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !timely {
		s.end()
	}
	return s.stopped || s.cut
}

// timely reports whether there is time for one more send after so long.
func (s *shipping) timely(wait time.Duration) bool {
	need := wait + s.sub.Longest()
	return s.ports.timely(s.ctx, need) && s.ports.timely(s.may, need)
}

func (s *shipping) isDry() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dry
}

// end notes that the time was over. s.mu is held.
func (s *shipping) end() {
	s.cut = true
	s.late()
}

// late notes that there was not the time for all. s.mu is held.
func (s *shipping) late() {
	s.short = true
	if s.report.Err == nil {
		why := ""
		if s.limited != "" {
			why = ", as the rate limit of destination " + s.limited + " lets no more through"
		}
		s.report.Err = Errorf(Unavailable, "the time was over before all was shipped%s; flush again", why)
	}
}

const (
	// firstPause and lastPause are how long a flush waits at a time for a group
	// that another sends.
	firstPause = 10 * time.Millisecond
	lastPause  = time.Second
)

// wait waits for who is sending a group: longer each time. It reports whether
// there is something to wait for.
func (s *shipping) wait(pause *time.Duration) bool {
	if s.ports.Sleep == nil || s.ports.Sleep(s.may, *pause) != nil {
		return false
	}
	*pause = min(2**pause, lastPause)
	return true
}

// pull is what the flush takes of a group.
func (s *shipping) pull(ref Ref) *pull {
	p := &pull{turn: s.turn, known: make(map[string]bool), early: s.opts.Force || s.opts.Final, limit: s.sub.Buffer.ClaimLimit}
	if w, ok := s.sub.Window(ref); ok {
		p.over = w.End.Add(s.sub.windows.grace)
		if s.opts.Final {
			p.over = w.End
		}
	}
	return p
}

// one ships one claim, within what the destination takes at a time.
func (s *shipping) one(e *errand) (*shipment, error) {
	e.recovering = false // of the claim before
	if s.ports.Slot != nil {
		release, err := s.ports.Slot(s.may, s.sub.Destination.Name)
		if err != nil {
			if s.ended() {
				return nil, nil
			}
			return nil, err
		}
		defer release()
	}
	if !s.turn.renew(s.ctx) {
		return nil, s.lost()
	}
	return s.deliverer.ship(s.ctx, e)
}

// note counts what came of a claim.
func (s *shipping) note(e *errand, sent *shipment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, got := s.report, &sent.result
	r.Rows += got.rows
	r.Written.Rows += got.delivered
	if w, ok := s.sub.Window(e.ref); ok {
		was := s.windows[e.ref]
		s.windows[e.ref] = passage{id: w.ID, failed: was.failed || got.failure != nil, empty: sent.group.Empty()}
	}
	id := root(sent.claim.ID)
	own, known := e.pull.known[id]
	if !e.recovering {
		own, e.pull.known[id] = true, true
	}
	if got.waits && got.rows == 0 {
		if err := got.settling; err != nil && CodeOf(err) != Conflict && r.Err == nil {
			r.Err = Wrap(CodeOf(err), err, "group %s can't wait for its turn", shown(e.ref.Key))
		}
		return
	}
	if !own {
		if r.Recovered == nil {
			r.Recovered = &Released{}
		}
		if !known {
			e.pull.known[id] = false
			r.Recovered.Claims++
		}
		r.Recovered.Rows += got.rows
	}
	if got.cut {
		s.end()
	}
	if got.failure == nil {
		s.inRow = 0
		if got.settling != nil && r.AckErr == nil {
			r.AckErr = got.settling
		}
		return
	}
	if got.outcome == Delivered {
		s.inRow = 0 // what failed did so before
	}
	s.failed++
	if r.Err == nil {
		s.sendErr = true
		r.Err = Errorf(Unavailable, "group %s: %v", shown(e.ref.Key), got.failure)
	}
	if got.settling != nil && r.ReleaseErr == nil {
		r.ReleaseErr = got.settling
	}
	if got.outcome == Retry && got.silent {
		if s.inRow++; s.inRow >= 2*s.sub.Destination.Concurrency {
			s.stopped = true // the destination does not answer at all
		}
	}
	s.cut = s.cut || got.outcome == Interrupted
}

// lost ends the flush, as the turn is another's.
func (s *shipping) lost() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	return Errorf(Unavailable, "the turn of buffer %s has passed to another process", s.sub.Buffer.Name)
}

func (s *shipping) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.report.Err == nil {
		s.report.Err = err
	}
}

func (s *shipping) recovery(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.report.RecoverErr == nil {
		s.report.RecoverErr = err
	}
}

// conclude sums up.
func (s *shipping) conclude() {
	r := s.report
	whole := make(map[string]bool)
	for _, w := range s.windows {
		was, known := whole[w.id]
		whole[w.id] = w.empty && !w.failed && (was || !known)
	}
	for _, taken := range whole {
		r.Buckets++
		if taken {
			r.Written.Buckets++
		}
	}
	if s.failed > 1 && s.sendErr {
		r.Err = Errorf(CodeOf(r.Err), "%d batches failed; the first, of %s", s.failed, brief(r.Err))
	}
}

// waits ends the flush of a buffer whose destination's breaker is open. If it is
// a fallback's, what is new may be shipped all the same, which it reports.
func (s *shipping) waits(e *errand) (goOn bool) {
	if e.waits == 0 {
		return false
	}
	s.fail(Errorf(Unavailable, "the breaker of destination %s is open for another %s", e.waitsFor, formatDuration(e.waits)))
	if e.waitsFor != s.sub.Destination.Name {
		e.pull.fresh = true
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	return false
}
