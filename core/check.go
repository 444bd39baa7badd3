package core

import (
	"context"
	"errors"
)

// Checker decides, at a group's deadlines, whether it is to be delivered.
type Checker struct {
	catalog *Catalog
	ports   Ports
}

// NewChecker makes a checker.
func NewChecker(c *Catalog, p Ports) *Checker { return &Checker{catalog: c, ports: p} }

// Check looks at the group that a hint names: it hands a due one over, and
// arms the next check of another. A hint that is not the one armed last may
// deliver a due group, or make its next check an earlier one, but never arms
// what is armed already: so doubled hints do not multiply.
func (c *Checker) Check(ctx context.Context, h Hint) error {
	err := c.check(ctx, h)
	if err != nil { // the hint is used up: this one is in its place
		c.ports.arm(context.WithoutCancel(ctx), Hint{Ref: h.Ref, Life: h.Life, At: max(h.At, c.ports.Clock.Now().Add(unreadable))})
	}
	return err
}

func (c *Checker) check(ctx context.Context, h Hint) error {
	sub := c.catalog.Buffer(h.Ref.Buffer)
	if sub == nil {
		return nil // the buffer is not configured; its items wait for its return
	}
	g, err := c.ports.Store.Group(ctx, h.Ref)
	if err != nil || g.Life != h.Life {
		return err
	}
	now, p := c.ports.Clock.Now(), sub.policy(h.Ref)
	if g.Wanted(p, now) {
		return c.ports.Queue.Hand(ctx, sub.delivery(h.Ref, &g))
	}
	next := g.Clone()
	moved := next.Check(p, now)
	switch {
	case moved && (next.CheckAt <= g.CheckAt || h.At == g.CheckAt && h.At <= now):
		return c.ports.rearm(ctx, sub, h.Ref, &g)
	case h.At > now:
		return c.ports.Timer.Arm(ctx, h) // it came early
	}
	return nil
}

// errUnchanged makes an update change nothing.
var errUnchanged = errors.New("nothing to change")

// rearm sets the next check of a group that is not to be delivered now,
// unless it has changed since it was read, and arms what has moved.
func (p *Ports) rearm(ctx context.Context, sub *Subscription, ref Ref, was *Group) error {
	policy := sub.policy(ref)
	g, err := p.Store.Update(ctx, ref, was, func(g *Group) error {
		if g.Life != was.Life || g.Rev != was.Rev || !g.Check(policy, p.Clock.Now()) {
			return errUnchanged
		}
		return nil
	})
	if errors.Is(err, errUnchanged) {
		return nil
	}
	if err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx) // the record says so now
	if now := p.Clock.Now(); g.CheckAt > now && g.Wanted(policy, now) {
		p.hand(ctx, sub.delivery(ref, &g)) // an append that the transition did not see has filled it
	}
	p.armCheck(ctx, policy, ref, &g)
	for i := range g.Claims {
		if old := was.Find(g.Claims[i].ID); old == nil || old.Due != g.Claims[i].Due {
			p.armClaim(ctx, ref, &g, &g.Claims[i])
		}
	}
	return nil
}
