package core

import (
	"context"
	"encoding/json"
	"time"
)

// Breaker is what processes share about a destination that has a circuit
// breaker. After so many failures in a row it is open, and nothing is sent;
// after a cooldown one probe is, and what comes of it decides.
//
// Source: M. Nygard, "Release It!", 2007, chapter 5.
type Breaker struct {
	Failures int    `json:"failures,omitempty"` // in a row
	Until    Millis `json:"until,omitempty"`    // open until then; then the next send is a probe
	Probing  bool   `json:"probing,omitempty"`  // that is under way, and Until its lease's end
}

// Open reports whether nothing may be sent at now.
func (b *Breaker) Open(now Millis) bool { return b.Until > now }

// Allow says until when a send has to wait; 0: it need not. The one that need
// not, though the breaker was open, is the probe: until its lease ends there is
// no other.
func (b *Breaker) Allow(lease time.Duration, now Millis) (until Millis) {
	switch {
	case b.Until == 0:
		return 0
	case b.Until > now:
		return b.Until
	}
	b.Until, b.Probing = now.Add(lease), true
	return 0
}

// Failed notes a failure, which may open the breaker.
func (b *Breaker) Failed(c *BreakerConfig, now Millis) {
	b.Failures = min(b.Failures+1, c.Failures)
	if b.Failures >= c.Failures {
		b.Until, b.Probing = now.Add(c.Cooldown), false
	}
}

// gate is what lets sends through to destinations.
type gate struct{ ports *Ports }

func breakerName(destination string) string { return "breaker/" + destination }

// probe is a probe that a breaker has let through: its lease ends at until.
type probe struct {
	to    *Destination
	until Millis
}

// breaker says until when a send to a destination has to wait for its breaker,
// or whether it is its probe. The time is the same for all that ask within a
// cooldown. One that can't be asked keeps nobody.
func (g gate) breaker(ctx context.Context, d *Destination) (until Millis, p *probe) {
	if d.Breaker == nil || g.ports.Coordinator == nil {
		return 0, nil
	}
	now := g.ports.Clock.Now()
	err := changeSoon(ctx, g.ports.Coordinator, breakerName(d.Name), func(b *Breaker) bool {
		was := *b
		if b.Until > now.Add(max(d.Breaker.Cooldown, d.Timeout+leaseMargin)) {
			b.Until = now // the clock was set back
		}
		until = b.Allow(d.Timeout+leaseMargin, now)
		if ahead := until.Sub(now) - 1; until != 0 { // a probe may be back long before its lease ends
			until = until.Add(-(ahead - ahead%d.Breaker.Cooldown))
		}
		if p = nil; until == 0 && b.Until != 0 {
			p = &probe{d, b.Until}
		}
		return *b != was
	})
	if err != nil {
		until, p = 0, nil
	}
	g.ports.Observer.failed("ask the breaker", err)
	return until, p
}

// unused makes a probe that was not made another's.
func (g gate) unused(ctx context.Context, p *probe) {
	if p == nil {
		return
	}
	now := g.ports.Clock.Now()
	err := changeSoon(ctx, g.ports.Coordinator, breakerName(p.to.Name), func(b *Breaker) bool {
		if b.Until != p.until || b.Until <= now {
			return false // it is about something else by now
		}
		b.Until, b.Probing = now, false
		return true
	})
	g.ports.Observer.failed("give a probe back", err)
}

// outcome tells a destination's breaker what came of a send.
func (g gate) outcome(ctx context.Context, d *Destination, o Outcome) {
	if d.Breaker == nil || g.ports.Coordinator == nil || o == Interrupted {
		return
	}
	now := g.ports.Clock.Now()
	var was, is Breaker
	err := changeSoon(ctx, g.ports.Coordinator, breakerName(d.Name), func(b *Breaker) bool {
		was = *b
		if o == Retry {
			b.Failed(d.Breaker, now)
		} else {
			*b = Breaker{} // it has answered
		}
		is = *b
		return is != was
	})
	g.ports.Observer.failed("tell the breaker", err)
	if open := is.Until != 0; err == nil && open != (was.Until != 0) {
		g.ports.Observer.breaker(d.Name, open)
	}
}

