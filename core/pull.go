package core

import "context"

// pull is what a flush takes of a group, beyond what is due.
type pull struct {
	over  Millis // when its time window is over, or 0: everything is finished
	early bool   // also claims that wait for their retry
	fresh bool   // no claim that there is already
	spent bool   // no new claim
	limit int    // the most items of a claim; 0: as many as a batch
	turn  *turn
}

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
func (e *errand) expired(g *Group, now Millis) *Claim {
	if e.pull != nil && e.pull.fresh {
		return nil
	}
	c := g.Expired(e.policy, now)
	if c != nil || e.pull == nil || !e.pull.early || g.sending(now) >= e.policy.sending() {
		return c
	}
	for i := range g.Claims {
		if e.policy.Ordered && i > 0 {
			break
		}
		if !g.Claims[i].Held() && !g.Claims[i].Token { // a token comes when it comes
			return &g.Claims[i]
		}
	}
	return nil
}

// waiting is the claim that is the next to have a token of a rate limit, and
// when; nil: none waits for one.
func (e *errand) waiting(g *Group) (next *Claim, at Millis) {
	for i := range g.Claims {
		c := &g.Claims[i]
		if e.pull.fresh || e.policy.Ordered && i > 0 {
			break
		}
		if c.Token && !c.Held() && earliest(at, c.Due) != at {
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
