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
	Accepted   int      // durable in every buffer that wants them
	IDs        []string // of all events, in order
	Unrouted   int      // wanted by no buffer
	Filtered   int      // dropped by the filters of all buffers
	Duplicates int      // seen before by all buffers that want them
	Status     Status   // of a source that waits for the outcome; else ""
}

// Status is what is known of the delivery of a request's events.
type Status string

// What a source that waits for the outcome answers.
const (
	StatusDelivered    Status = "delivered"     // all of them
	StatusDeadLettered Status = "dead-lettered" // one of them at least
	StatusPending      Status = "pending"       // not yet known
)

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
// error, or some if that is Unavailable; the request may then be sent again. It
// fills in their source, the time, and an id where there is none. NotFound: no
// such source; Invalid and TooLarge: an event is refused, as an [EventError];
// Full and Unavailable: try later.
//
// A source that waits for the outcome asks each of mayWait first, when the events
// are durable, and holds none of them any more; false: it does not wait.
func (in *Ingester) Ingest(ctx context.Context, source string, events []Event, mayWait ...func() bool) (Receipt, error) {
	route := in.catalog.Route(source)
	if route == nil {
		return Receipt{}, noSource(source)
	}
	r, err := in.ingest(ctx, route, events, mayWait...)
	if err != nil {
		in.count(source, &r, len(events))
		if CodeOf(err) == Conflict { // of events that another request has in hand
			err = &Error{Code: Unavailable, Detail: DetailOf(err), RetryAfter: RetryAfterOf(err)}
		}
		return Receipt{}, err
	}
	in.count(source, &r, 0)
	return r, nil
}

func noSource(name string) error { return Errorf(NotFound, "there is no source %q", name) }

// count tells what became of a source's events.
func (in *Ingester) count(source string, r *Receipt, refused int) {
	o := in.ports.Observer
	o.events(source, EventsAccepted, r.Accepted)
	o.events(source, EventsUnrouted, r.Unrouted)
	o.events(source, EventsFiltered, r.Filtered)
	o.events(source, EventsDoubled, r.Duplicates)
	o.events(source, EventsRefused, refused)
}

func (in *Ingester) ingest(ctx context.Context, route *Route, events []Event, mayWait ...func() bool) (Receipt, error) {
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
	p, err := in.parts(ctx, route, events, now)
	if err != nil {
		return Receipt{}, err
	}
	if p.waits {
		return in.storeAndWait(ctx, route.Source, p, ids, now, mayWait)
	}
	if err := in.store(ctx, now, p); err != nil {
		return Receipt{}, err
	}
	return p.receipt(ids), nil
}

// admit completes an event, or refuses it.
func (in *Ingester) admit(e *Event, s *Source, now Millis) error {
	if e.Size() > s.MaxEventBytes {
		return Errorf(TooLarge, "the event has %d bytes; source %s takes at most %d (maxEventBytes)", e.Size(), s.Name, s.MaxEventBytes)
	}
	if HeaderBytes(e.Headers) > MaxHeaderBytes {
		return Errorf(TooLarge, "the headers to be kept with the event have more than %s; send fewer or shorter ones", formatBytes(MaxHeaderBytes))
	}
	if e.ID == "" {
		e.ID = in.ports.IDs.New()
	}
	e.Source, e.ReceivedAt = s.Name, now
	return nil
}

// fit refuses a request that could never be stored, however long its sender
// tries: more for a buffer or a group than it may hold.
func fit(parts []Part) error {
	var sizes map[string]int64
	for i := range parts {
		p := &parts[i]
		if p.Shed {
			continue // it is left out instead
		}
		if limit := p.Policy.CapItems; limit > 0 && len(p.Events) > limit {
			return Errorf(TooLarge, "%d events for group %q of buffer %s, which holds at most %d (overflow.maxItems); send fewer at a time", len(p.Events), Cut(p.Ref.Key, 64), p.Ref.Buffer, limit)
		}
		if p.Size == 0 {
			continue
		}
		if sizes == nil {
			sizes = make(map[string]int64)
		}
		buffer := Owner(p.Ref.Buffer) // what it holds for later counts, too
		sizes[buffer] += int64(len(p.Events))
		if sizes[buffer] > p.Size {
			return Errorf(TooLarge, "more events for buffer %s than the %d that it holds at most (size); send fewer at a time", buffer, p.Size)
		}
	}
	return nil
}
