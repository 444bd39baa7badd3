package core

import "context"

// begin opens a claim on the first pending items of a group from which some are
// to leave. A time window is closed first, so that it is whole.
func (d *Deliverer) begin(ctx context.Context, e *errand, g *Group) (*shipment, error) {
	if e.policy.KeptUntil != 0 && g.Closed == 0 {
		closed, err := d.ports.Store.Update(ctx, e.ref, g, func(now *Group) error {
			if now.Life != g.Life || now.Rev != g.Rev {
				return Errorf(Conflict, "the group has changed")
			}
			now.Close(e.policy.KeptUntil, e.policy, d.ports.Clock.Now())
			return nil
		})
		if err != nil {
			return nil, err
		}
		g = &closed
	}
	if g.Closed != 0 && e.sub.fold != nil {
		return d.whole(ctx, e, g)
	}
	return d.claim(ctx, e, g)
}

// claim opens a claim on the first pending items.
func (d *Deliverer) claim(ctx context.Context, e *errand, g *Group) (*shipment, error) {
	p := *e.policy
	if e.pull != nil && e.pull.limit > 0 {
		p.MaxItems = min(p.MaxItems, e.pull.limit)
	}
	page, err := d.ports.Store.Items(ctx, e.ref, g, Span{
		From: g.Head + 1, To: g.Tail, MaxItems: p.MaxItems, MaxBytes: p.CapBytes,
	})
	if err != nil {
		return nil, err
	}
	v, err := d.confirm(ctx, e, g, &page)
	if err != nil || !v.Due {
		return nil, err
	}
	until := e.sub.behind(g, &page, d.ports.Clock.Now())
	if until != 0 && page.End == g.Head {
		return nil, d.holding(ctx, e, g, until)
	}
	taking, items := Split(g.Head+1, &page, v.Reason, &p)
	if taking.To == page.End {
		taking.Hold = until
	}
	if taking.To == g.Tail {
		taking.NextAt = g.LastAt // what is behind by now has arrived since
	}
	s := &shipment{errand: e, items: items, deadline: v.Deadline, full: len(items) == p.MaxItems || taking.To < g.Tail}
	if err := d.open(ctx, s, g, taking); err != nil {
		return nil, err
	}
	return s, nil
}

// open makes a taking of a group, as it was read, the shipment's claim.
// Conflict: another was faster, or there was no item in it.
func (d *Deliverer) open(ctx context.Context, s *shipment, was *Group, t Taking) error {
	var err error
	s.group, err = d.ports.Store.Update(ctx, s.ref, was, func(g *Group) (err error) {
		if g.Life != was.Life {
			return Errorf(Conflict, "the group has begun anew")
		}
		s.was = g.CheckAt
		s.claim, err = g.Claim(t, s.policy, d.ports.Clock.Now())
		return err
	})
	if err != nil {
		return err
	}
	if t.Items == 0 {
		d.rest(ctx, s)
		return Errorf(Conflict, "items %d to %d are void", t.From, t.To)
	}
	return nil
}

// behind cuts a page of pending items of an ordered buffer before the first that
// is held, and says until when it is; 0: none is. A group that has held some since
// its buffer was ordered goes on so.
func (s *Subscription) behind(g *Group, page *Page, now Millis) (until Millis) {
	if s.delay == nil || s.delay.held != nil && g.Hold == 0 {
		return 0
	}
	for i := range page.Items {
		due, err := s.Due(&page.Items[i].Event) // one that is none, under new settings, is not held
		if err != nil || due <= now {
			continue
		}
		page.NextAt, page.Mark = page.Items[i].ReceivedAt, page.mark(i)
		page.End = page.Items[i].Seq - 1
		page.Through = page.Offsets[i] - page.Items[i].Size()
		page.Items = page.Items[:i]
		return due
	}
	return 0
}

// holding notes until when a group's first item is held.
func (d *Deliverer) holding(ctx context.Context, e *errand, was *Group, until Millis) error {
	g, err := d.ports.Store.Update(ctx, e.ref, was, func(g *Group) error {
		if g.Life != was.Life || g.Head != was.Head {
			return Errorf(Conflict, "the group has changed")
		}
		g.HoldUntil(g.Head+1, until, e.policy, d.ports.Clock.Now())
		return nil
	})
	if err == nil {
		d.ports.armCheck(ctx, e.policy, e.ref, &g)
	}
	return err
}
