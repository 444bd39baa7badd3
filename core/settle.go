package core

import (
	"context"
	"fmt"
	"time"
)

// conclude turns an outcome into the group's next transition. Like the steps
// that it chooses from, it reports whether there is more to be sent at once.
func (d *Deliverer) conclude(ctx context.Context, s *shipment, r *Response, o Outcome) (bool, error) {
	retry := &s.sub.Destination.Retry
	exhausted := s.claim.Attempt >= retry.MaxAttempts
	switch {
	case o == Delivered:
		return d.ack(ctx, s)
	case o == Permanent:
		return d.bury(ctx, s, s.items, r, DeadPermanent)
	case o == Interrupted:
		return d.postpone(ctx, s, 0)
	case o == Partial && exhausted:
		return d.bury(ctx, s, failedItems(s.items, r.Failed), r, DeadExhausted)
	case o == Partial:
		return d.shrink(ctx, s, r)
	case exhausted:
		return d.bury(ctx, s, s.items, r, DeadExhausted)
	}
	return d.release(ctx, s, r, r.RetryAfter)
}

func (d *Deliverer) ack(ctx context.Context, s *shipment) (bool, error) {
	return d.settle(ctx, s, func(g *Group, now Millis) error {
		return g.Ack(s.claim.ID, s.claim.Lease, &s.sub.Policy, now)
	})
}

func (d *Deliverer) postpone(ctx context.Context, s *shipment, wait time.Duration) (bool, error) {
	return d.settle(ctx, s, func(g *Group, now Millis) error {
		return g.Postpone(s.claim.ID, s.claim.Lease, now.Add(wait), &s.sub.Policy, now)
	})
}

func (d *Deliverer) release(ctx context.Context, s *shipment, r *Response, asked time.Duration) (bool, error) {
	wait := s.sub.Destination.Retry.Wait(s.claim.Attempt, asked, d.ports.Rand)
	return d.settle(ctx, s, func(g *Group, now Millis) error {
		return g.Release(s.claim.ID, s.claim.Lease, now.Add(wait), cause(r), &s.sub.Policy, now)
	})
}

func (d *Deliverer) shrink(ctx context.Context, s *shipment, r *Response) (bool, error) {
	var failed Bits
	for _, it := range failedItems(s.items, r.Failed) {
		failed = failed.With(int(it.Seq - s.claim.From))
	}
	wait := s.sub.Destination.Retry.Wait(s.claim.Attempt, r.RetryAfter, d.ports.Rand)
	return d.settle(ctx, s, func(g *Group, now Millis) error {
		return g.Shrink(s.claim.ID, s.claim.Lease, failed, now.Add(wait), cause(r), &s.sub.Policy, now)
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

// bury makes dead letters of items and settles their claim, all under the
// claim's lease. When they can't be put, the claim is tried again later:
// nothing is dropped.
func (d *Deliverer) bury(ctx context.Context, s *shipment, items []Item, r *Response, reason string) (bool, error) {
	err := d.update(ctx, s, func(g *Group, now Millis) error {
		s.was = g.CheckAt
		return g.Renew(s.claim.ID, s.claim.Lease, &s.sub.Policy, now)
	})
	if err != nil {
		return d.unsettled(ctx, s, err)
	}
	d.rest(ctx, s)
	if err := d.ports.DeadLetters.Put(ctx, s.letters(items, r, reason, d.ports.Clock.Now())); err != nil {
		d.ports.Observer.failed("put dead letters", err)
		return d.release(ctx, s, r, 0)
	}
	more, err := d.ack(ctx, s)
	if err == nil {
		d.ports.Observer.deadLetters(s.ref.Buffer, reason, len(items))
	}
	return more, err
}

// settle ends this deliverer's hold on its claim.
func (d *Deliverer) settle(ctx context.Context, s *shipment, fn func(*Group, Millis) error) (bool, error) {
	var checkAt Millis
	err := d.update(ctx, s, func(g *Group, now Millis) error {
		checkAt = g.CheckAt
		return fn(g, now)
	})
	if err != nil {
		return d.unsettled(ctx, s, err)
	}
	g, now := &s.group, d.ports.Clock.Now()
	if g.CheckAt != checkAt && g.CheckAt > now {
		d.ports.armCheck(ctx, s.ref, g)
	}
	for i := range g.Claims { // the claim, or the residue that a partial success left
		if c := &g.Claims[i]; c.From >= s.claim.From && c.To <= s.claim.To && c.Due > now {
			d.ports.armClaim(ctx, s.ref, g, c)
		}
	}
	return g.Wanted(&s.sub.Policy, now), nil
}

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
func (d *Deliverer) unsettled(ctx context.Context, s *shipment, err error) (bool, error) {
	if CodeOf(err) == Conflict {
		return false, nil
	}
	d.ports.armClaim(ctx, s.ref, &s.group, &s.claim)
	return false, err
}

// cause is a failed attempt in a few words.
func cause(r *Response) string {
	switch {
	case r.Err == nil:
		return fmt.Sprintf("status %d", r.Status)
	case DetailOf(r.Err) != "":
		return DetailOf(r.Err)
	}
	return r.Err.Error()
}
