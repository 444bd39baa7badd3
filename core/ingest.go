package core

import (
	"context"
	"fmt"
)

// Ingester takes events from sources into groups.
type Ingester struct {
	catalog *Catalog
	ports   Ports
}

// NewIngester makes an ingester.
func NewIngester(c *Catalog, p Ports) *Ingester { return &Ingester{catalog: c, ports: p} }

// Receipt is what became of one request's events.
type Receipt struct {
	Accepted int      // durable in every buffer that wants them
	IDs      []string // of all events, in order
	Unrouted int      // wanted by no buffer
}

// EventError says which event of a request was refused.
type EventError struct {
	Index int // from 0
	Err   error
}

// Error names the event by its position.
func (e *EventError) Error() string { return fmt.Sprintf("event %d: %v", e.Index+1, e.Err) }

// Unwrap is why.
func (e *EventError) Unwrap() error { return e.Err }

// Ingest stores one request's events: all of them, or none if it returns an
// error, in which case the request may be sent again. It fills in their
// source, the time, and an id where there is none. NotFound: no such source;
// Invalid and TooLarge: an event is refused, as an [EventError]; Full and
// Unavailable: try later.
func (in *Ingester) Ingest(ctx context.Context, source string, events []Event) (Receipt, error) {
	route := in.catalog.Route(source)
	if route == nil {
		return Receipt{}, Errorf(NotFound, "there is no source %q", source)
	}
	r, err := in.ingest(ctx, route, events)
	if err != nil {
		in.ports.Observer.events(source, EventsRefused, len(events))
		return Receipt{}, err
	}
	in.ports.Observer.events(source, EventsAccepted, r.Accepted)
	in.ports.Observer.events(source, EventsUnrouted, r.Unrouted)
	return r, nil
}

func (in *Ingester) ingest(ctx context.Context, route *Route, events []Event) (Receipt, error) {
	now := in.ports.Clock.Now()
	ids := make([]string, len(events))
	for i := range events {
		if err := in.admit(&events[i], route.Source, now); err != nil {
			return Receipt{}, &EventError{Index: i, Err: err}
		}
		ids[i] = events[i].ID
	}
	if len(route.Subscriptions) == 0 {
		return Receipt{IDs: ids, Unrouted: len(events)}, nil
	}
	parts, err := in.parts(route, events, now)
	if err != nil {
		return Receipt{}, err
	}
	if err := in.append(ctx, now, parts); err != nil {
		return Receipt{}, err
	}
	return Receipt{Accepted: len(events), IDs: ids}, nil
}

// admit completes an event, or refuses it.
func (in *Ingester) admit(e *Event, s *Source, now Millis) error {
	if e.Size() > s.MaxEventBytes {
		return Errorf(TooLarge, "the event has %d bytes; source %s takes at most %d (maxEventBytes)", e.Size(), s.Name, s.MaxEventBytes)
	}
	if e.ID == "" {
		e.ID = in.ports.IDs.New()
	}
	e.Source, e.ReceivedAt = s.Name, now
	return nil
}

// parts is what a request appends, and whose each part is.
type parts struct {
	list []Part
	of   []owner
}

// owner is whose a part is.
type owner struct {
	*Subscription

	late int // of its events so many have missed their time window
}

// parts sorts events into groups, in the order in which they first occur.
func (in *Ingester) parts(route *Route, events []Event, now Millis) (*parts, error) {
	n := len(route.Subscriptions)
	p := &parts{list: make([]Part, 0, n), of: make([]owner, 0, n)}
	var at map[Ref]int
	if len(events) > 1 {
		at = make(map[Ref]int)
	}
	for i := range events {
		for _, s := range route.Subscriptions {
			ref, late, err := s.Place(&events[i], now)
			if err != nil {
				return nil, &EventError{Index: i, Err: err}
			}
			k, ok := at[ref]
			if !ok {
				k = p.add(owner{Subscription: s}, Part{Ref: ref, Policy: s.policy(ref), Size: s.Buffer.Size})
				if at != nil {
					at[ref] = k
				}
			}
			p.list[k].Events = append(p.list[k].Events, events[i])
			if late {
				p.of[k].late++
			}
		}
	}
	return p, nil
}

func (p *parts) add(o owner, part Part) int {
	p.list, p.of = append(p.list, part), append(p.of, o)
	return len(p.list) - 1
}

// maxMoves bounds how often the events of one request are moved on. Windows
// that have shipped though the clock has not reached them are few.
const maxMoves = 1000

// append makes the parts durable, then sends the hints that they ask for. What
// meets a window that has shipped is moved on into a later one.
func (in *Ingester) append(ctx context.Context, now Millis, p *parts) error {
	if err := fit(p.list); err != nil {
		return err
	}
	for range maxMoves {
		for i := range p.list {
			p.list[i].Life = in.ports.IDs.New()
		}
		done, err := in.ports.Store.Append(ctx, now, p.list)
		in.hint(context.WithoutCancel(ctx), p, done) // what is in the store does not go with its sender
		if err != nil {
			return err
		}
		if p = in.left(p, done, now); p == nil {
			return nil
		}
	}
	return Errorf(Unavailable, "the time window closes again and again; try again")
}

// hint sends the hints that stored parts ask for: most ask for none; with an
// error, too, some may.
func (in *Ingester) hint(ctx context.Context, p *parts, done []Appended) {
	var hinted []int
	for i := range done {
		if done[i].Armed || done[i].Reached {
			hinted = append(hinted, i)
		}
	}
	sideBySide(len(hinted), func(n int) {
		i := hinted[n]
		part, a := &p.list[i], &done[i]
		if a.Armed {
			in.ports.armCheck(ctx, part.Policy, part.Ref, &Group{Life: a.Life, Rev: a.Rev, CheckAt: a.CheckAt})
		}
		if a.Reached {
			in.ports.hand(ctx, p.of[i].delivery(part.Ref, nil))
		}
	})
}

// left is what is still to be stored because a group was closed: its own parts,
// moved on to the next window, and those that the store has left out with them.
// nil: everything is stored.
func (in *Ingester) left(p *parts, done []Appended, now Millis) *parts {
	var left *parts
	for i := range done {
		part, o := p.list[i], p.of[i]
		if done[i].First != 0 {
			in.ports.Observer.late(part.Ref.Buffer, o.late)
			continue
		}
		if w, ok := o.Window(part.Ref); ok && done[i].Closed {
			part.Ref.Key = windowKey(o.windows.next(w, now))
			part.Policy = o.policy(part.Ref)
			part.Events = part.Events[done[i].Stored:]
			o.late = len(part.Events)
		}
		if left == nil {
			left = new(parts)
		}
		left.add(o, part)
	}
	return left
}

// fit refuses a request that could never be stored, however long its sender
// tries: more for a buffer or a group than it may hold.
func fit(parts []Part) error {
	var sizes map[string]int64
	for i := range parts {
		p := &parts[i]
		if limit := p.Policy.CapItems; limit > 0 && len(p.Events) > limit {
			return Errorf(TooLarge, "%d events for one group, which holds at most %d (overflow.maxItems); send fewer at a time", len(p.Events), limit)
		}
		if p.Size == 0 {
			continue
		}
		if sizes == nil {
			sizes = make(map[string]int64)
		}
		sizes[p.Ref.Buffer] += int64(len(p.Events))
		if n := sizes[p.Ref.Buffer]; n > p.Size {
			return Errorf(TooLarge, "more events for buffer %s than the %d that it holds at most (size); send fewer at a time", p.Ref.Buffer, p.Size)
		}
	}
	return nil
}
