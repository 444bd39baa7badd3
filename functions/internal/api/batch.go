package api

import (
	"fmt"
	"net/http"
	"strconv"

	"sluice/core"
	"sluice/core/reader"
)

// maxEvents is how many events one request may bring.
const maxEvents = 10_000

// shape is how a batch's body holds its events.
type shape struct {
	unit        string // what an event is called there
	contentType string // each event's own
	cloudEvents bool
}

// shapes are the shapes by media type.
var shapes = map[string]shape{
	"application/x-ndjson": {unit: reader.Line, contentType: "application/json"},
	"application/jsonl":    {unit: reader.Line, contentType: "application/json"},
	"application/json":     {unit: reader.Item, contentType: "application/json"},
	cloudEvents:            {unit: reader.Item, contentType: cloudEvent, cloudEvents: true},
}

// ingestBatch takes many events: all of them, or none.
func (h *handler) ingestBatch(w http.ResponseWriter, r *http.Request, name string) error {
	s, err := h.source(name)
	if err != nil {
		return err
	}
	form, ok := shapes[mediaType(first(r.Header, "Content-Type"))]
	if !ok {
		return core.Errorf(core.Unsupported, "the content type of a batch must be application/x-ndjson, application/json (an array) or application/cloudevents-batch+json")
	}
	m := ration{left: &h.memory}
	defer m.giveBack()
	body, err := h.receive(r, s, limit{h.MaxBatchBytes, "in one request; send fewer events at a time"}, &m)
	if err != nil {
		return h.turnedAway(name, 1, err) // of at least one event
	}
	elements, ids, err := form.read(body)
	if err != nil {
		return h.turnedAway(name, max(1, len(elements)), refused(err))
	}
	events, err := h.events(r.Header, form, elements, ids)
	if err != nil {
		return h.turnedAway(name, max(1, len(elements)), err)
	}
	for i := range elements {
		elements[i].Body = nil // the events have it, and are let go of while somebody waits
	}
	receipt, err := h.store(r.Context(), s, events, &m)
	if err != nil {
		return locate(err, form.unit, elements)
	}
	return accepted(w, &receipt)
}

// read takes a body apart. It returns ids only where the events have them.
func (f shape) read(body []byte) ([]reader.Element, []string, error) {
	if f.cloudEvents {
		return reader.CloudEvents(body, maxEvents)
	}
	read := reader.Array
	if f.unit == reader.Line {
		read = reader.Lines
	}
	elements, err := read(body, maxEvents)
	return elements, nil, err
}

// events makes the events of a batch. Each keeps the request's headers.
func (h *handler) events(header http.Header, form shape, elements []reader.Element, ids []string) ([]core.Event, error) {
	request, err := requestID(header)
	if err != nil {
		return nil, err
	}
	headers, size, err := headersOf(header)
	if err != nil {
		return nil, err
	}
	if int64(size)*int64(len(elements)) > h.MaxBatchBytes {
		return nil, headersTooLarge(fmt.Sprintf(
			"the headers, kept with each of %d events, come to more than %d bytes; send fewer events at a time", len(elements), h.MaxBatchBytes))
	}
	events := make([]core.Event, len(elements))
	for i := range elements {
		e := &events[i]
		e.ContentType, e.Headers, e.Body, e.JSON = form.contentType, headers, elements[i].Body, true
		switch {
		case ids != nil:
			if err := checkID(ids[i], fmt.Sprintf("%s %d: the event's id", form.unit, elements[i].N)); err != nil {
				return nil, err
			}
			e.ID = ids[i]
		case request != "":
			e.ID = request + "-" + strconv.Itoa(i+1)
		}
	}
	return events, nil
}
