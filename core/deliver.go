package core

import (
	"context"
	"errors"
	"time"
)

// races is how often a deliverer re-reads a group whose claim it has lost.
const races = 4

// Deliverer sends what is due, one batch at a time:
//
//	recover ▶ claim ▶ send ▶ settle (ack | release with backoff | dead-letter)
type Deliverer struct {
	catalog *Catalog
	ports   Ports
}

// NewDeliverer makes a deliverer.
func NewDeliverer(c *Catalog, p Ports) *Deliverer { return &Deliverer{catalog: c, ports: p} }

// restTime bounds what a deliverer does for others between its claim and its
// send: the lease has begun, and leaseMargin is to settle in.
const restTime = 5 * time.Second

// unreadable is how long a group waits that could not be read or claimed.
const unreadable = time.Second

// errand is what a deliverer is sent for.
type errand struct {
	sub    *Subscription
	ref    Ref
	policy *Policy
	seen   *Group // as the sender of the delivery has read it; nil: it has not
	pull   *pull  // what a flush asks for; nil: what is due

	allowed  *hop          // whose breaker has let it through, and is asked once; nil: none has
	probe    *probe        // as its probe; nil: as any other
	free     func()        // gives its slot of a fallback back; nil: it has none
	room     *hop          // which one that is
	waits    time.Duration // nothing was taken, as the breaker of waitsFor is open for so long
	waitsFor string
	token    Millis          // nothing was taken, as a claim has its token for waitsFor, or tries for a slot of that, then
	may      context.Context //nolint:containedctx // of one call: its end keeps more from being begun

	busy       bool // nothing was taken, as others are sending all that the group may
	recovering bool // what failed was the recovery of a claim
}

// shipment is a claim that this deliverer holds, with its items.
type shipment struct {
	*errand

	group    Group // as this deliverer has last read or written it
	claim    Claim
	items    []Item        // of the batch that is next
	at       []int         // which of them its destination's filter and transform have left; nil: all
	lost     []undelivered // what those failed on, an item each
	rows     []Item        // of a claim that leaves in rows: those not yet settled
	deadline Millis        // since when it could have been sent
	taken    Millis        // when its claim was recovered; 0: it is new
	was      Millis        // CheckAt before this deliverer took or renewed its claim
	again    bool          // the rows that are left must be read again
	full     bool          // the claim left items behind that were there
	left     *leave        // of the last send, if that was of held events
	result   step
}

// step is what came of one claim.
type step struct {
	more      bool    // there is more to be sent at once, by the conditions
	rows      int     // handed to the destination
	delivered int     // taken by it
	failure   error   // of the first send that failed
	outcome   Outcome // of the last send
	waits     bool    // nothing was sent: the destination takes nothing yet
	silent    bool    // there was no answer to it
	cut       bool    // the time was over before the claim was through
	left      bool    // the claim, or a part of it, waits to be sent again
	settling  error   // why the claim could not be settled; Conflict: its lease had passed on
}

// Deliver sends the group's next batch, if one is due, and reports whether
// there is more to be sent at once, for which it is to be called again. Ending
// ctx cuts a send off; its batch is sent again later.
func (d *Deliverer) Deliver(ctx context.Context, del Delivery) (more bool, err error) {
	sub := d.catalog.Buffer(del.Ref.Buffer)
	if sub == nil || ctx.Err() != nil {
		return false, nil //nolint:nilerr // its items wait until the buffer is configured, or the process runs, again
	}
	s, err := d.ship(ctx, &errand{sub: sub, ref: del.Ref, policy: sub.policy(del.Ref), seen: del.Seen, may: ctx})
	if s == nil {
		return false, err
	}
	return s.result.more, err
}

// ship takes what is next, sends and settles it. nil: nothing was to be sent.
func (d *Deliverer) ship(ctx context.Context, e *errand) (*shipment, error) {
	store := context.WithoutCancel(ctx) // only a send is cut off, not the steps around it
	if e.sub.Buffer.Shadow && d.ports.Copies != nil {
		var done context.CancelFunc
		if ctx, done = d.ports.Copies(ctx); ctx.Err() != nil {
			done()
			return nil, nil // copies wait until the process runs again
		}
		defer done()
	}
	defer func() {
		e.vacate()
		d.unused(store, e)
	}()
	s, err := d.take(store, e)
	if err != nil || s == nil {
		return nil, err
	}
	for first := true; ; first = false {
		s.at, s.lost = nil, nil
		if wait, token := d.ready(store, s, first); wait > 0 {
			return s, d.postpone(store, s, wait, token)
		}
		r, outcome := d.send(ctx, s)
		goOn, err := d.conclude(store, s, &r, outcome)
		if !goOn {
			return s, err
		}
		e.keepTurn(store)
		if s.again || !d.timely(ctx, e, s.hop().Timeout) {
			err := d.postpone(store, s, 0, false)
			s.result.more, s.result.cut = true, !s.again
			return s, err
		}
	}
}

