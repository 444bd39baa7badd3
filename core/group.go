package core

import (
	"fmt"
	"slices"
	"time"
)

// Ref names a group, or one of the shards that its buffer spreads it over,
// each of which is a group of its own to everything but its receiver.
type Ref struct {
	Buffer string
	Key    string
	Shard  int // from 0
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
	Rev  uint64 // grows with every transition other than Append and Abandon

	Head, Tail           uint64 // numbers up to here are claimed or settled; handed out
	HeadBytes, TailBytes int64  // payload bytes up to there

	FirstAt Millis // arrival of the oldest pending item, or a lower bound; 0: none
	LastAt  Millis // arrival of the newest item
	CheckAt Millis // when the next check is armed; set while anything is pending

	Ceiling uint64 // appends beyond this number are refused; 0: no limit
	Claims  []Claim

	Void      uint64 // pending numbers that are known to have no item
	VoidBytes int64  // and what they count in TailBytes
	Mark      uint64 // where the store begins to look for number Head + 1; 0: there

	// Hold is until when the first pending item is held, and with it those behind
	// it; 0: it is not, or nobody has looked yet.
	Hold Millis

	// Closed, when it is not zero, says that the group takes no more items, and
	// until when a store keeps its record, though it be empty, to refuse them.
	Closed Millis
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

// HeldItems is how many items wait because the first of them is held: then its
// time is the next at which the group is looked at.
func (g *Group) HeldItems() uint64 {
	if g.Hold == 0 || g.CheckAt != g.Hold {
		return 0
	}
	return g.Pending() - g.Void
}

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
// is due or its lease has passed, if it may be sent now; else nil. In an
// ordered group only the first claim may be sent.
func (g *Group) Expired(p *Policy, now Millis) *Claim {
	if g.sending(now) >= p.sending() {
		return nil
	}
	for i := range g.Claims {
		if p.Ordered && i > 0 {
			break
		}
		if g.Claims[i].Due <= now {
			return &g.Claims[i]
		}
	}
	return nil
}

// Wanted reports whether a deliverer would find something to send now.
func (g *Group) Wanted(p *Policy, now Millis) bool {
	return g.Expired(p, now) != nil || (!g.Blocked(p, now) && Evaluate(g, p, now).Due)
}

// blockedUntil is when what blocks a new claim changes by itself: the end of a
// lease while too many are sent, else the due time of the claim that is next.
func (g *Group) blockedUntil(p *Policy, now Millis) Millis {
	if g.sending(now) < p.sending() {
		due := g.ClaimDue()
		if p.Ordered {
			due = g.Claims[0].Due // the others, from before it was ordered, wait for it
		}
		return max(due, now)
	}
	var due Millis
	for i := range g.Claims {
		if c := &g.Claims[i]; c.Held() && c.Due > now {
			due = earliest(due, c.Due)
		}
	}
	return due
}

// Appended is what an append did to its group.
type Appended struct {
	First   uint64 // number of its first item
	Armed   bool   // it set CheckAt: its caller arms the timer
	CheckAt Millis
	Life    string
	Rev     uint64
	Reached bool  // it made the group reach MaxItems or MaxBytes
	Closed  bool  // the group takes no more
	Shed    bool  // the buffer was full, and some of the part, which may be, is left out
	Doubles []int // positions of the part's events that were left out as doubles, in order
	Stored  int   // when closed or shed: so many of the part's first items are stored all the same, but for the doubles among them; mostly 0
	Split   bool  // its items' numbers are not all First and those that follow
	Changed bool  // its part's Change is made
}

// Append numbers n items of so many payload bytes, unless the group is closed.
// life is used when the record is new. Full: the group's ceiling is reached.
func (g *Group) Append(n int, bytes int64, life string, p *Policy, now Millis) (Appended, error) {
	if n < 1 {
		return Appended{}, Errorf(Internal, "append of %d items", n)
	}
	if g.Closed != 0 && p.ShipAt != 0 { // else its buffer has windows no more
		return Appended{Closed: true}, nil
	}
	ceiling := g.ceiling(p)
	if ceiling > 0 && g.Tail+uint64(n) > ceiling {
		return Appended{}, &Error{Code: Full, RetryAfter: time.Second,
			Detail: fmt.Sprintf("the group is full: it holds at most %d pending events (overflow.maxItems)", p.CapItems)}
	}
	if g.Life == "" {
		g.Life = life
	}
	g.Ceiling = ceiling
	g.Tail += uint64(n)
	g.TailBytes += bytes
	g.LastAt = now
	if g.FirstAt == 0 {
		g.FirstAt = now
	}
	armed := g.CheckAt == 0
	if armed {
		g.CheckAt = p.FirstCheck(now)
	}
	return g.Appended(n, bytes, armed, p), nil
}

// Appended is what an append of n items of so many payload bytes did, which
// has left the record as it is. armed says that it set CheckAt.
func (g *Group) Appended(n int, bytes int64, armed bool, p *Policy) Appended {
	before := *g
	before.Tail -= uint64(n)
	before.TailBytes -= bytes
	return Appended{
		First: before.Tail + 1, Armed: armed, CheckAt: g.CheckAt, Life: g.Life, Rev: g.Rev,
		Reached: before.full(p) == "" && g.full(p) != "",
	}
}

// Recap gives the group the ceiling that it has under p, which is another
// than before when the settings have changed.
func (g *Group) Recap(p *Policy) {
	if c := g.ceiling(p); c != g.Ceiling {
		g.Ceiling = c
		g.Rev++
	}
}

// ceiling is the last number that the group may hand out under p; 0: no limit.
func (g *Group) ceiling(p *Policy) uint64 {
	if p.CapItems == 0 {
		return 0
	}
	return g.Head + g.Void + uint64(p.CapItems)
}

// full is the reason for which the group is due whatever the time, or "".
func (g *Group) full(p *Policy) Reason {
	if p.ShipAt != 0 || p.Rest != 0 {
		return ""
	}
	switch n, bytes := g.Pending()-g.Void, g.PendingBytes()-g.VoidBytes; {
	case n >= uint64(p.MaxItems):
		return ReasonItems
	case n > 0 && bytes >= p.MaxBytes:
		return ReasonBytes
	}
	return ""
}

// HoldUntil notes until when its first pending item, number seq, is held.
func (g *Group) HoldUntil(seq uint64, at Millis, p *Policy, now Millis) {
	if seq == g.Head+1 && g.Hold != at {
		g.Hold = at
		g.changed(p, now)
	}
}

// Close makes the group refuse more items, and its record be kept until a
// time. A group that is closed already stays so.
func (g *Group) Close(until Millis, p *Policy, now Millis) {
	if g.Closed == 0 {
		g.Closed = until
		g.changed(p, now)
	}
}

// Check sets when to look at the group next. It reports whether it moved
// CheckAt or repaired a time that lay ahead: the caller then arms the timer.
func (g *Group) Check(p *Policy, now Millis) bool {
	was, rev := g.CheckAt, g.Rev
	repaired := g.clampTo(p, now)
	g.changed(p, now)
	if g.CheckAt == was && !repaired {
		g.Rev = rev
		return false
	}
	return true
}

// Arrived corrects FirstAt, which may be a lower bound, by the arrival of the
// first pending item, number seq.
func (g *Group) Arrived(seq uint64, at Millis, p *Policy, now Millis) {
	if seq == g.Head+1 && g.FirstAt < at {
		g.FirstAt = at
		g.changed(p, now)
	}
}

// Voided notes that so many of the pending numbers, and of the bytes counted
// with them, have no item: what is due by count is due without them.
func (g *Group) Voided(n uint64, bytes int64, p *Policy, now Millis) {
	if n != g.Void || bytes != g.VoidBytes {
		g.Void, g.VoidBytes = n, bytes
		g.Ceiling = g.ceiling(p)
		g.changed(p, now)
	}
}

// Nudge moves an overdue check on to at, so that what waits for a deliverer
// is not handed over again before then.
func (g *Group) Nudge(at Millis) {
	if g.CheckAt != 0 && g.CheckAt < at {
		g.CheckAt = at
		g.Rev++
	}
}

// Park has a due group looked at again at a time, when it may leave.
func (g *Group) Park(at Millis) {
	if g.CheckAt != 0 && g.CheckAt != at {
		g.CheckAt = at
		g.Rev++
	}
}

// abandoned is when the lease of a claim ended whose deliverer is known to be
// dead.
const abandoned = Millis(1)

// Abandon ends every lease at once: no deliverer of this group lives.
func (g *Group) Abandon() {
	for i := range g.Claims {
		if g.Claims[i].Held() {
			g.Claims[i].Due = abandoned
		}
	}
}

// changed finishes a transition: CheckAt becomes the true deadline of what is
// pending, which is now when it is due; what is due but blocked is looked at
// again when that may have changed.
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
		g.CheckAt = g.blockedUntil(p, now)
	default:
		g.CheckAt = now
	}
}

// clampTo repairs times that lie ahead because the clock was set back: nothing
// waits longer than its own timeouts. It reports whether there were any. A
// lease is left alone, as its deliverer lives by it, and so is LastAt, which is
// the appends' own.
func (g *Group) clampTo(p *Policy, now Millis) bool {
	repaired := clamp(&g.FirstAt, now)
	for i := range g.Claims {
		if c := &g.Claims[i]; !c.Held() {
			repaired = clamp(&c.Due, now.Add(p.MaxHold)) || repaired
		}
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
