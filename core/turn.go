package core

import (
	"context"
	"sync"
	"time"
)

// floor is the least time between two shipments of a buffer: what `flush.every`
// says, with 10 % slack for callers whose own clock is not exact. Zero: none.
func (s *Subscription) floor() time.Duration {
	return s.Buffer.FlushEvery - s.Buffer.FlushEvery/10
}

// until is how long after now a shipment at last keeps others waiting; one that
// lies ahead, as the clock was set back, keeps nobody.
func until(last Millis, floor time.Duration, now Millis) time.Duration {
	if last == 0 || last > now {
		return 0
	}
	return max(0, last.Add(floor).Sub(now))
}

// whileRunning is the least that a flush waits for another that is under way.
const whileRunning = time.Second

// Cadence is when each buffer was last shipped by this process. It is safe for
// concurrent use; its zero value has shipped nothing.
type Cadence struct {
	mu      sync.Mutex
	buffers map[string]*pace
}

type pace struct {
	last    Millis   // begin of the latest flush that shipped
	running []Millis // begins of those under way
}

// begin notes that a flush begins, unless it is too early: then it says by how
// much. A flush under way counts as the latest shipment.
func (c *Cadence) begin(buffer string, floor time.Duration, anyway bool, now Millis) (wait time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.buffers == nil {
		c.buffers = make(map[string]*pace)
	}
	p := c.buffers[buffer]
	if p == nil {
		p = &pace{}
		c.buffers[buffer] = p
	}
	if !anyway && floor > 0 {
		wait = until(p.last, floor, now)
		for _, begin := range p.running {
			wait = max(wait, until(begin, floor, now), whileRunning)
		}
	}
	if wait == 0 {
		p.running = append(p.running, now)
	}
	return wait
}

// end notes that a flush that began at a time has ended.
func (c *Cadence) end(buffer string, begin Millis, shipped bool, now Millis) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.buffers[buffer]
	for i, at := range p.running {
		if at == begin {
			p.running = append(p.running[:i], p.running[i+1:]...)
			break
		}
	}
	if shipped && (begin > p.last || p.last > now) {
		p.last = begin
	}
}

// Turn is what processes on one store share about a buffer's flushes.
type Turn struct {
	Last   Millis `json:"last,omitempty"`   // begin of the latest flush that shipped
	Holder string `json:"holder,omitempty"` // token of the one under way
	Begin  Millis `json:"begin,omitempty"`  // of the one under way
	Until  Millis `json:"until,omitempty"`  // when its hold ends, unless it renews it
}

// apart is how far the clocks of two processes may differ: what another's has
// written that lies further ahead is from before a clock was set back.
const apart = 5 * time.Second

// Take makes the turn the holder's, unless another has it or had it too
// recently: then it says how long to wait.
func (t *Turn) Take(holder string, floor, lease time.Duration, now Millis) (wait time.Duration) {
	if t.Holder != "" && t.Until > now && t.Until <= now.Add(lease+apart) {
		return max(until(min(t.Begin, now), floor, now), whileRunning)
	}
	if t.Last <= now.Add(apart) {
		wait = until(min(t.Last, now), floor, now)
	}
	if wait == 0 {
		t.Holder, t.Begin, t.Until = holder, now, now.Add(lease)
	}
	return wait
}

// Renew prolongs the hold. It reports whether the holder still has the turn.
func (t *Turn) Renew(holder string, lease time.Duration, now Millis) bool {
	if t.Holder != holder {
		return false
	}
	t.Until = now.Add(lease)
	return true
}

// End gives the turn back; a flush that shipped is recorded by its begin, whether
// it holds the turn or not.
func (t *Turn) End(holder string, begin Millis, shipped bool, now Millis) {
	if shipped && (begin > t.Last || t.Last > now.Add(apart)) {
		t.Last = begin
	}
	if t.Holder == holder {
		t.Holder, t.Begin, t.Until = "", 0, 0
	}
}

// turn is one flush's hold on its buffer's turn. nil: it needs none.
type turn struct {
	ports  *Ports
	buffer string
	holder string
	begin  Millis
	lease  time.Duration

	forced bool // it goes without the turn, and is only recorded

	mu      sync.Mutex
	renewed Millis
	lost    bool // another has it
}

// take takes a buffer's turn. A flush that is forced goes without, but is
// recorded. On a store that no other process has there are no turns.
func (f *Flusher) take(ctx context.Context, sub *Subscription, o *FlushOptions, now Millis) (*turn, time.Duration, error) {
	if !f.ports.Shared || sub.floor() == 0 {
		return nil, 0, nil
	}
	t := &turn{ports: &f.ports, buffer: sub.Buffer.Name, holder: f.ports.IDs.New(), begin: now,
		lease: 2 * (sub.Longest() + leaseMargin), renewed: now}
	if t.forced = o.Force; t.forced {
		return t, 0, nil
	}
	var wait time.Duration
	err := t.change(ctx, func(r *Turn) bool {
		wait = r.Take(t.holder, sub.floor(), t.lease, now)
		return wait == 0
	})
	if err != nil {
		t.end(ctx, false) // it may have been taken all the same
		return nil, 0, Wrap(CodeOf(err), err, "cannot take the turn of buffer %s", t.buffer)
	}
	return t, wait, nil
}

// renew keeps the turn for one more send. It reports whether no other has it.
func (t *turn) renew(ctx context.Context) bool {
	if t == nil || t.forced {
		return true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.ports.Clock.Now()
	if t.lost || now.Sub(t.renewed) <= t.lease/4 {
		return !t.lost
	}
	t.renewed = now
	err := t.change(ctx, func(r *Turn) bool {
		t.lost = !r.Renew(t.holder, t.lease, now)
		return !t.lost
	})
	t.ports.Observer.failed("renew the turn", err) // claims still keep others off
	return !t.lost
}

// end gives the turn back, and records it if the flush shipped. When that fails
// it ends with its lease, and the next flush may be too early by an interval.
func (t *turn) end(ctx context.Context, shipped bool) {
	if t == nil {
		return
	}
	err := t.change(context.WithoutCancel(ctx), func(r *Turn) bool {
		was := *r
		r.End(t.holder, t.begin, shipped, t.ports.Clock.Now())
		return *r != was
	})
	t.ports.Observer.failed("end the turn", err)
}

// change changes the shared record if fn says so.
func (t *turn) change(ctx context.Context, fn func(*Turn) bool) error {
	return changeRecord(ctx, t.ports.Coordinator, "turn/"+t.buffer, fn)
}
