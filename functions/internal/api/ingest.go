package api

import (
	"errors"
	"fmt"
	"net/http"

	"sluice/core"
	"sluice/core/reader"
)

const cloudEvent = "application/cloudevents+json"

// ingest takes one event.
func (h *handler) ingest(w http.ResponseWriter, r *http.Request, name string) error {
	s, err := h.source(name)
	if err != nil {
		return err
	}
	body, err := h.receive(r, s, s.limit)
	if err != nil {
		return err
	}
	e := core.Event{ContentType: first(r.Header, "Content-Type"), Body: body}
	if e.ID, err = identify(r.Header, e.ContentType, body); err != nil {
		return err
	}
	if e.Headers, _, err = headersOf(r.Header); err != nil {
		return err
	}
	receipt, err := h.Ingester.Ingest(r.Context(), name, []core.Event{e})
	if err != nil {
		return err
	}
	return accepted(w, &receipt)
}

// source is a source by its name.
func (h *handler) source(name string) (*source, error) {
	if s := h.sources[name]; s != nil {
		return s, nil
	}
	return nil, core.Errorf(core.NotFound, "there is no source of this name")
}

// identify is the id of a single event, "" if it has none, after a check that
// its body is what its content type says.
func identify(h http.Header, contentType string, body []byte) (string, error) {
	media := mediaType(contentType)
	if media == cloudEvent {
		id, err := reader.CloudEventID(body)
		if err != nil {
			return "", refused(err)
		}
		return id, checkID(id, "the event's id")
	}
	if isJSON(media) {
		if err := reader.Check(body); err != nil {
			return "", refused(err)
		}
	}
	return eventID(h)
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