// ready does what comes before a send: the lease runs meanwhile.
func (d *Deliverer) ready(ctx context.Context, s *shipment, first bool) (wait time.Duration, token bool) {
	ctx, cancel := context.WithTimeout(ctx, restTime)
	defer cancel()
	if first {
		d.rest(ctx, s)
	}
	return d.held(ctx, s, first)
}

// held says how long the next send has to wait for a slot of its destination, for its
// breaker, or for a token of its rate limit, which is then its own. Before the first those
// were asked already, but for the limit, unless the claim has moved on meanwhile.
func (d *Deliverer) held(ctx context.Context, s *shipment, first bool) (wait time.Duration, token bool) {
	if !first {
		d.unused(ctx, s.errand) // nothing was left to send, and a probe's lease is for one send
	}
	if until := d.barred(ctx, s.errand, &s.claim); until != 0 {
		wait = max(1, until.Sub(d.ports.Clock.Now()))
	} else if !(first && s.reserved()) {
		if wait, token = (gate{&d.ports}).token(ctx, s.hop().Destination, s.policy.MaxHold); wait > 0 {
			s.vacate()
		}
	}
	s.result.waits = wait > 0
	return wait, token
}

// reserved reports whether the claim has a token of its destination's rate
// limit: one that came long ago would let too many through now.
func (s *shipment) reserved() bool {
	limit := s.hop().RateLimit
	return s.claim.Token && limit != nil && s.taken.Sub(s.deadline) < limit.Per
}

// timely reports whether there is time for one more send, of so long at most,
// and its settling.
func (d *Deliverer) timely(ctx context.Context, e *errand, timeout time.Duration) bool {
	return d.ports.timely(ctx, timeout) && d.ports.timely(e.may, timeout)
}

// take makes this deliverer the holder of the group's next batch: one whose
// retry is due or whose deliverer died before any new one. nil: nothing is due.
func (d *Deliverer) take(ctx context.Context, e *errand) (*shipment, error) {
	seen := e.seen
	for range races {
		g, err := d.look(ctx, e, seen)
		if err != nil {
			return nil, err
		}
		seen = nil
		s, err := d.next(ctx, e, &g)
		switch {
		case err == nil:
			return s, nil
		case CodeOf(err) != Conflict:
			d.later(ctx, e, &g)
			return nil, err
		}
		// another was faster: look again
	}
	if e.pull != nil {
		return nil, Errorf(Unavailable, "others were faster at %s, again and again; flush again", e.ref)
	}
	d.ports.hand(ctx, e.sub.delivery(e.ref, nil)) // later, when the others are through
	return nil, nil
}

// later has a group looked at again after a failure, as the hint that led here
// is used up. However many deliverers fail at it, one hint comes of it: only
// who moves an overdue check arms it.
func (d *Deliverer) later(ctx context.Context, e *errand, was *Group) {
	g, err := d.ports.Store.Update(ctx, e.ref, was, func(g *Group) error {
		now := d.ports.Clock.Now()
		if g.Life != was.Life || g.Rev != was.Rev || g.CheckAt > now {
			return errUnchanged
		}
		g.Nudge(now.Add(unreadable))
		return nil
	})
	if err == nil {
		d.ports.armCheck(ctx, e.policy, e.ref, &g)
	}
}

// look reads the group, unless what the sender of the delivery has seen will
// do: if it has changed since, no claim on it succeeds.
func (d *Deliverer) look(ctx context.Context, e *errand, seen *Group) (Group, error) {
	if seen != nil && seen.Life != "" && seen.Wanted(e.policy, d.ports.Clock.Now()) {
		return seen.Clone(), nil
	}
	return d.ports.Store.Group(ctx, e.ref)
}

