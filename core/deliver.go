package core

import (
	"context"
	"errors"
	"time"
)

// races is how often a deliverer re-reads a group whose claim it has lost.
const races = 4

// Deliverer sends what is due, one batch at a time:
//
//	recover ▶ claim ▶ send ▶ settle (ack | release with backoff | dead-letter)
type Deliverer struct {
	catalog *Catalog
	ports   Ports
}

// NewDeliverer makes a deliverer.
func NewDeliverer(c *Catalog, p Ports) *Deliverer { return &Deliverer{catalog: c, ports: p} }

// restTime bounds what a deliverer does for others between its claim and its
// send: the lease has begun, and leaseMargin is to settle in.
const restTime = 5 * time.Second

// unreadable is how long a group waits that could not be read or claimed.
const unreadable = time.Second

// shipment is a claim that this deliverer holds, with its items.
type shipment struct {
	sub      *Subscription
	ref      Ref
	group    Group // as this deliverer has last read or written it
	claim    Claim
	items    []Item
	deadline Millis // since when it could have been sent
	was      Millis // CheckAt before this deliverer took or renewed its claim
}

// Deliver sends the group's next batch, if one is due, and reports whether
// there is more to be sent at once, for which it is to be called again. Ending
// ctx cuts a send off; its batch is sent again later.
func (d *Deliverer) Deliver(ctx context.Context, del Delivery) (more bool, err error) {
	sub := d.catalog.Buffer(del.Ref.Buffer)
	if sub == nil || ctx.Err() != nil {
		return false, nil //nolint:nilerr // its items wait until the buffer is configured, or the process runs, again
	}
	store := context.WithoutCancel(ctx) // only a send is cut off, not the steps around it
	s, err := d.take(store, sub, &del)
	if err != nil || s == nil {
		return false, err
	}
	d.rest(store, s)
	r, outcome := d.send(ctx, s)
	return d.conclude(store, s, &r, outcome)
}

// take makes this deliverer the holder of the group's next batch: one whose
// retry is due or whose deliverer died before any new one. nil: nothing is due.
func (d *Deliverer) take(ctx context.Context, sub *Subscription, del *Delivery) (*shipment, error) {
	seen := del.Seen
	for range races {
		g, err := d.look(ctx, sub, del.Ref, seen)
		if err != nil {
			return nil, err
		}
		seen = nil
		s, err := d.next(ctx, sub, del, &g)
		switch {
		case err == nil:
			return s, nil
		case CodeOf(err) != Conflict:
			d.later(ctx, del.Ref, &g)
			return nil, err
		}
		// another was faster: look again
	}
	d.ports.hand(ctx, sub.delivery(del.Ref, nil)) // later, when the others are through
	return nil, nil
}

// later has a group looked at again after a failure, as the hint that led here
// is used up. However many deliverers fail at it, one hint comes of it: only
// who moves an overdue check arms it.
func (d *Deliverer) later(ctx context.Context, ref Ref, was *Group) {
	g, err := d.ports.Store.Update(ctx, ref, was, func(g *Group) error {
		now := d.ports.Clock.Now()
		if g.Life != was.Life || g.Rev != was.Rev || g.CheckAt > now {
			return errUnchanged
		}
		g.Nudge(now.Add(unreadable))
		return nil
	})
	if err == nil {
		d.ports.armCheck(ctx, ref, &g)
	}
}

// look reads the group, unless what the sender of the delivery has seen will
// do: if it has changed since, no claim on it succeeds.
func (d *Deliverer) look(ctx context.Context, sub *Subscription, ref Ref, seen *Group) (Group, error) {
	if seen != nil && seen.Life != "" && seen.Wanted(&sub.Policy, d.ports.Clock.Now()) {
		return seen.Clone(), nil
	}
	return d.ports.Store.Group(ctx, ref)
}

func (d *Deliverer) next(ctx context.Context, sub *Subscription, del *Delivery, g *Group) (*shipment, error) {
	p, now, ref := &sub.Policy, d.ports.Clock.Now(), del.Ref
	if c := g.Expired(p, now); c != nil {
		return d.recover(ctx, sub, ref, g, c)
	}
	if !g.Blocked(p, now) && Evaluate(g, p, now).Due {
		return d.claim(ctx, sub, ref, g)
	}
	if g.CheckAt != 0 && g.CheckAt <= now {
		// it was due when it was handed over, and that used its hint up
		return nil, d.ports.rearm(ctx, sub, ref, g)
	}
	if was := del.Seen; was != nil && was.Life == g.Life && was.Rev == g.Rev {
		// by the sender's clock it was due, and nothing has changed since: ours is behind
		if at := earliest(g.CheckAt, g.ClaimDue()); at > now {
			d.ports.arm(ctx, Hint{Ref: ref, Life: g.Life, At: at})
		}
	}
	return nil, nil
}

