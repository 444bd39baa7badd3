package core

import (
	"context"
	"time"
)

// hopOf is the destination that a claim is to be sent to.
func (s *Subscription) hopOf(c *Claim) *hop { return s.hops[min(c.Hop, len(s.hops)-1)] }

// hop is the destination that the shipment is to be sent to.
func (s *shipment) hop() *hop { return s.sub.hopOf(&s.claim) }

// breaker says until when an errand has to wait for the breaker of a destination;
// 0: it need not. What it has let through once, as its probe perhaps, may lose a
// race and claim again. When another destination follows, the probe is another's.
func (d *Deliverer) breaker(ctx context.Context, e *errand, to *hop) (until Millis) {
	if e.allowed == to {
		return 0
	}
	d.unused(ctx, e)
	until, p := gate{&d.ports}.breaker(ctx, to.Destination)
	if until == 0 {
		e.allowed, e.probe = to, p
	}
	return until
}

// unused gives back a probe that the breaker has let through for nothing. From
// then on the errand has to ask again.
func (d *Deliverer) unused(ctx context.Context, e *errand) {
	gate{&d.ports}.unused(ctx, e.probe)
	e.allowed, e.probe = nil, nil
}

const (
	// slotTime is how long a delivery tries for a slot of a fallback: it has one of the
	// first destination meanwhile, which others want.
	slotTime = time.Millisecond

	// firstRest and lastRest are within what time it tries again: longer, the longer
	// the claim has failed, so that many who wait are no burden.
	firstRest = 200 * time.Millisecond
	lastRest  = 5 * time.Second
)

// slot makes an errand's next send to a fallback one of those that may be under way
// there, until it is vacated. What delivers has a slot of the first destination alone.
// When none is free, it says until when to rest: those that have to, not all alike.
func (d *Deliverer) slot(ctx context.Context, e *errand, c *Claim) (until Millis) {
	to := e.sub.hopOf(c)
	if e.free != nil && e.room == to {
		return 0
	}
	e.vacate()
	if d.ports.Slot == nil || to == e.sub.hops[0] {
		return 0
	}
	ctx, cancel := context.WithTimeout(ctx, slotTime)
	defer cancel()
	free, err := d.ports.Slot(ctx, to.Name)
	if err == nil {
		e.room, e.free = to, free
		return 0
	}
	now, longest := d.ports.Clock.Now(), firstRest
	if c.FirstErrorAt != 0 {
		longest = min(max(longest, now.Sub(c.FirstErrorAt)/4), lastRest)
	}
	return now.Add(time.Millisecond + time.Duration(d.ports.Rand.Int64N(int64(longest))))
}

// vacate gives back what an errand has of a fallback's slots.
func (e *errand) vacate() {
	if e.free != nil {
		e.free()
	}
	e.room, e.free = nil, nil
}

// barred says until when a claim has to wait for a slot of its destination, or for its
// breaker; 0: it need not. Only who has a slot asks that, and may be its probe.
func (d *Deliverer) barred(ctx context.Context, e *errand, c *Claim) (until Millis) {
	if until = d.slot(ctx, e, c); until != 0 {
		return until
	}
	to := e.sub.hopOf(c)
	if until = d.breaker(ctx, e, to); until != 0 {
		e.vacate()
		e.waits, e.waitsFor = max(1, until.Sub(d.ports.Clock.Now())), to.Name
	}
	return until
}

// send makes one attempt. A batch whose items were all lost, which the store
// has reported, or were dropped by the destination's filter, counts as delivered.
func (d *Deliverer) send(ctx context.Context, s *shipment) (Response, Outcome) {
	defer s.vacate()
	to := s.hop()
	items, outcome, err := d.shape(ctx, s, to)
	if err != nil {
		r := Response{Err: err}
		s.result.sent(&r, Retry, len(s.items), nil)
		return r, outcome
	}
	if len(items) == 0 {
		s.result.sent(&Response{}, Delivered, len(s.items), s.lost)
		return Response{}, Delivered
	}
	b := Batch{ID: s.batchID(), Buffer: s.ref.Buffer, Group: s.ref.Key, Shadow: s.sub.Buffer.Shadow,
		Reason: s.claim.Reason, Attempt: s.claim.Attempt, Items: items}
	if w, ok := s.sub.Window(s.ref); ok {
		b.Window = &w
	}
	s.leaves(&b, d.ports.Clock)
	begin, p := d.ports.Clock.Now(), s.probe
	s.allowed, s.probe = nil, nil // it is used
	r, outcome := d.ports.send(ctx, d.catalog, to.Destination, &b)
	s.left = b.leave
	if outcome == Interrupted {
		s.probe = p // it has shown nothing, so it is another's
	}
	if s.at != nil {
		r.Failed, r.Refused = moved(r.Failed, s.at), moved(r.Refused, s.at)
	}
	gate{&d.ports}.outcome(context.WithoutCancel(ctx), to.Destination, outcome)
	s.result.sent(&r, outcome, len(s.items), s.lost)
	if _, held := Held(b.Buffer); !held {
		d.ports.Observer.attempt(&Attempt{
			Buffer: b.Buffer, Group: b.Group, Batch: b.ID, Destination: to.Name,
			Items: len(b.Items), Bytes: b.Bytes(), Reason: b.Reason, Number: b.Attempt,
			Outcome: outcome, Status: r.Status, Err: r.Err,
			At: begin, Took: d.ports.Clock.Now().Sub(begin), Lateness: max(0, begin.Sub(s.deadline)),
		})
	}
	return r, outcome
}

