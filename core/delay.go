package core

import (
	"context"
	"math"
	"strings"
	"time"

	"sluice/core/render"
)

// An event that is to be delivered later is held in a buffer beside its own,
// whose groups are short windows of the times at which events are due. Such a
// group ships when it is over, like any window, to where its events would have
// gone at once:
//
//	event due at 09:00:00.300 ─▶ orders~held, group 09:00:00.000/09:00:00.500
//	                              │ at 09:00:00.500
//	                              ▼
//	                             orders, its group, batch and retries
//
// So holding needs a deadline for each half second in which something is due,
// and nothing of its own to survive a crash. A buffer that is ordered holds its
// events in their groups, where each holds those behind it.

const (
	heldSuffix = "~held" // no name of a buffer has it
	heldEvery  = 500 * time.Millisecond
	heldItems  = 1000
	heldBytes  = 4 * MiB

	heldUnit = "|" // in the key of a group of events, before what their source keeps in order

	// latest is the last time that a window of such events may end at: RFC 3339
	// has no later year.
	latest = Millis(253_402_300_799_000)
)

// delay is until when a buffer's events are held.
type delay struct {
	after time.Duration
	at    *render.Template
	held  *Subscription // where; nil: in their own groups, as they are ordered
}

// delays gives a subscription the delay that its buffer asks for. What was held
// before its settings changed leaves, too, so there is always a way for it.
func (k *Catalog) delays(s *Subscription) error {
	b, held := s.Buffer, holding(s.Buffer)
	k.buffers[held.Buffer.Name] = held
	if b.DeliverAfter == 0 && b.DeliverAt == "" {
		return nil
	}
	at, err := render.Compile(b.DeliverAt)
	if err != nil {
		return Wrap(Invalid, err, "buffers.%s.deliverAt", b.Name)
	}
	s.delay = &delay{after: b.DeliverAfter, at: at}
	if !b.Ordered {
		s.delay.held = held
	}
	return nil
}

// holding is where a buffer's events are held.
func holding(b *Buffer) *Subscription {
	held := NewBuffer(b.Name + heldSuffix)
	held.To, held.Shards = held.Name, b.Shards
	d := NewDestination(held.Name)
	d.Retry = RetryPolicy{MaxAttempts: math.MaxInt, Initial: time.Second, Max: 30 * time.Second}
	key, _ := render.Compile("")
	return &Subscription{
		Buffer: &held, Destination: &d, key: key, hops: []*hop{{Destination: &d}},
		windows: &windows{every: heldEvery, open: true},
		Policy: Policy{MaxItems: heldItems, CapBytes: max(heldBytes, b.Overflow.MaxBytes), MaxBytes: heldBytes,
			Lease: d.Timeout + leaseMargin, MaxHold: d.Retry.Max},
	}
}

// Due is until when the buffer holds an event, as it is after the transform; 0: not
// at all. Invalid: its time is none.
func (s *Subscription) Due(e *Event) (Millis, error) {
	if s.delay == nil {
		return 0, nil
	}
	text, err := s.delay.at.Execute(view{e})
	if err != nil {
		return 0, Errorf(Invalid, "the time %s fails on this event: %v", s.delay.at, err)
	}
	if text = strings.TrimSpace(text); text == "" {
		return e.ReceivedAt.Add(s.delay.after), nil
	}
	at, ok := parseRFC3339(text)
	if !ok {
		return 0, Errorf(Invalid, "the time %s is %q; it must be RFC 3339, such as 2026-12-24T09:00:00Z", s.delay.at, Cut(text, 64))
	}
	return at, nil
}

// holds reports whether an event that is due at a time is held beside its buffer.
func (s *Subscription) holds(due, now Millis) bool {
	return due > now && s.delay.held != nil
}

// hold is the group in which an event waits until at: the window that ends then,
// or around it. Its unit, which no store keeps, is in the group's key.
func (s *Subscription) hold(e *Event, at Millis) Ref {
	w := s.delay.held.windows.at(min(at, latest) - 1)
	ref := Ref{Buffer: s.delay.held.Buffer.Name, Key: windowKey(w), Shard: s.delay.held.shard(e.ID)}
	if s.Buffer.GroupBy == "" && e.Unit != "" {
		ref.Key += heldUnit + e.Unit
	}
	return ref
}

