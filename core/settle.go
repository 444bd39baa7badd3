package core

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// conclude turns an outcome into the group's next transition. It reports whether
// the claim goes on with its next rows.
func (d *Deliverer) conclude(ctx context.Context, s *shipment, r *Response, o Outcome) (goOn bool, err error) {
	exhausted := s.claim.Attempt >= s.hop().Retry.MaxAttempts
	last := s.claim.Hop >= len(s.sub.hops)-1
	if o == Partial && !last && r.Failed.Len() == len(s.live()) {
		o = Retry // it has taken nothing, so the batch stays as it is
	}
	switch {
	case o == Delivered:
		if s.sub.Buffer.Shadow {
			d.ports.Observer.shadow(s.ref.Buffer, ShadowDelivered, len(s.live()))
		}
		return d.deadLetter(ctx, s, r, d.finish)
	case o == Interrupted && CodeOf(r.Err) == Canceled:
		return false, d.postpone(ctx, s, 0, false)
	case o == Interrupted: // by an error of our own, before the send
		return false, d.postpone(ctx, s, unreadable, false)
	case o == Partial && (exhausted && last || s.claim.Fold == ""):
		return d.part(ctx, s, r, exhausted, last)
	case (o == Permanent || exhausted) && !last && s.claim.Fold == "" && len(s.live()) < len(s.items):
		return false, d.shrink(ctx, s, r, moved(allBits(len(s.at)), s.at), true)
	case (o == Permanent || exhausted) && !last:
		return d.fall(ctx, s)
	case o == Permanent:
		return d.deadLetter(ctx, s, r, d.finish, undelivered{s.live(), DeadPermanent, nil})
	case exhausted:
		return d.deadLetter(ctx, s, r, d.finish, undelivered{s.live(), DeadExhausted, nil})
	}
	return false, d.release(ctx, s, r, r.RetryAfter)
}

// fall goes on with the next fallback.
func (d *Deliverer) fall(ctx context.Context, s *shipment) (goOn bool, err error) {
	err = d.update(ctx, s, func(g *Group, now Millis) error {
		return g.Fall(s.claim.ID, s.claim.Lease, s.policy, now)
	})
	if err != nil {
		return false, d.unsettled(ctx, s, err)
	}
	s.claim = *s.group.Find(s.claim.ID)
	return true, nil
}

// part settles a batch of which some items were not taken: those refused for
// good become dead letters, and at the last attempt so do the others, which
// until then go on as a batch of their own. While there is a fallback, that holds
// those that were refused, too, and falls when no other is left, or no attempt.
func (d *Deliverer) part(ctx context.Context, s *shipment, r *Response, exhausted, last bool) (goOn bool, err error) {
	if s.sub.Buffer.Shadow {
		d.ports.Observer.shadow(s.ref.Buffer, ShadowDelivered, len(s.live())-r.Failed.Len())
	}
	refused := r.Refused.And(r.Failed)
	left := r.Failed.Without(refused)
	if !last {
		return false, d.shrink(ctx, s, r, r.Failed, exhausted || left.Len() == 0)
	}
	if exhausted {
		return d.deadLetter(ctx, s, r, d.finish,
			undelivered{failedItems(s.items, refused), DeadPermanent, nil}, undelivered{failedItems(s.items, left), DeadExhausted, nil})
	}
	if s.policy.Ordered { // what stands behind the first that is left is sent again with it
		for i, behind := 0, false; i < len(s.items); i++ {
			if behind = behind || left.Has(i); behind && refused.Has(i) {
				refused, left = refused.Without(Bits(nil).With(i)), left.With(i)
			}
		}
	}
	then := d.finish
	if left.Len() > 0 {
		then = func(ctx context.Context, s *shipment) (bool, error) {
			return false, d.shrink(ctx, s, r, left, false)
		}
	}
	if refused.Len() == 0 {
		return then(ctx, s)
	}
	return d.deadLetter(ctx, s, r, then, undelivered{failedItems(s.items, refused), DeadPermanent, nil})
}

// finish settles the batch: the claim with it, unless there are more rows.
func (d *Deliverer) finish(ctx context.Context, s *shipment) (goOn bool, err error) {
	if len(s.items) < len(s.rows) {
		return d.advance(ctx, s)
	}
	if s.left != nil && s.left.made {
		s.group = s.left.group
		d.settled(ctx, s, s.left.was)
		return false, nil
	}
	return false, d.settle(ctx, s, s.ack)
}

