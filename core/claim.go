package core

import (
	"cmp"
	"fmt"
	"slices"
)

// Claim is a range of a group's log, leased to one deliverer. Its id, members
// and order stay the same through every retry and takeover.
type Claim struct {
	ID       string
	From, To uint64 // both inclusive
	Done     Bits   // members settled by a partial success, by Seq - From
	Residue  int    // how many partial successes led here
	Reason   Reason
	Attempt  int // sends begun, from 1
	// Lease grows at every take and every release: odd while a deliverer holds
	// the claim, even while it waits for its next attempt.
	Lease        uint64
	Due          Millis // when the lease ends, or the next attempt is due
	FirstErrorAt Millis
	Error        string // the last error, at most MaxClaimError bytes
	Mark         uint64 // where the store begins to look for item From; 0: there

	// Fold, when it is not empty, says that the claim is a whole window, which
	// leaves in rows, and by which settings they were made: Sent of those have
	// been settled.
	Fold string
	Sent int

	Hop   int  // how many destinations have failed: the next is a fallback
	Token bool // it waits for a token of the rate limit, which is its own when it is due
}

// MaxClaimError bounds the error text that a claim keeps, in bytes.
const MaxClaimError = 100

// Held reports whether a deliverer has the claim.
func (c *Claim) Held() bool { return c.Lease%2 == 1 }

// Has reports whether number seq is a member that is not yet settled.
func (c *Claim) Has(seq uint64) bool {
	return c.From <= seq && seq <= c.To && !c.Done.Has(int(seq-c.From))
}

// Taking is the prefix of a group's pending items that a claim takes.
type Taking struct {
	From    uint64 // the caller read the group with this as head + 1
	To      uint64 // last number taken
	Through int64  // the log's payload bytes up to there
	Items   int    // items among them; 0 when all the numbers are void
	NextAt  Millis // arrival of item To + 1, or a lower bound; 0 when not known
	Mark    uint64 // where the store begins to look for item To + 1; 0: there
	Hold    Millis // until when item To + 1 is held; 0: it is not, or that is not known
	Reason  Reason
	Fold    string // not empty: it is a whole window, which leaves in rows made by these settings
}

// Claim takes a prefix of the pending items as a new claim, which the caller
// then holds. Conflict: another has taken it first, or no slot is free.
func (g *Group) Claim(t Taking, p *Policy, now Millis) (Claim, error) {
	switch {
	case t.From != g.Head+1 || t.To < t.From || t.To > g.Tail:
		return Claim{}, Errorf(Conflict, "items %d to %d are not the group's next ones", t.From, t.To)
	case t.Items > 0 && g.Blocked(p, now):
		return Claim{}, Errorf(Conflict, "no slot is free for another claim")
	}
	var c Claim
	if t.Items > 0 {
		c = Claim{ID: fmt.Sprintf("%s-%d", g.Life, t.From), From: t.From, To: t.To,
			Reason: t.Reason, Attempt: 1, Lease: 1, Due: now.Add(p.Lease), Mark: g.Mark, Fold: t.Fold}
		g.Claims = append(g.Claims, c)
	}
	g.Head, g.HeadBytes, g.Mark = t.To, t.Through, t.Mark
	g.Void, g.VoidBytes, g.Hold = 0, 0, t.Hold
	g.FirstAt = max(g.FirstAt, t.NextAt)
	g.Ceiling = g.ceiling(p)
	g.changed(p, now)
	return c, nil
}

// Recover takes the expired claim of an id as it is; the caller then holds it.
// Conflict: another has it, it is gone, or no slot is free. A takeover from a
// deliverer that died counts as the same attempt, since whether that send was
// made is not known.
func (g *Group) Recover(id string, p *Policy, now Millis) (Claim, error) {
	c := g.Find(id)
	if c == nil || c.Due > now || g.sending(now) >= p.sending() {
		return Claim{}, Errorf(Conflict, "claim %s is not free", id)
	}
	if c.Held() {
		c.Lease += 2
	} else {
		c.Lease++
		c.Attempt++
	}
	c.Due = now.Add(p.Lease)
	taken := *c
	c.Token = false
	g.changed(p, now)
	return taken, nil
}

// held returns the claim that a settling names, if it is held under that lease.
func (g *Group) held(id string, lease uint64) (*Claim, error) {
	c := g.Find(id)
	if c == nil || !c.Held() || c.Lease != lease {
		return nil, Errorf(Conflict, "the lease on claim %s has passed on", id)
	}
	return c, nil
}

// Ack settles a claim. Conflict: the lease has passed on; nothing changes.
func (g *Group) Ack(id string, lease uint64, p *Policy, now Millis) error {
	if _, err := g.held(id, lease); err != nil {
		return err
	}
	g.Claims = slices.DeleteFunc(slices.Clone(g.Claims), func(c Claim) bool { return c.ID == id })
	g.changed(p, now)
	return nil
}