// mover is the [Sender] to which a held group ships: it stores the events where
// they would have gone at once.
type mover struct {
	in  *Ingester
	sub *Subscription // whose events they are
}

// leave is the end of a claim on held events, for the store to make in the step
// in which they go on: a crash in between would have them go on twice.
type leave struct {
	part  Part
	group Group  // afterwards, when it is made
	was   Millis // its CheckAt before
	made  bool
}

// leaves makes a batch of held events leave its group.
func (s *shipment) leaves(b *Batch, clock Clock) {
	if _, held := Held(b.Buffer); !held {
		return
	}
	l := &leave{}
	l.part = Part{Ref: s.ref, Change: func(g *Group) error {
		l.was = g.CheckAt
		err := s.ack(g, clock.Now())
		l.group = g.Clone()
		return err
	}}
	b.leave = l
}

// Send implements [Sender].
func (m *mover) Send(ctx context.Context, b *Batch) Response {
	now := m.in.ports.Clock.Now()
	p, r := &parts{}, Response{Status: 200}
	at := make(map[Ref]int)
	_, unit, _ := strings.Cut(b.Group, heldUnit)
	for i := range b.Items {
		b.Items[i].Unit = unit
		ref, late, err := m.sub.Place(&b.Items[i].Event, now)
		if err != nil { // its settings have changed: it waits until they fit again
			m.in.ports.Observer.failed("move an event that was held", err)
			r.Failed = r.Failed.With(i)
			continue
		}
		k, ok := at[ref]
		if !ok {
			k = p.add(owner{Subscription: m.sub}, Part{Ref: ref, Policy: m.sub.policy(ref)})
			at[ref] = k
		}
		p.list[k].Events = append(p.list[k].Events, b.Items[i].Event)
		p.of[k].index = append(p.of[k].index, i)
		if late {
			p.of[k].late++
		}
	}
	if r.Failed == nil {
		p.add(owner{Subscription: m.sub}, b.leave.part)
	}
	err := m.store(ctx, now, p)
	b.leave.made = p.changed
	if CodeOf(err) == Full {
		m.fill(ctx, now, p, &r)
		return r
	}
	if err != nil {
		return Response{Err: Wrap(Unavailable, err, "held events of buffer %s can't go on", m.sub.Buffer.Name)}
	}
	return r
}

func (m *mover) store(ctx context.Context, now Millis, p *parts) error {
	if len(p.list) == 0 {
		return nil
	}
	return m.in.append(ctx, now, p)
}

// fill stores of each part what its group has room for now; the rest waits. How
// much that is, it finds out: as many as may fit, or half of that, and so on.
func (m *mover) fill(ctx context.Context, now Millis, p *parts, r *Response) {
	for k := range p.list {
		part, of := p.list[k], p.of[k] // that it leaves has no events
		n := len(part.Events)
		if limit := m.sub.Policy.CapItems; limit > 0 {
			n = min(n, limit)
		}
		for n > 0 {
			some, late := part, min(of.late, n)
			some.Events = part.Events[:n]
			err := m.store(ctx, now, &parts{list: []Part{some}, of: []owner{{Subscription: of.Subscription, late: late}}})
			switch {
			case err == nil:
				part.Events, of.index, of.late = part.Events[n:], of.index[n:], of.late-late
				n = min(n, len(part.Events))
			case CodeOf(err) == Full:
				n /= 2
			default:
				n = 0
			}
		}
		for _, i := range of.index {
			r.Failed = r.Failed.With(i)
		}
	}
}

// Held reports whether a buffer is the one in which another's events are held,
// and whose.
func Held(buffer string) (of string, ok bool) { return strings.CutSuffix(buffer, heldSuffix) }

// Owner is the buffer whose events another holds, or the buffer itself: what it
// may hold at most counts both.
func Owner(buffer string) string {
	of, _ := Held(buffer)
	return of
}

// Holder is the buffer in which a buffer's events are held.
func Holder(of string) string { return of + heldSuffix }

// sender is the sender of a destination, held events included.
func (p *Ports) sender(c *Catalog, name string) Sender {
	of, ok := Held(name)
	if !ok {
		return p.Sender(name)
	}
	sub := c.Buffer(of)
	if sub == nil {
		return nil
	}
	return &mover{in: NewIngester(c, *p), sub: sub}
}
