package core

import (
	"context"
	"fmt"
	"time"
)

// turn is how many batches of one group a deliverer sends before others of
// the same destination have theirs.
const turn = 4

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

// shipment is a claim that this deliverer holds, with its items.
type shipment struct {
	sub      *Subscription
	ref      Ref
	claim    Claim
	items    []Item
	deadline Millis // since when it could have been sent
}

// Deliver sends what the group has due, until nothing is or its turn is over;
// then it hands the rest over. Ending ctx ends a send under way, whose batch
// is sent again later.
func (d *Deliverer) Deliver(ctx context.Context, del Delivery) error {
	sub := d.catalog.Buffer(del.Ref.Buffer)
	if sub == nil {
		return nil // its items wait until the buffer is configured again
	}
	store := context.WithoutCancel(ctx) // stopping ends sends, not the steps around them
	for range turn {
		if ctx.Err() != nil {
			return nil //nolint:nilerr // stopping is not a failure: what is pending stays
		}
		s, err := d.take(store, sub, del.Ref)
		if err != nil || s == nil {
			return err
		}
		r, outcome := d.send(ctx, s)
		if err := d.conclude(store, s, &r, outcome); err != nil {
			return err
		}
	}
	d.ports.hand(ctx, sub.delivery(del.Ref))
	return nil
}

// take makes this deliverer the holder of the group's next batch: one whose
// retry is due or whose deliverer died before any new one. nil: nothing is due.
func (d *Deliverer) take(ctx context.Context, sub *Subscription, ref Ref) (*shipment, error) {
	for range races {
		g, err := d.ports.Store.Group(ctx, ref)
		if err != nil {
			return nil, err
		}
		s, err := d.next(ctx, sub, ref, &g)
		if err == nil || CodeOf(err) != Conflict {
			return s, err
		}
		// another was faster: look again
	}
	return nil, nil
}

func (d *Deliverer) next(ctx context.Context, sub *Subscription, ref Ref, g *Group) (*shipment, error) {
	now := d.ports.Clock.Now()
	if c := g.Expired(&sub.Policy, now); c != nil {
		return d.recover(ctx, sub, ref, c)
	}
	v := Evaluate(g, &sub.Policy, now)
	if !v.Due || g.Blocked(&sub.Policy, now) {
		return nil, nil
	}
	return d.claim(ctx, sub, ref, g, v)
}

// recover takes an expired claim as it is.
func (d *Deliverer) recover(ctx context.Context, sub *Subscription, ref Ref, c *Claim) (*shipment, error) {
	s := &shipment{sub: sub, ref: ref, deadline: c.Due}
	_, err := d.ports.Store.Update(ctx, ref, func(g *Group) (err error) {
		s.claim, err = g.Recover(c.ID, &sub.Policy, d.ports.Clock.Now())
		return err
	})
	if err != nil {
		return nil, err
	}
	s.items, err = d.members(ctx, ref, &s.claim)
	return s, err
}

// members reads a claim's unsettled items.
func (d *Deliverer) members(ctx context.Context, ref Ref, c *Claim) ([]Item, error) {
	var items []Item
	for from := c.From; from <= c.To; {
		page, err := d.ports.Store.Items(ctx, ref, Span{From: from, To: c.To})
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			if c.Has(page.Items[i].Seq) {
				items = append(items, page.Items[i])
			}
		}
		if page.End < from {
			return nil, Errorf(Unavailable, "the items of %s from %d on can't be read yet", ref, from)
		}
		from = page.End + 1
	}
	return items, nil
}

// claim opens a claim on the first pending items.
func (d *Deliverer) claim(ctx context.Context, sub *Subscription, ref Ref, g *Group, v Verdict) (*shipment, error) {
	p := &sub.Policy
	from := g.Head + 1
	page, err := d.ports.Store.Items(ctx, ref, Span{
		From: from, To: min(g.Tail, g.Head+uint64(p.MaxItems)), MaxBytes: p.CapBytes,
	})
	if err != nil {
		return nil, err
	}
	taking, items := Split(from, &page, v.Reason, p)
	s := &shipment{sub: sub, ref: ref, items: items, deadline: v.Deadline}
	var checkAt Millis
	life := g.Life
	after, err := d.ports.Store.Update(ctx, ref, func(g *Group) (err error) {
		if g.Life != life {
			return Errorf(Conflict, "the group has begun anew")
		}
		checkAt = g.CheckAt
		s.claim, err = g.Claim(taking, p, d.ports.Clock.Now())
		return err
	})
	if err != nil {
		return nil, err
	}
	d.rest(ctx, s, &after, checkAt)
	if len(items) == 0 {
		return nil, Errorf(Conflict, "items %d to %d are void", taking.From, taking.To)
	}
	return s, nil
}