func (s *shipment) ack(g *Group, now Millis) error {
	return g.Ack(s.claim.ID, s.claim.Lease, s.policy, now)
}

// advance settles rows, and goes on with the next ones.
func (d *Deliverer) advance(ctx context.Context, s *shipment) (goOn bool, err error) {
	sent := s.claim.Sent + len(s.items)
	err = d.update(ctx, s, func(g *Group, now Millis) error {
		return g.Advance(s.claim.ID, s.claim.Lease, s.sub.foldedBy, sent, s.policy, now)
	})
	if err != nil {
		return false, d.unsettled(ctx, s, err)
	}
	s.claim = *s.group.Find(s.claim.ID)
	s.rows = s.rows[len(s.items):]
	s.again = s.sub.fold == nil // only so many were read
	s.part()
	return true, nil
}

func (d *Deliverer) postpone(ctx context.Context, s *shipment, wait time.Duration, token bool) error {
	return d.settle(ctx, s, func(g *Group, now Millis) error {
		s.finish(g.Find(s.claim.ID))
		return g.Postpone(s.claim.ID, s.claim.Lease, now.Add(wait), token, s.policy, now)
	})
}

func (d *Deliverer) release(ctx context.Context, s *shipment, r *Response, asked time.Duration) error {
	wait := s.hop().Retry.Wait(s.claim.Attempt, asked, d.ports.Rand)
	return d.settle(ctx, s, func(g *Group, now Millis) error {
		s.finish(g.Find(s.claim.ID))
		return g.Release(s.claim.ID, s.claim.Lease, now.Add(wait), cause(r), s.policy, now)
	})
}

// shrink leaves the items that are left as a batch of their own: for the next
// attempt, or at once for the next fallback.
func (d *Deliverer) shrink(ctx context.Context, s *shipment, r *Response, left Bits, fall bool) error {
	var failed Bits
	for _, it := range failedItems(s.items, left) {
		failed = failed.With(int(it.Seq - s.claim.From))
	}
	wait := s.hop().Retry.Wait(s.claim.Attempt, r.RetryAfter, d.ports.Rand)
	if fall {
		wait = 0
	}
	return d.settle(ctx, s, func(g *Group, now Millis) error {
		if fall {
			if err := g.Fall(s.claim.ID, s.claim.Lease, s.policy, now); err != nil {
				return err
			}
			g.Find(s.claim.ID).Attempt = 0 // it is released: taking it makes it the first
		}
		s.finish(g.Find(s.claim.ID))
		return g.Shrink(s.claim.ID, s.claim.Lease, failed, now.Add(wait), cause(r), s.policy, now)
	})
}

func failedItems(items []Item, failed Bits) []Item {
	var f []Item
	for i := range items {
		if failed.Has(i) {
			f = append(f, items[i])
		}
	}
	return f
}

// undelivered is items that become dead letters, and why.
type undelivered struct {
	items  []Item
	reason string
	err    error // nil: what the destination said
}

// deadLetter makes dead letters of items and then settles their batch, all under the
// claim's lease. When they can't be put, or no word of them be left, the claim is
// tried again later: nothing is dropped.
func (d *Deliverer) deadLetter(ctx context.Context, s *shipment, r *Response,
	settle func(context.Context, *shipment) (bool, error), lost ...undelivered,
) (goOn bool, err error) {
	if s.claim.Fold != "" { // else they are dead letters already
		lost = append(lost, s.lost...)
	}
	if len(lost) == 0 {
		return settle(ctx, s)
	}
	if !s.sub.Buffer.Shadow {
		if err := d.renew(ctx, s); err != nil {
			return false, d.unsettled(ctx, s, err)
		}
		d.rest(ctx, s)
	}
	letters, err := d.putDeadLetters(ctx, s, r, lost)
	if err != nil {
		return false, d.release(ctx, s, r, 0)
	}
	if goOn, err = settle(ctx, s); err == nil {
		d.tellDeadLetters(s, lost, letters)
	}
	return goOn, err
}