// BreakerOf is the present state of a destination's breaker.
func BreakerOf(ctx context.Context, c Coordinator, destination string) (Breaker, error) {
	var state Breaker
	err := changeRecord(ctx, c, breakerName(destination), func(b *Breaker) bool {
		state = *b
		return false
	})
	return state, err
}

// Rate is what processes share about a destination with a rate limit: when
// the request after all that were let through would arrive, were they evenly
// spaced.
//
// Source: the generic cell rate algorithm, ITU-T I.371, 2004, annex A.
type Rate struct {
	Arrival int64  `json:"arrival"` // Unix time in microseconds
	At      Millis `json:"at"`      // when a token was last asked for

	// Each and Requests are what the limit was then: so many microseconds between
	// two requests, and so many at once.
	Each     int64 `json:"each,omitempty"`
	Requests int   `json:"requests,omitempty"`
}

// maxSkew is how far the clocks of processes differ at most.
const maxSkew = time.Minute

// Take takes a token, and says in how long it comes: as many requests as the
// limit allows may be made at once when there were none before. One that would
// come in more than most is not taken: wait for most, and ask again.
func (r *Rate) Take(c *RateConfig, most time.Duration, now Millis) (wait time.Duration, taken bool) {
	at := int64(now) * 1000
	if r.At > now.Add(maxSkew) {
		r.Arrival = at // the clock was set back
	}
	r.At = now
	r.Arrival = max(r.Arrival, at)
	r.space(c, at)
	if free := r.Arrival - r.Each*int64(c.Requests-1); free > at {
		wait = time.Duration((free-at+999)/1000) * time.Millisecond
	}
	if wait > most {
		return most, false
	}
	r.Arrival += r.Each
	return wait, true
}

// space makes the record one of another limit, when that has changed: of what the
// old one let through, as much counts as the new one lets through at once, and
// what is still to come, in the closer spacing of the two. So what comes next
// waits no longer than it would have, or than for one request of the new one.
func (r *Rate) space(c *RateConfig, at int64) {
	each := max(1, (c.Per.Microseconds()+int64(c.Requests)-1)/int64(c.Requests))
	if r.Each != 0 && (each != r.Each || c.Requests != r.Requests) {
		taken := float64(r.Arrival-at) / float64(r.Each)
		waiting := max(0, taken-float64(r.Requests))
		taken = min(taken, float64(r.Requests), float64(c.Requests))
		r.Arrival = at + int64((taken+waiting)*float64(min(each, r.Each)))
	}
	r.Each, r.Requests = each, c.Requests
}

// token takes a token of a destination's rate limit, and says in how long it
// comes, or when to ask again. A limit that can't be asked keeps nobody.
func (g gate) token(ctx context.Context, d *Destination, most time.Duration) (wait time.Duration, taken bool) {
	if d.RateLimit == nil || g.ports.Coordinator == nil {
		return 0, false
	}
	now := g.ports.Clock.Now()
	err := changeSoon(ctx, g.ports.Coordinator, "rate/"+d.Name, func(r *Rate) bool {
		wait, taken = r.Take(d.RateLimit, most, now)
		return true
	})
	if err != nil {
		wait, taken = 0, false
	}
	g.ports.Observer.failed("ask the rate limit", err)
	return wait, taken
}

// changeSoon is changeRecord for who holds a lease meanwhile.
func changeSoon[T any](ctx context.Context, c Coordinator, name string, fn func(*T) bool) error {
	ctx, cancel := context.WithTimeout(ctx, restTime)
	defer cancel()
	return changeRecord(ctx, c, name, fn)
}

// changeRecord changes a shared record if fn says so. One that can't be read
// counts as new.
func changeRecord[T any](ctx context.Context, c Coordinator, name string, fn func(*T) bool) error {
	err := c.Change(ctx, name, func(old []byte) ([]byte, error) {
		var r T
		if json.Unmarshal(old, &r) != nil {
			r = *new(T)
		}
		if !fn(&r) {
			return nil, errUnchanged
		}
		return json.Marshal(r)
	})
	if err == errUnchanged { //nolint:errorlint // it is returned as it is
		return nil
	}
	return err
}
