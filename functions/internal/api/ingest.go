package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"sluice/core"
	"sluice/core/reader"
)

// The content types of CloudEvents: of one, and of a batch.
const (
	cloudEvent  = "application/cloudevents+json"
	cloudEvents = "application/cloudevents-batch+json"
)

// ingest takes one event.
func (h *handler) ingest(w http.ResponseWriter, r *http.Request, name string) error {
	s, err := h.source(name)
	if err != nil {
		return err
	}
	m := ration{left: &h.memory}
	defer m.giveBack()
	e, err := h.event(r, s, &m)
	if err != nil {
		return h.turnedAway(name, 1, err)
	}
	receipt, err := h.store(r.Context(), s, []core.Event{e}, &m)
	if err != nil {
		return err
	}
	return accepted(w, &receipt)
}

// store stores a request's events, for which it holds memory.
func (h *handler) store(ctx context.Context, s *source, events []core.Event, m *ration) (core.Receipt, error) {
	if !s.AckDelivered {
		return h.Ingester.Ingest(ctx, s.Name, events)
	}
	held := *m
	m.held = 0
	return h.storeAndWait(ctx, s, events, held)
}

// storeAndWait stores events, and waits for what becomes of them: without the
// memory, but on one of the seats.
func (h *handler) storeAndWait(ctx context.Context, s *source, events []core.Event, m ration) (core.Receipt, error) {
	seat := ration{left: &h.seats}
	defer seat.giveBack()
	defer m.giveBack()
	return h.Ingester.Ingest(ctx, s.Name, events, func() bool {
		m.giveBack()
		return seat.take(1) == nil
	})
}

// event is the event that a request to a source is.
func (h *handler) event(r *http.Request, s *source, m *ration) (core.Event, error) {
	body, err := h.receive(r, s, s.limit, m)
	if err != nil {
		return core.Event{}, err
	}
	e := core.Event{ContentType: first(r.Header, "Content-Type"), Body: body}
	if err := identify(&e, r.Header); err != nil {
		return core.Event{}, err
	}
	e.Headers, _, err = headersOf(r.Header)
	return e, err
}

// turnedAway tells of n events that were refused, and returns why. Those of
// senders who are not let in are no events of the source.
func (h *handler) turnedAway(source string, n int, err error) error {
	if code := core.CodeOf(err); h.Refused != nil && code != core.Unauthorized && code != core.Forbidden {
		h.Refused(source, n)
	}
	return err
}

// source is a source that takes requests, by its name.
func (h *handler) source(name string) (*source, error) {
	switch s := h.sources[name]; {
	case s == nil:
		return nil, core.Errorf(core.NotFound, "there is no source of this name")
	case s.Type == core.TypeSQS:
		return nil, core.Errorf(core.NotFound, "source %s takes no requests: its events are read from a queue; send them there", name)
	default:
		return s, nil
	}
}

// identify gives a single event its id, if it has one, after a check that its
// body is what its content type says.
func identify(e *core.Event, h http.Header) (err error) {
	media := mediaType(e.ContentType)
	switch {
	case media == cloudEvents: // which would be kept as one event
		return core.Errorf(core.Unsupported, "one event is taken here; post %s to the same path with /batch behind it", cloudEvents)
	case media == cloudEvent:
		e.JSON = true
		if e.ID, err = reader.CloudEventID(e.Body); err != nil {
			return refused(err)
		}
		return checkID(e.ID, "the event's id")
	case isJSON(media):
		e.JSON = true
		if err := reader.Check(e.Body); err != nil {
			return refused(err)
		}
	}
	e.ID, err = eventID(h)
	return err
}

// refused is what is wrong with a body, as an error with a code.
func refused(err error) error {
	e, ok := errors.AsType[*reader.Error](err)
	switch {
	case !ok:
		return err
	case e.TooMany:
		return core.Errorf(core.TooLarge, "%v", e)
	}
	return core.Errorf(core.Invalid, "%v", e)
}

// locate makes an error about one of several events name it as its sender
// knows it.
func locate(err error, unit string, elements []reader.Element) error {
	e, ok := errors.AsType[*core.EventError](err)
	if !ok || e.Index >= len(elements) {
		return err
	}
	where := fmt.Sprintf("%s %d", unit, elements[e.Index].N)
	return &core.Error{
		Code: core.CodeOf(e.Err), Detail: where + ": " + core.DetailOf(e.Err),
		RetryAfter: core.RetryAfterOf(e.Err), Err: e.Err,
	}
}
