package core

import "time"

// Policy is what a buffer's settings say about one group.
type Policy struct {
	MaxItems    int           // due at this many items; also the most in one batch
	MaxBytes    int64         // due at this many payload bytes
	IdleTimeout time.Duration // due when nothing has arrived for this long
	MaxWait     time.Duration // due when the oldest item has waited this long

	CapBytes int64 // the most payload bytes of one batch
	CapItems int   // the most pending items of one group; 0: no limit

	Ordered     bool // one batch of the group at a time, retries included
	Concurrency int  // batches of the group being sent at a time; 1 when Ordered

	// ShipAt is when the group, a time window, is due: once, and whole. It is
	// closed then, and what is kept of it until KeptUntil refuses more. Zero: the
	// group is no window.
	ShipAt    Millis
	KeptUntil Millis

	// Rest, when it is not zero, says that only a flush starts a delivery; such
	// a group is checked so often, for a change of the settings.
	Rest time.Duration

	Lease   time.Duration // how long a claim is one deliverer's
	MaxHold time.Duration // the longest wait between two attempts
}

// MaxClaims is how many claims one group may have, those that wait for a
// retry included; it keeps the record small. An ordered group has one.
const MaxClaims = 8

// claims is how many claims the group may have under p.
func (p *Policy) claims() int {
	if p.Ordered {
		return 1
	}
	return MaxClaims
}

// sending is how many claims may be sent at a time under p.
func (p *Policy) sending() int {
	if p.Ordered || p.Concurrency < 1 {
		return 1
	}
	return min(p.Concurrency, MaxClaims)
}

// FirstCheck is when a group is checked whose first item has arrived.
func (p *Policy) FirstCheck(now Millis) Millis {
	switch {
	case p.Rest != 0:
		return now.Add(p.Rest)
	case p.ShipAt != 0:
		return max(p.ShipAt, now)
	}
	return now.Add(min(p.IdleTimeout, p.MaxWait))
}

// Reason is why a batch left.
type Reason string

// The reasons, in the order in which they are reported when several hold.
const (
	ReasonItems  Reason = "items"
	ReasonBytes  Reason = "bytes"
	ReasonWait   Reason = "wait"
	ReasonIdle   Reason = "idle"
	ReasonWindow Reason = "window" // a time window is over
	ReasonFlush  Reason = "flush"  // somebody asked for it
	ReasonReplay Reason = "replay"
)

// Verdict is what [Evaluate] says of a group.
type Verdict struct {
	Due      bool
	Reason   Reason // when due
	Deadline Millis // when due: since when
	Next     Millis // when not due: the earliest deadline; 0 when nothing is pending
}

// Evaluate says whether a group's pending items must leave at now, and when to
// look again otherwise. It is the only place that knows the flush conditions.
//
// An arrival later than now, which a clock that was set back leaves behind,
// counts as now: no group waits longer than its own timeouts.
func Evaluate(g *Group, p *Policy, now Millis) Verdict {
	switch {
	case g.Pending() == 0:
		return Verdict{}
	case g.Hold > now:
		return Verdict{Next: g.Hold}
	case g.Closed != 0:
		return Verdict{Due: true, Reason: ReasonWindow, Deadline: min(max(p.ShipAt, g.FirstAt), now)}
	case p.Rest != 0:
		return Verdict{Next: nextRest(min(g.FirstAt, now), p.Rest, now)}
	case p.ShipAt > now:
		return Verdict{Next: p.ShipAt}
	case p.ShipAt != 0:
		return Verdict{Due: true, Reason: ReasonWindow, Deadline: max(p.ShipAt, min(g.FirstAt, now))}
	}
	last := min(g.LastAt, now)
	wait := min(g.FirstAt, now).Add(p.MaxWait)
	idle := last.Add(p.IdleTimeout)
	full := g.full(p)
	switch {
	case full != "":
		return Verdict{Due: true, Reason: full, Deadline: max(last, g.Hold)}
	case wait <= now:
		return Verdict{Due: true, Reason: ReasonWait, Deadline: max(earliest(wait, idle), g.Hold)}
	case idle <= now:
		return Verdict{Due: true, Reason: ReasonIdle, Deadline: max(idle, g.Hold)}
	}
	return Verdict{Next: earliest(wait, idle)}
}

// nextRest is the first time after now that lies a whole number of rests
// after from.
func nextRest(from Millis, rest time.Duration, now Millis) Millis {
	each := Millis(rest.Milliseconds())
	return from + (now-from)/each*each + each
}