// rest sees to what a claim has left behind: another deliverer takes what is
// due if it may; what is not due is checked at its deadline. What is due but
// blocked is for whoever settles the claim in its way.
func (d *Deliverer) rest(ctx context.Context, s *shipment, g *Group, was Millis) {
	now := d.ports.Clock.Now()
	switch v := Evaluate(g, &s.sub.Policy, now); {
	case v.Due && !g.Blocked(&s.sub.Policy, now):
		d.ports.hand(ctx, s.sub.delivery(s.ref))
	case !v.Due && g.CheckAt != was:
		d.ports.arm(ctx, s.ref, g.Life, g.CheckAt)
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
	dest := s.sub.Destination
	begin := d.ports.Clock.Now()
	var r Response
	if sender := d.ports.Sender(dest.Name); sender != nil {
		r = sender.Send(ctx, &b)
	} else {
		r.Err = Errorf(Unavailable, "there is no sender for destination %s", dest.Name)
	}
	outcome := Classify(&r, dest.Retry.On)
	if outcome == Partial && r.Failed.Len() >= len(s.items) {
		outcome = Retry // none was taken: the batch stays as it is
	}
	d.ports.Observer.attempt(&Attempt{
		Buffer: b.Buffer, Group: b.Group, Batch: b.ID, Destination: dest.Name,
		Items: len(b.Items), Bytes: b.Bytes(), Reason: b.Reason, Number: b.Attempt,
		Outcome: outcome, Status: r.Status, Err: r.Err,
		At: begin, Took: d.ports.Clock.Now().Sub(begin), Lateness: max(0, begin.Sub(s.deadline)),
	})
	return r, outcome
}

// conclude turns an outcome into the group's next transition.
func (d *Deliverer) conclude(ctx context.Context, s *shipment, r *Response, o Outcome) error {
	retry := &s.sub.Destination.Retry
	exhausted := s.claim.Attempt >= retry.MaxAttempts
	switch {
	case o == Delivered:
		return d.ack(ctx, s)
	case o == Permanent:
		return d.bury(ctx, s, s.items, r, DeadPermanent)
	case o == Interrupted:
		return d.release(ctx, s, r, 0)
	case o == Partial && exhausted:
		return d.bury(ctx, s, failedItems(s.items, r.Failed), r, DeadExhausted)
	case o == Partial:
		return d.shrink(ctx, s, r)
	case exhausted:
		return d.bury(ctx, s, s.items, r, DeadExhausted)
	}
	return d.release(ctx, s, r, retry.Wait(s.claim.Attempt, r.RetryAfter, d.ports.Rand))
}

func (d *Deliverer) ack(ctx context.Context, s *shipment) error {
	return d.settle(ctx, s, func(g *Group, now Millis) error {
		return g.Ack(s.claim.ID, s.claim.Lease, &s.sub.Policy, now)
	})
}

func (d *Deliverer) release(ctx context.Context, s *shipment, r *Response, wait time.Duration) error {
	return d.settle(ctx, s, func(g *Group, now Millis) error {
		return g.Release(s.claim.ID, s.claim.Lease, now.Add(wait), cause(r), &s.sub.Policy, now)
	})
}

func (d *Deliverer) shrink(ctx context.Context, s *shipment, r *Response) error {
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

// bury makes dead letters of items and settles their claim. When they can't
// be put, the claim is tried again later: nothing is dropped.
func (d *Deliverer) bury(ctx context.Context, s *shipment, items []Item, r *Response, reason string) error {
	if err := d.ports.DeadLetters.Put(ctx, s.letters(items, r, reason, d.ports.Clock.Now())); err != nil {
		d.ports.Observer.failed("put dead letters", err)
		return d.release(ctx, s, r, s.sub.Destination.Retry.Wait(s.claim.Attempt, 0, d.ports.Rand))
	}
	d.ports.Observer.deadLetters(s.ref.Buffer, reason, len(items))
	return d.ack(ctx, s)
}

// settle ends this deliverer's hold on its claim. A lease that has passed on
// changes nothing: whoever has it now settles.
func (d *Deliverer) settle(ctx context.Context, s *shipment, fn func(*Group, Millis) error) error {
	var checkAt Millis
	g, err := d.ports.Store.Update(ctx, s.ref, func(g *Group) error {
		checkAt = g.CheckAt
		return fn(g, d.ports.Clock.Now())
	})
	switch {
	case err != nil && CodeOf(err) == Conflict:
		return nil
	case err != nil:
		return err
	}
	now := d.ports.Clock.Now()
	if g.CheckAt != checkAt && g.CheckAt > now {
		d.ports.arm(ctx, s.ref, g.Life, g.CheckAt)
	}
	for i := range g.Claims { // the claim, or the residue that a partial success left
		c := &g.Claims[i]
		if c.From >= s.claim.From && c.To <= s.claim.To && c.Due > now {
			d.ports.arm(ctx, s.ref, g.Life, c.Due)
		}
	}
	return nil
}

// cause is a failed attempt in a few words.
func cause(r *Response) string {
	if r.Err != nil {
		if detail := DetailOf(r.Err); detail != "" {
			return detail
		}
		return r.Err.Error()
	}
	return fmt.Sprintf("status %d", r.Status)
}