// Release gives a claim back, to be sent again at due. Conflict: the lease
// has passed on; nothing changes.
func (g *Group) Release(id string, lease uint64, due Millis, cause string, p *Policy, now Millis) error {
	c, err := g.held(id, lease)
	if err != nil {
		return err
	}
	c.release(due, cause, now)
	g.changed(p, now)
	return nil
}

func (c *Claim) release(due Millis, cause string, now Millis) {
	c.Lease++
	c.Due = due
	c.Error = Cut(cause, MaxClaimError)
	if c.FirstErrorAt == 0 {
		c.FirstErrorAt = now
	}
}

// Postpone gives a claim back unsent, or cut off by its own deliverer: the
// attempt does not count. With token, it has taken a token that comes at due.
// Conflict: the lease has passed on; nothing changes.
func (g *Group) Postpone(id string, lease uint64, due Millis, token bool, p *Policy, now Millis) error {
	c, err := g.held(id, lease)
	if err != nil {
		return err
	}
	c.Lease++
	c.Attempt--
	c.Due, c.Token = due, token
	g.changed(p, now)
	return nil
}

// Renew makes the lease on a claim begin anew, for what takes longer than a
// send. Conflict: the lease has passed on; nothing changes.
func (g *Group) Renew(id string, lease uint64, p *Policy, now Millis) error {
	c, err := g.held(id, lease)
	if err != nil {
		return err
	}
	c.Due = now.Add(p.Lease)
	g.changed(p, now)
	return nil
}

// Advance settles the rows of a claim up to number sent, made by the settings
// fold, and makes the next of them a first attempt; the lease begins anew.
// Conflict: it has passed on; nothing changes.
func (g *Group) Advance(id string, lease uint64, fold string, sent int, p *Policy, now Millis) error {
	c, err := g.held(id, lease)
	if err != nil {
		return err
	}
	c.Fold, c.Sent, c.Hop, c.Attempt = fold, sent, 0, 1
	c.FirstErrorAt, c.Error = 0, ""
	c.Due = now.Add(p.Lease)
	g.changed(p, now)
	return nil
}

// Fall hands a claim to the next destination in line, as a first attempt; the
// lease begins anew. Conflict: it has passed on; nothing changes.
func (g *Group) Fall(id string, lease uint64, p *Policy, now Millis) error {
	c, err := g.held(id, lease)
	if err != nil {
		return err
	}
	c.Hop, c.Attempt = c.Hop+1, 1
	if c.FirstErrorAt == 0 {
		c.FirstErrorAt = now
	}
	c.Due = now.Add(p.Lease)
	g.changed(p, now)
	return nil
}

// Defer makes a claim that nobody sends wait until due, as its destination takes
// nothing. Conflict: it is being sent, or gone.
func (g *Group) Defer(id string, due Millis, p *Policy, now Millis) error {
	c := g.Find(id)
	if c == nil || c.Held() && c.Due > now {
		return Errorf(Conflict, "claim %s is not free", id)
	}
	if c.Held() { // its deliverer has died: the attempt counts once it is made again
		c.Lease++
		c.Attempt--
	}
	c.Due, c.Token = max(c.Due, due), false // a token that came meanwhile is gone
	g.changed(p, now)
	return nil
}

// Hasten makes a claim that waits for its retry due now.
func (g *Group) Hasten(id string, now Millis) {
	if c := g.Find(id); c != nil && !c.Held() {
		c.Due = min(c.Due, now)
	}
}

// Shrink settles the members of a claim that a partial success took, and
// leaves the failed ones (by Seq - From) as a batch of their own under a new
// id, to be sent at due. In an ordered group everything from the first failed one on stays.
// Conflict: the lease has passed on; nothing changes.
func (g *Group) Shrink(id string, lease uint64, failed Bits, due Millis, cause string, p *Policy, now Millis) error {
	c, err := g.held(id, lease)
	if err != nil {
		return err
	}
	var left []uint64
	for seq := c.From; seq <= c.To; seq++ {
		if c.Has(seq) && (failed.Has(int(seq-c.From)) || (p.Ordered && len(left) > 0)) {
			left = append(left, seq)
		}
	}
	if len(left) == 0 {
		return Errorf(Internal, "a partial success of claim %s left nothing", id)
	}
	r := Claim{From: left[0], To: left[len(left)-1], Residue: c.Residue + 1, Reason: c.Reason,
		Attempt: c.Attempt, Hop: c.Hop, Lease: c.Lease, FirstErrorAt: c.FirstErrorAt, Mark: cmp.Or(c.Mark, c.From)}
	r.ID = residueID(c.ID, c.Residue, r.Residue)
	for seq, i := r.From, 0; seq <= r.To; seq++ {
		if seq == left[i] {
			i++
		} else {
			r.Done = r.Done.With(int(seq - r.From))
		}
	}
	r.release(due, cause, now)
	*c = r
	g.changed(p, now)
	return nil
}

// residueID names the batch that the n-th partial success leaves: the first
// one of batch x is x.2.
func residueID(id string, was, n int) string {
	if was > 0 {
		id = id[:len(id)-len(fmt.Sprintf(".%d", was+1))]
	}
	return fmt.Sprintf("%s.%d", id, n+1)
}
