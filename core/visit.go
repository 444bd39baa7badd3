package core

import (
	"cmp"
	"context"
	"slices"
	"time"
)

// visit is a flush's work on one group.
type visit struct {
	*errand

	claims int           // new ones
	pause  time.Duration // how long it waits next for who is sending the group
	more   bool          // there is more to be sent, by the conditions
	at     Millis        // when a claim has its token of a rate limit, that of waitsFor; 0: none waits for one
	owing  *Group        // as it was last seen, since the flush has armed no hint for what waits in it; nil: it has
}

// mostParked is how many groups a flush has waiting for their tokens at a time:
// when it ends, they must all have their hints armed in what a lease has left.
const mostParked = 200

// work ships one group after the other. One that waits for a token is put aside
// until that comes: no other loses its own meanwhile.
func (s *shipping) work(groups <-chan Ref) {
	for v := s.next(groups); v != nil; v = s.next(groups) {
		if s.group(v); v.at == 0 || !s.park(v) {
			s.leave(v)
		}
	}
}

// next waits for the next group that may be shipped. nil: all others are being
// shipped, or have been.
func (s *shipping) next(groups <-chan Ref) *visit {
	for {
		if s.ended() {
			s.abandon()
		}
		v, at, parked := s.unpark()
		if v != nil {
			return v
		}
		if parked < mostParked {
			if ref, ok := <-groups; ok {
				return &visit{pause: firstPause, errand: &errand{
					sub: s.sub, ref: ref, policy: s.sub.policy(ref), pull: s.pull(ref), may: s.may,
				}}
			}
		}
		if parked == 0 {
			return nil
		}
		s.rest(at)
	}
}

// park puts a group aside until its token comes. It reports whether there will be
// the time for a send then. If not, and it is the first destination's token, no
// more groups are begun, as theirs come later still.
func (s *shipping) park(v *visit) bool {
	wait := max(0, v.at.Sub(s.ports.Clock.Now()))
	timely := s.timely(wait) && (wait == 0 || s.ports.Sleep != nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limited = v.waitsFor
	if !timely {
		s.dry = s.dry || v.waitsFor == s.sub.Destination.Name
		s.late()
		return false
	}
	s.parked = append(s.parked, v)
	return true
}

// unpark takes the group whose token was the first to come, or says when the
// first comes, and how many wait.
func (s *shipping) unpark() (v *visit, at Millis, parked int) {
	now := s.ports.Clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.parked) == 0 {
		return nil, 0, 0
	}
	v = slices.MinFunc(s.parked, func(a, b *visit) int { return cmp.Compare(a.at, b.at) })
	if v.at > now {
		return nil, v.at, len(s.parked)
	}
	s.parked = slices.DeleteFunc(s.parked, func(p *visit) bool { return p == v })
	return v, 0, 0
}

// abandon leaves all groups that wait, side by side.
func (s *shipping) abandon() {
	s.mu.Lock()
	parked := s.parked
	s.parked = nil
	s.mu.Unlock()
	sideBySide(len(parked), func(i int) { s.leave(parked[i]) })
}

// rest waits until a time, or for a while.
func (s *shipping) rest(at Millis) {
	wait := at.Sub(s.ports.Clock.Now())
	if wait > 0 && s.ports.Sleep(s.may, min(wait, lastPause)) != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.end()
	} else if !s.turn.renew(s.ctx) {
		s.fail(s.lost())
	}
}

// group ships what is finished of one group: claims that wait first, then new
// ones, another after each that came back full; a final flush until one comes
// back empty. It ends early when a claim has to wait for its token.
func (s *shipping) group(v *visit) {
	v.at = 0
	for goOn := true; goOn && v.at == 0 && !s.ended(); {
		sent, err := s.one(v.errand)
		switch {
		case sent != nil:
			s.note(v.errand, sent)
			if v.more = sent.result.more; v.owing != nil || sent.result.waits {
				g := sent.group // without the items beside it
				v.owing = &g
			}
			goOn = s.goesOn(v, sent)
			if sent.group.Closed != 0 {
				v.claims = 0 // a window has an end
			}
		case err != nil && v.recovering && !v.pull.fresh: // what is new may be shipped all the same
			s.recovery(err)
			v.pull.fresh = true
		case err != nil:
			s.fail(err)
			goOn = false
		default:
			if goOn = s.waits(v.errand) || v.busy && s.wait(&v.pause); !goOn {
				v.at = v.token
			}
		}
		if !v.recovering && sent != nil {
			v.claims++
			v.pull.spent = v.pull.spent || v.claims == maxClaims
		}
	}
}

// goesOn reports whether a group may have more for the flush behind what came of
// a claim. One that has to wait for a token is waited for; before the flush ends,
// so are those that had to when it came.
func (s *shipping) goesOn(v *visit, sent *shipment) bool {
	r, g := &sent.result, &sent.group
	switch {
	case r.settling != nil:
		return false
	case r.waits && v.waits != 0:
		return s.waits(v.errand)
	case r.left && !r.waits && !sent.again:
		return false
	}
	if !v.recovering && !sent.full && !s.opts.Final {
		v.pull.spent = true
	}
	if !r.waits && !v.pull.spent && (v.recovering || sent.full || s.opts.Final) {
		return true
	}
	next, at := v.waiting(g)
	if c := g.Find(sent.claim.ID); r.waits && c != nil && earliest(at, c.Due) != at {
		next, at = c, c.Due
	}
	if next == nil {
		return false
	}
	v.at, v.waitsFor = at, ""
	if next.Token { // else it waits for a slot
		v.waitsFor = s.sub.hopOf(next).Name
	}
	return true
}

// leave ends the work on a group: what the flush would have gone on with is
// delivered by others.
func (s *shipping) leave(v *visit) {
	ctx := context.WithoutCancel(s.ctx)
	if g := v.owing; g != nil {
		s.ports.armCheck(ctx, v.policy, v.ref, g)
		for i := range g.Claims {
			if c := &g.Claims[i]; !c.Held() { // its time may have come since
				s.ports.armClaim(ctx, v.ref, g, c)
			}
		}
	}
	if v.more {
		s.ports.hand(ctx, s.sub.delivery(v.ref, nil))
	}
}