// putDeadLetters puts dead letters, and then leaves word of them: a word is never about
// one that there is not. While who waits can't be found out, none is put, so that it is
// not put again at every attempt. Copies are none.
func (d *Deliverer) putDeadLetters(ctx context.Context, s *shipment, r *Response, lost []undelivered) (letters []DeadLetter, err error) {
	if s.sub.Buffer.Shadow || len(lost) == 0 {
		return nil, nil
	}
	var items []Item
	for _, g := range lost {
		why := r
		if g.err != nil {
			why = &Response{Err: g.err}
		}
		letters = append(letters, s.letters(g.items, why, g.reason, d.ports.Clock.Now())...)
		items = append(items, g.items...)
	}
	awaited, err := d.awaited(ctx, s, items)
	if err != nil {
		return nil, err
	}
	err = d.ports.DeadLetters.Put(ctx, letters)
	d.ports.Observer.failed("put dead letters", err)
	if err != nil {
		return nil, Wrap(CodeOf(err), err, "cannot put dead letters")
	}
	return letters, d.leaveWord(ctx, s, awaited)
}

// tellDeadLetters tells the observer of dead letters, or of copies that have failed.
func (d *Deliverer) tellDeadLetters(s *shipment, lost []undelivered, letters []DeadLetter) {
	d.ports.Observer.deadLetters(letters)
	for _, g := range lost {
		if s.sub.Buffer.Shadow {
			d.ports.Observer.shadow(s.ref.Buffer, ShadowFailed, len(g.items))
		}
	}
}

// renew makes the lease on the shipment's claim begin anew.
func (d *Deliverer) renew(ctx context.Context, s *shipment) error {
	err := d.update(ctx, s, func(g *Group, now Millis) error {
		s.was = g.CheckAt
		return g.Renew(s.claim.ID, s.claim.Lease, s.policy, now)
	})
	if c := s.group.Find(s.claim.ID); err == nil && c != nil {
		s.claim.Due = c.Due
	}
	return err
}

// settle ends this deliverer's hold on its claim.
func (d *Deliverer) settle(ctx context.Context, s *shipment, fn func(*Group, Millis) error) error {
	var checkAt Millis
	err := d.update(ctx, s, func(g *Group, now Millis) error {
		checkAt = g.CheckAt
		return fn(g, now)
	})
	if err != nil {
		return d.unsettled(ctx, s, err)
	}
	d.settled(ctx, s, checkAt)
	return nil
}

// settled sees to what a claim that is settled has left behind. Its group's
// CheckAt was the one that is given.
func (d *Deliverer) settled(ctx context.Context, s *shipment, checkAt Millis) {
	g, now := &s.group, d.ports.Clock.Now()
	if s.pull == nil || !s.result.waits { // else the flush waits for it, or arms it
		if g.CheckAt != checkAt && g.CheckAt > now {
			d.ports.armCheck(ctx, s.policy, s.ref, g)
		}
		for i := range g.Claims { // the claim, or the residue that a partial success left
			if c := &g.Claims[i]; s.covers(*c) && c.Due > now {
				d.ports.armClaim(ctx, s.ref, g, c)
			}
		}
	}
	s.result.more = g.Wanted(s.policy, now)
	s.result.left = slices.ContainsFunc(g.Claims, s.covers)
}

// covers reports whether a claim is the shipment's, or what a partial success
// has left of it.
func (s *shipment) covers(c Claim) bool { return c.From >= s.claim.From && c.To <= s.claim.To }

// update applies a transition to a shipment's group, and keeps the record as
// it is then.
func (d *Deliverer) update(ctx context.Context, s *shipment, fn func(*Group, Millis) error) error {
	g, err := d.ports.Store.Update(ctx, s.ref, &s.group, func(g *Group) error { return fn(g, d.ports.Clock.Now()) })
	if err == nil {
		s.group = g
	}
	return err
}

// unsettled is what follows when a claim could not be settled. A lease that
// has passed on is no failure: whoever has it now settles. Otherwise the claim
// is taken over when its lease ends.
func (d *Deliverer) unsettled(ctx context.Context, s *shipment, err error) error {
	s.result.settling = err
	if CodeOf(err) == Conflict {
		return nil
	}
	d.ports.armClaim(ctx, s.ref, &s.group, &s.claim)
	return err
}

// cause is a failed attempt in a few words.
func cause(r *Response) string {
	switch {
	case r.Err == nil && r.Failed.Len() > 0:
		return fmt.Sprintf("status %d, but not for %d of its items", r.Status, r.Failed.Len())
	case r.Err == nil:
		return fmt.Sprintf("status %d", r.Status)
	case DetailOf(r.Err) != "":
		return DetailOf(r.Err)
	}
	return r.Err.Error()
}
