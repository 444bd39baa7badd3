package core

import (
	"fmt"
	"slices"
	"time"
)

// Ref names a group.
type Ref struct {
	Buffer string
	Key    string
}

// Group is one group's record. Its items lie in a log beside it, numbered from
// 1 in the order accepted:
//
//	1 ………… │ claims: from..to │ ………… head │ head+1 ………… tail
//	settled │      in flight            │      pending
//
// The methods that change it are pure transitions: they take the time, touch
// nothing else (but may write through Claims, so a store hands out a [Group.Clone]),
// and either change the record or return an error and leave it as it was. A
// [Store] applies one atomically.
type Group struct {
	Life string // id of this incarnation, given when the record is created
	Rev  uint64 // grows with every transition other than an append

	Head, Tail           uint64 // numbers up to here are claimed or settled; handed out
	HeadBytes, TailBytes int64  // payload bytes up to there

	FirstAt Millis // arrival of the oldest pending item, or a lower bound; 0: none
	LastAt  Millis // arrival of the newest item
	CheckAt Millis // when the next check is armed; set while anything is pending

	Ceiling uint64 // appends beyond this number are refused; 0: no limit
	Claims  []Claim
}

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
}

// MaxClaimError bounds the error text that a claim keeps, in bytes.
const MaxClaimError = 100

// Held reports whether a deliverer has the claim.
func (c *Claim) Held() bool { return c.Lease%2 == 1 }

// Has reports whether number seq is a member that is not yet settled.
func (c *Claim) Has(seq uint64) bool {
	return c.From <= seq && seq <= c.To && !c.Done.Has(int(seq-c.From))
}

// Clone is a copy that shares nothing with g.
func (g *Group) Clone() Group {
	c := *g
	c.Claims = slices.Clone(g.Claims)
	for i := range c.Claims {
		c.Claims[i].Done = slices.Clone(c.Claims[i].Done)
	}
	return c
}

// Pending is how many numbers wait to be claimed.
func (g *Group) Pending() uint64 { return g.Tail - g.Head }

// PendingBytes is how many payload bytes wait to be claimed.
func (g *Group) PendingBytes() int64 { return g.TailBytes - g.HeadBytes }

// Empty reports whether nothing is pending or in flight.
func (g *Group) Empty() bool { return g.Tail == g.Head && len(g.Claims) == 0 }

// ClaimDue is the earliest time at which a claim wants attention; 0: none.
func (g *Group) ClaimDue() Millis {
	var due Millis
	for i := range g.Claims {
		due = earliest(due, g.Claims[i].Due)
	}
	return due
}

// Find returns the claim of an id, or nil.
func (g *Group) Find(id string) *Claim {
	for i := range g.Claims {
		if g.Claims[i].ID == id {
			return &g.Claims[i]
		}
	}
	return nil
}

// Live reports whether item seq is still needed: pending, or an unsettled
// member of a claim. A store may drop the others.
func (g *Group) Live(seq uint64) bool {
	if seq > g.Head {
		return seq <= g.Tail
	}
	for i := range g.Claims {
		if g.Claims[i].Has(seq) {
			return true
		}
	}
	return false
}

// sending is how many claims are held by a deliverer whose lease has not passed.
func (g *Group) sending(now Millis) int {
	n := 0
	for i := range g.Claims {
		if g.Claims[i].Held() && g.Claims[i].Due > now {
			n++
		}
	}
	return n
}

// Blocked reports whether no new claim may be opened now.
func (g *Group) Blocked(p *Policy, now Millis) bool {
	return len(g.Claims) >= p.claims() || g.sending(now) >= p.sending()
}

// Expired is the oldest claim that wants a deliverer now, because its retry
// is due or its lease has passed, if it may be sent now; else nil.
func (g *Group) Expired(p *Policy, now Millis) *Claim {
	if g.sending(now) >= p.sending() {
		return nil
	}
	for i := range g.Claims {
		if g.Claims[i].Due <= now {
			return &g.Claims[i]
		}
	}
	return nil
}

// Appended is what an append did to its group.
type Appended struct {
	First   uint64 // number of its first item
	Armed   bool   // it set CheckAt: its caller arms the timer
	CheckAt Millis
	Life    string
	Reached bool // it made the group reach MaxItems or MaxBytes
}