// shape makes of a batch's items what a destination's own filter and transform
// want it to get. One that they fail on becomes a dead letter, and the others go
// on: at once, and whatever follows settles it, so that it becomes one once. For
// rows, of which a claim can't note it, that is when the batch is through. What
// might not fail the next time is tried again, as often as a send is: with an
// error comes Retry, or Interrupted when it is our own and uses up no attempt.
func (d *Deliverer) shape(ctx context.Context, s *shipment, to *hop) (items []Item, o Outcome, err error) {
	ctx = context.WithoutCancel(ctx)
	if to.filter == nil && to.transform == nil {
		return s.items, Interrupted, d.keep(ctx, s)
	}
	at := []int{}
	var lost []undelivered
	for i := range s.items {
		if err := d.keep(ctx, s); err != nil {
			return nil, Interrupted, err
		}
		e, keep, err := to.apply(ctx, &s.items[i].Event)
		switch {
		case err != nil && CodeOf(err) == Invalid:
			lost = append(lost, undelivered{s.items[i : i+1], DeadPermanent, err})
		case err != nil && s.claim.Attempt < to.Retry.MaxAttempts:
			return nil, Retry, err
		case err != nil:
			lost = append(lost, undelivered{s.items[i : i+1], DeadExhausted, err})
		case keep:
			items = append(items, Item{Event: e, Seq: s.items[i].Seq})
			at = append(at, i)
		}
	}
	if s.claim.Fold == "" {
		letters, err := d.putDeadLetters(ctx, s, nil, lost)
		if err != nil {
			return nil, Interrupted, err
		}
		d.tellDeadLetters(s, lost, letters)
	}
	s.at, s.lost = at, lost
	return items, Interrupted, d.keep(ctx, s)
}

// keep makes the lease on the shipment's claim begin anew when half of it is
// gone, or so much that a send would outlast it.
func (d *Deliverer) keep(ctx context.Context, s *shipment) error {
	lease := s.policy.Lease
	if s.claim.Due.Sub(d.ports.Clock.Now()) >= min(max(lease/2, s.hop().Timeout+restTime), lease-restTime) {
		return nil
	}
	if err := d.renew(ctx, s); err != nil {
		return err
	}
	d.rest(ctx, s)
	return nil
}

// live is the items of the batch that its destination's filter and transform
// have not finished.
func (s *shipment) live() []Item {
	if s.at == nil {
		return s.items
	}
	items := make([]Item, len(s.at))
	for i, at := range s.at {
		items[i] = s.items[at]
	}
	return items
}

// finish settles the members of a claim that its destination's filter and
// transform have finished, in the transition that ends their batch. Rows are no
// members.
func (s *shipment) finish(c *Claim) {
	for i, next := 0, 0; s.at != nil && c != nil && c.Fold == "" && i < len(s.items); i++ {
		if next < len(s.at) && s.at[next] == i {
			next++
			continue
		}
		c.Done = c.Done.With(int(s.items[i].Seq - c.From))
	}
}

// moved gives bits other places.
func moved(b Bits, at []int) Bits {
	var m Bits
	for i, to := range at {
		if b.Has(i) {
			m = m.With(to)
		}
	}
	return m
}

// deferred makes a claim wait for its destination, and has it looked at again then:
// once, however many deliverers meet it.
func (d *Deliverer) deferred(ctx context.Context, e *errand, was *Group, c *Claim, until Millis) error {
	g, err := d.ports.Store.Update(ctx, e.ref, was, func(g *Group) error {
		if now := g.Find(c.ID); now != nil && !now.Held() && !now.Token && now.Due >= until {
			return errUnchanged
		}
		return g.Defer(c.ID, until, e.policy, d.ports.Clock.Now())
	})
	switch {
	case err == errUnchanged: //nolint:errorlint // it is returned as it is
		return nil
	case err != nil:
		return err
	}
	if c := g.Find(c.ID); c != nil {
		d.ports.armClaim(ctx, e.ref, &g, c)
	}
	if e.pull == nil && g.Wanted(e.policy, d.ports.Clock.Now()) {
		d.ports.hand(ctx, e.sub.delivery(e.ref, &g)) // the hint that led here may have been for it
		return nil
	}
	d.ports.armCheck(ctx, e.policy, e.ref, &g)
	return nil
}

// parked makes a due group wait for its destination's breaker.
func (d *Deliverer) parked(ctx context.Context, e *errand, was *Group, until Millis) error {
	g, err := d.ports.Store.Update(ctx, e.ref, was, func(g *Group) error {
		if g.CheckAt == until || g.CheckAt > until && e.pull != nil { // a flush may have come before its time
			return errUnchanged
		}
		g.Park(until)
		return nil
	})
	if err == errUnchanged { //nolint:errorlint // it is returned as it is
		return nil
	}
	if err == nil {
		d.ports.armCheck(ctx, e.policy, e.ref, &g)
	}
	return err
}
