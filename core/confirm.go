package core

import "context"

// confirm holds a group that its record says is due against the items that it
// really has: a record counts numbers that a dead writer has left void, and
// those of a writer that is still at work; and its FirstAt may be no more than
// a lower bound. When the group is not due after all, it sees to it that the
// group is looked at again. Conflict: at once.
func (d *Deliverer) confirm(ctx context.Context, e *errand, g *Group, page *Page) (Verdict, error) {
	p, now, ref := e.policy, d.ports.Clock.Now(), e.ref
	known := g.knowing(page)
	if len(page.Items) > 0 && known.FirstAt < page.Items[0].ReceivedAt && page.Items[0].ReceivedAt <= now {
		known.FirstAt = page.Items[0].ReceivedAt
	}
	v := e.evaluate(&known, now)
	switch {
	case page.RetryAt != 0 && (!v.Due || page.End == g.Head):
		return Verdict{}, d.waiting(ctx, e, g, page)
	case v.Due:
		return v, nil
	}
	after, err := d.ports.Store.Update(ctx, ref, g, func(now *Group) error {
		if now.Life != g.Life || now.Rev != g.Rev {
			return Errorf(Conflict, "the group has changed")
		}
		at := d.ports.Clock.Now()
		if len(page.Items) > 0 {
			now.Arrived(now.Head+1, page.Items[0].ReceivedAt, p, at) // what lies before it is void
		}
		now.Voided(known.Void, known.VoidBytes, p, at)
		return nil
	})
	if err != nil {
		return Verdict{}, err
	}
	d.ports.armCheck(ctx, p, ref, &after)
	return Verdict{}, Errorf(Conflict, "%s has fewer or later items than its record said", ref)
}

// knowing is the group with what a page of its pending items, read from the
// first one on, shows to be void. Numbers that a writer may still fill do not
// count yet.
func (g *Group) knowing(page *Page) Group {
	k := *g
	k.Void = page.End - g.Head - uint64(len(page.Items))
	k.VoidBytes = page.Through - g.HeadBytes
	for i := range page.Items {
		k.VoidBytes -= page.Items[i].Size()
	}
	if page.RetryAt != 0 {
		k.Void += g.Tail - page.End
		k.VoidBytes += g.TailBytes - page.Through
	}
	return k
}

// waiting has a group looked at again when its next number, whose writer may be
// at work, counts as void. A flush says so.
func (d *Deliverer) waiting(ctx context.Context, e *errand, g *Group, page *Page) error {
	d.ports.arm(ctx, Hint{Ref: e.ref, Life: g.Life, At: page.RetryAt})
	if e.pull == nil {
		return nil
	}
	return Errorf(Unavailable, "a writer is still at work on %s; flush again in a moment", e.ref)
}