// Append numbers n items of so many payload bytes. life is used when the
// record is new. Full: the group's ceiling is reached.
func (g *Group) Append(n int, bytes int64, life string, p *Policy, now Millis) (Appended, error) {
	if n < 1 {
		return Appended{}, Errorf(Internal, "append of %d items", n)
	}
	ceiling := g.ceiling(p)
	if ceiling > 0 && g.Tail+uint64(n) > ceiling {
		return Appended{}, &Error{Code: Full, RetryAfter: time.Second,
			Detail: fmt.Sprintf("the group is full: it holds at most %d pending events (overflow.maxItems)", p.CapItems)}
	}
	if g.Life == "" {
		g.Life = life
	}
	was := g.full(p)
	g.Ceiling = ceiling
	a := Appended{First: g.Tail + 1, Life: g.Life}
	g.Tail += uint64(n)
	g.TailBytes += bytes
	g.LastAt = now
	if g.FirstAt == 0 {
		g.FirstAt = now
	}
	if g.CheckAt == 0 {
		g.CheckAt, a.Armed = now.Add(p.firstCheck()), true
	}
	a.CheckAt = g.CheckAt
	a.Reached = was == "" && g.full(p) != ""
	return a, nil
}

// ceiling is the last number that the group may hand out under p; 0: no limit.
func (g *Group) ceiling(p *Policy) uint64 {
	if p.CapItems == 0 {
		return 0
	}
	return g.Head + uint64(p.CapItems)
}

// full is the reason for which the group is due whatever the time, or "".
func (g *Group) full(p *Policy) Reason {
	switch {
	case g.Pending() >= uint64(p.MaxItems):
		return ReasonItems
	case g.Pending() > 0 && g.PendingBytes() >= p.MaxBytes:
		return ReasonBytes
	}
	return ""
}

// Taking is the prefix of a group's pending items that a claim takes.
type Taking struct {
	From    uint64 // the caller read the group with this as head + 1
	To      uint64 // last number taken
	Through int64  // the log's payload bytes up to there
	Items   int    // items among them; 0 when all the numbers are void
	NextAt  Millis // arrival of item To + 1, or a lower bound; 0 when not known
	Reason  Reason
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
			Reason: t.Reason, Attempt: 1, Lease: 1, Due: now.Add(p.Lease)}
		g.Claims = append(g.Claims, c)
	}
	g.Head, g.HeadBytes = t.To, t.Through
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
		Attempt: c.Attempt, Lease: c.Lease, FirstErrorAt: c.FirstErrorAt}
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

// Check settles when to look at the group next, after a check that has found
// nothing to deliver. It reports whether it moved CheckAt or repaired a time
// that lay ahead: the caller then arms the timer.
func (g *Group) Check(p *Policy, now Millis) bool {
	was := g.CheckAt
	rev := g.Rev
	repaired := g.clampTo(p, now)
	g.changed(p, now)
	if g.CheckAt == was && !repaired {
		g.Rev = rev
		return false
	}
	return true
}

// Nudge moves an overdue check on to at, so that what waits for a deliverer
// is not handed over again before then.
func (g *Group) Nudge(at Millis) {
	if g.CheckAt != 0 && g.CheckAt < at {
		g.CheckAt = at
		g.Rev++
	}
}

// Abandon ends every lease at once: no deliverer of this group lives.
func (g *Group) Abandon() {
	for i := range g.Claims {
		if g.Claims[i].Held() {
			g.Claims[i].Due = 1
		}
	}
}

// changed finishes a transition: CheckAt becomes the true deadline of what is
// pending, which is now when it is due, and the next claim's due time when it
// is due but blocked.
func (g *Group) changed(p *Policy, now Millis) {
	g.Rev++
	g.clampTo(p, now)
	v := Evaluate(g, p, now)
	switch {
	case g.Pending() == 0:
		g.FirstAt, g.CheckAt = 0, 0
	case !v.Due:
		g.CheckAt = v.Next
	case g.Blocked(p, now):
		g.CheckAt = max(g.ClaimDue(), now)
	default:
		g.CheckAt = now
	}
}

// clampTo repairs times that lie ahead because the clock was set back: nothing
// waits longer than its own timeouts. It reports whether there were any.
func (g *Group) clampTo(p *Policy, now Millis) bool {
	repaired := clamp(&g.FirstAt, now)
	repaired = clamp(&g.LastAt, now) || repaired
	latest := now.Add(max(p.Lease, p.MaxHold))
	for i := range g.Claims {
		repaired = clamp(&g.Claims[i].Due, latest) || repaired
	}
	return repaired
}

// clamp makes at no later than latest, and reports whether it was.
func clamp(at *Millis, latest Millis) bool {
	if *at <= latest {
		return false
	}
	*at = latest
	return true
}

// Cut is s, or its first n bytes without a torn character.
func Cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n]
}