func (d *Deliverer) next(ctx context.Context, e *errand, g *Group) (*shipment, error) {
	p, now := e.policy, d.ports.Clock.Now()
	e.recovering, e.busy, e.waits, e.token = false, false, 0, 0
	if c := e.expired(g, now); c != nil {
		e.recovering = true
		if until := d.barred(ctx, e, c); until != 0 {
			if e.waits == 0 { // for a slot
				e.token, e.waitsFor = until, e.sub.hopOf(c).Name
			}
			return nil, d.deferred(ctx, e, g, c, until)
		}
		return d.recover(ctx, e, g, c)
	}
	if !g.Blocked(p, now) && e.evaluate(g, now).Due {
		if until := d.breaker(ctx, e, e.sub.hops[0]); until != 0 {
			e.waits, e.waitsFor = max(1, until.Sub(now)), e.sub.Destination.Name
			return nil, d.parked(ctx, e, g, until)
		}
		return d.begin(ctx, e, g)
	}
	if e.pull != nil {
		e.nothing(g, now)
		return nil, nil
	}
	if g.CheckAt != 0 && g.CheckAt <= now {
		// it was due when it was handed over, and that used its hint up
		return nil, d.ports.rearm(ctx, e.sub, e.ref, g)
	}
	if was := e.seen; was != nil && was.Life == g.Life && was.Rev == g.Rev {
		// by the sender's clock it was due, and nothing has changed since: ours is behind
		if at := earliest(g.CheckAt, g.ClaimDue()); at > now {
			d.ports.arm(ctx, Hint{Ref: e.ref, Life: g.Life, At: at})
		}
	}
	return nil, nil
}

// recover takes an expired claim as it is.
func (d *Deliverer) recover(ctx context.Context, e *errand, was *Group, c *Claim) (*shipment, error) {
	s := &shipment{errand: e, deadline: c.Due}
	if c.Due == abandoned {
		s.deadline = d.ports.Clock.Now() // when its deliverer died, nobody knows
	}
	var err error
	s.group, err = d.ports.Store.Update(ctx, e.ref, was, func(g *Group) (err error) {
		now := d.ports.Clock.Now()
		s.was, s.taken = g.CheckAt, now
		if e.pull != nil && e.pull.early {
			g.Hasten(c.ID, now)
		}
		s.claim, err = g.Recover(c.ID, e.policy, now)
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := d.members(ctx, s); err != nil {
		d.rest(ctx, s)
		return nil, errors.Join(err, d.postpone(ctx, s, unreadable, false))
	}
	return s, nil
}

// members reads what a shipment's claim has still to send.
func (d *Deliverer) members(ctx context.Context, s *shipment) error {
	if s.claim.Fold != "" {
		return d.unfold(ctx, s)
	}
	return d.read(ctx, s, Span{From: s.claim.From, To: s.claim.To}, func(it *Item) error {
		s.items = append(s.items, *it)
		return nil
	})
}

// read goes through a span of a claim, and shows its unsettled items to fn,
// until that fails.
func (d *Deliverer) read(ctx context.Context, s *shipment, span Span, fn func(*Item) error) error {
	for to := span.To; span.From <= to; {
		page, err := d.ports.Store.Items(ctx, s.ref, &s.group, span)
		if err != nil {
			return err
		}
		for i := range page.Items {
			if !s.claim.Has(page.Items[i].Seq) {
				continue
			}
			if err := fn(&page.Items[i]); err != nil {
				return err
			}
		}
		if page.End < span.From {
			return Errorf(Unavailable, "the items of %s from %d on can't be read yet", s.ref, span.From)
		}
		span.after(&page)
	}
	return nil
}

// rest sees to what a claim that this deliverer goes on to hold leaves behind:
// another takes what is due if it may; anything else is checked at CheckAt,
// which the update may have moved.
func (d *Deliverer) rest(ctx context.Context, s *shipment) {
	ctx, cancel := context.WithTimeout(ctx, restTime)
	defer cancel()
	p, now, g := s.policy, d.ports.Clock.Now(), &s.group
	switch {
	case g.Wanted(p, now):
		if s.pull == nil { // else the flush goes on with it
			d.ports.hand(ctx, s.sub.delivery(s.ref, g))
		}
	case g.CheckAt != s.was:
		d.ports.armCheck(ctx, p, s.ref, g)
	}
}

// sent notes what came of a send of n rows, of which some were lost before it.
func (r *step) sent(resp *Response, o Outcome, n int, lost []undelivered) {
	r.rows += n
	r.outcome, r.silent = o, resp.Status == 0
	if o == Delivered || o == Partial {
		r.delivered += n - resp.Failed.Len() - len(lost)
	}
	switch {
	case r.failure != nil:
	case o != Delivered:
		r.failure = errors.New(cause(resp))
	case len(lost) > 0:
		r.failure = errors.New(cause(&Response{Err: lost[0].err}))
	}
}
