package core

import (
	"context"
	"strings"
)

// pull is what a flush takes of a group, beyond what is due.
type pull struct {
	over  Millis // when its time window is over, or 0: everything is finished
	early bool   // also claims that wait for their retry
	fresh bool   // no claim but those that the flush has opened
	spent bool   // no new claim
	limit int    // the most items of a claim; 0: as many as a batch
	turn  *turn

	// known are the claims that the flush has met in the group, by their roots, and
	// whether it has opened them.
	known map[string]bool
}

// root is what the ids of a claim and of all that partial successes leave of it
// have in common.
func root(id string) string {
	r, _, _ := strings.Cut(id, ".")
	return r
}

// may reports whether the flush may send a claim.
func (p *pull) may(c *Claim) bool { return !p.fresh || p.known[root(c.ID)] }

// keepTurn keeps the turn of a flush that is about one claim for long.
func (e *errand) keepTurn(ctx context.Context) {
	if e.pull != nil {
		e.pull.turn.renew(ctx)
	}
}

// evaluate says whether pending items are to leave: those that are due, or for
// a flush all that are finished.
func (e *errand) evaluate(g *Group, now Millis) Verdict {
	switch {
	case e.pull == nil:
		return Evaluate(g, e.policy, now)
	case e.pull.spent, g.Pending() == 0, g.Hold > now, g.Closed == 0 && e.pull.over > now:
		return Verdict{}
	}
	return Verdict{Due: true, Reason: ReasonFlush, Deadline: now}
}

// expired is the claim that is to be sent next, before anything new is claimed.
func (e *errand) expired(g *Group, now Millis) (early *Claim) {
	if e.pull == nil {
		return g.Expired(e.policy, now)
	}
	if g.sending(now) >= e.policy.sending() {
		return nil
	}
	for i := range g.Claims {
		c := &g.Claims[i]
		switch {
		case e.policy.Ordered && i > 0:
			return early
		case !e.pull.may(c):
		case c.Due <= now:
			return c
		case early == nil && e.pull.early && !e.pull.fresh && !c.Held() && !c.Token: // a token comes when it comes
			early = c
		}
	}
	return early
}

// waiting is the claim that is the next to have a token of a rate limit, and
// when; nil: none waits for one.
func (e *errand) waiting(g *Group) (next *Claim, at Millis) {
	for i := range g.Claims {
		c := &g.Claims[i]
		if e.policy.Ordered && i > 0 {
			break
		}
		if e.pull.may(c) && c.Token && !c.Held() && earliest(at, c.Due) != at {
			next, at = c, c.Due
		}
	}
	return next, at
}

// nothing notes why a flush has found nothing to take: others are sending all
// that the group may, or a claim waits for a token of a rate limit.
func (e *errand) nothing(g *Group, now Millis) {
	next, at := e.waiting(g)
	e.busy = g.sending(now) >= e.policy.sending() && (next != nil && at <= now || e.evaluate(g, now).Due)
	if next != nil && at > now {
		e.token, e.waitsFor = at, e.sub.hopOf(next).Name
	}
}
