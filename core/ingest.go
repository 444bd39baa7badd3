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
	parts, subs, err := in.parts(route, events)
	if err != nil {
		return Receipt{}, err
	}
	if err := in.append(ctx, now, parts, subs); err != nil {
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

// parts sorts events into groups, in the order in which they first occur.
func (in *Ingester) parts(route *Route, events []Event) ([]Part, []*Subscription, error) {
	parts := make([]Part, 0, len(route.Subscriptions))
	subs := make([]*Subscription, 0, len(route.Subscriptions))
	var at map[Ref]int
	if len(events) > 1 {
		at = make(map[Ref]int)
	}
	for i := range events {
		for _, s := range route.Subscriptions {
			ref, err := s.ref(&events[i])
			if err != nil {
				return nil, nil, &EventError{Index: i, Err: err}
			}
			k, ok := at[ref]
			if !ok {
				k = len(parts)
				parts = append(parts, Part{Ref: ref, Policy: &s.Policy, Size: s.Buffer.Size})
				subs = append(subs, s)
				if at != nil {
					at[ref] = k
				}
			}
			parts[k].Events = append(parts[k].Events, events[i])
		}
	}
	return parts, subs, nil
}

// append makes the parts durable, then sends the hints that they ask for.
func (in *Ingester) append(ctx context.Context, now Millis, parts []Part, subs []*Subscription) error {
	if err := fit(parts); err != nil {
		return err
	}
	for i := range parts {
		parts[i].Life = in.ports.IDs.New()
	}
	done, err := in.ports.Store.Append(ctx, now, parts)
	ctx = context.WithoutCancel(ctx) // what is in the store does not go with its sender
	var hinted []int                 // most parts ask for none; with an error, too, some may
	for i := range done {
		if done[i].Armed || done[i].Reached {
			hinted = append(hinted, i)
		}
	}
	sideBySide(len(hinted), func(n int) {
		i := hinted[n]
		ref, a := parts[i].Ref, &done[i]
		if a.Armed {
			in.ports.armCheck(ctx, ref, &Group{Life: a.Life, Rev: a.Rev, CheckAt: a.CheckAt})
		}
		if a.Reached {
			in.ports.hand(ctx, subs[i].delivery(ref, nil))
		}
	})
	return err
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