// recover takes an expired claim as it is.
func (d *Deliverer) recover(ctx context.Context, sub *Subscription, ref Ref, was *Group, c *Claim) (*shipment, error) {
	s := &shipment{sub: sub, ref: ref, deadline: c.Due}
	var err error
	s.group, err = d.ports.Store.Update(ctx, ref, was, func(g *Group) (err error) {
		s.was = g.CheckAt
		s.claim, err = g.Recover(c.ID, &sub.Policy, d.ports.Clock.Now())
		return err
	})
	if err != nil {
		return nil, err
	}
	if s.items, err = d.members(ctx, s); err != nil {
		d.rest(ctx, s)
		_, e := d.postpone(ctx, s, unreadable)
		return nil, errors.Join(err, e)
	}
	return s, nil
}

// members reads the unsettled items of a shipment's claim.
func (d *Deliverer) members(ctx context.Context, s *shipment) ([]Item, error) {
	var items []Item
	c := &s.claim
	for from := c.From; from <= c.To; {
		page, err := d.ports.Store.Items(ctx, s.ref, &s.group, Span{From: from, To: c.To})
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			if c.Has(page.Items[i].Seq) {
				items = append(items, page.Items[i])
			}
		}
		if page.End < from {
			return nil, Errorf(Unavailable, "the items of %s from %d on can't be read yet", s.ref, from)
		}
		from = page.End + 1
	}
	return items, nil
}

// claim opens a claim on the first pending items of a group that is due.
func (d *Deliverer) claim(ctx context.Context, sub *Subscription, ref Ref, g *Group) (*shipment, error) {
	p := &sub.Policy
	page, err := d.ports.Store.Items(ctx, ref, g, Span{
		From: g.Head + 1, To: g.Tail, MaxItems: p.MaxItems, MaxBytes: p.CapBytes,
	})
	if err != nil {
		return nil, err
	}
	v, err := d.confirm(ctx, sub, ref, g, &page)
	if err != nil || !v.Due {
		return nil, err
	}
	taking, items := Split(g.Head+1, &page, v.Reason, p)
	if taking.To == g.Tail {
		taking.NextAt = g.LastAt // what is behind by now has arrived since
	}
	s := &shipment{sub: sub, ref: ref, items: items, deadline: v.Deadline}
	s.group, err = d.ports.Store.Update(ctx, ref, g, func(now *Group) (err error) {
		if now.Life != g.Life {
			return Errorf(Conflict, "the group has begun anew")
		}
		s.was = now.CheckAt
		s.claim, err = now.Claim(taking, p, d.ports.Clock.Now())
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(items) == 0 {
		d.rest(ctx, s)
		return nil, Errorf(Conflict, "items %d to %d are void", taking.From, taking.To)
	}
	return s, nil
}

// rest sees to what a claim that this deliverer goes on to hold leaves behind:
// another takes what is due if it may; anything else is checked at CheckAt,
// which the update may have moved.
func (d *Deliverer) rest(ctx context.Context, s *shipment) {
	ctx, cancel := context.WithTimeout(ctx, restTime)
	defer cancel()
	p, now, g := &s.sub.Policy, d.ports.Clock.Now(), &s.group
	switch {
	case g.Wanted(p, now):
		d.ports.hand(ctx, s.sub.delivery(s.ref, g))
	case g.CheckAt != s.was:
		d.ports.armCheck(ctx, s.ref, g)
	}
}

// send makes one attempt. A batch whose items were all lost, which the store
// has reported, counts as delivered.
func (d *Deliverer) send(ctx context.Context, s *shipment) (Response, Outcome) {
	if len(s.items) == 0 {
		return Response{}, Delivered
	}
	b := Batch{ID: s.claim.ID, Buffer: s.ref.Buffer, Group: s.ref.Key,
		Reason: s.claim.Reason, Attempt: s.claim.Attempt, Items: s.items}
	begin := d.ports.Clock.Now()
	r, outcome := d.ports.send(ctx, s.sub.Destination, &b)
	d.ports.Observer.attempt(&Attempt{
		Buffer: b.Buffer, Group: b.Group, Batch: b.ID, Destination: s.sub.Destination.Name,
		Items: len(b.Items), Bytes: b.Bytes(), Reason: b.Reason, Number: b.Attempt,
		Outcome: outcome, Status: r.Status, Err: r.Err,
		At: begin, Took: d.ports.Clock.Now().Sub(begin), Lateness: max(0, begin.Sub(s.deadline)),
	})
	return r, outcome
}
