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

// errUnchanged makes an update change nothing.
var errUnchanged = errors.New("nothing to change")

// Check looks at the group that a hint names: it hands a due one over, and
// arms the next check of another. A hint that is not the one armed last may
// deliver a due group but arms nothing, so doubled hints do not multiply.
func (c *Checker) Check(ctx context.Context, h Hint) error {
	sub := c.catalog.Buffer(h.Ref.Buffer)
	if sub == nil {
		return nil // the buffer is not configured; its items wait for its return
	}
	g, err := c.ports.Store.Group(ctx, h.Ref)
	if err != nil || g.Life != h.Life {
		return err
	}
	now := c.ports.Clock.Now()
	switch {
	case sub.wanted(&g, now):
		return c.ports.Queue.Hand(ctx, sub.delivery(h.Ref))
	case g.ahead(&sub.Policy, now):
		return c.rearm(ctx, sub, h.Ref, &g)
	case h.At > now:
		return c.ports.Timer.Arm(ctx, h) // it came early
	case h.At != g.CheckAt:
		return nil
	}
	return c.rearm(ctx, sub, h.Ref, &g)
}

// wanted reports whether a deliverer would find something to send now.
func (s *Subscription) wanted(g *Group, now Millis) bool {
	p := &s.Policy
	return g.Expired(p, now) != nil || (!g.Blocked(p, now) && Evaluate(g, p, now).Due)
}

// ahead reports whether the record holds a time further ahead than any wait
// under p: the clock was set back.
func (g *Group) ahead(p *Policy, now Millis) bool {
	if g.CheckAt > now.Add(max(p.MaxWait, p.IdleTimeout, p.Lease, p.MaxHold)) {
		return true
	}
	for i := range g.Claims {
		if g.Claims[i].Due > now.Add(max(p.Lease, p.MaxHold)) {
			return true
		}
	}
	return false
}

// rearm sets the group's next check, unless the group has changed since it
// was read, and arms what has moved.
func (c *Checker) rearm(ctx context.Context, sub *Subscription, ref Ref, was *Group) error {
	now := c.ports.Clock.Now()
	g, err := c.ports.Store.Update(ctx, ref, func(g *Group) error {
		if g.Life != was.Life || g.Rev != was.Rev || !g.Check(&sub.Policy, now) {
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
	c.ports.arm(ctx, ref, g.Life, g.CheckAt)
	if due := g.ClaimDue(); due != was.ClaimDue() {
		c.ports.arm(ctx, ref, g.Life, due)
	}
	return nil
}
