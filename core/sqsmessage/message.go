package sqsmessage

import (
	"slices"
	"strings"

	"sluice/core"
	"sluice/core/jsonbody"
)

// contentType is the message attribute that says what a body is.
const contentType = "content-type"

// Message is what of a message an event is made of.
type Message struct {
	ID    string
	Body  string
	Group string // within which the queue keeps its order; "": none

	attributes []core.Header
}

// Add adds a message attribute. One that is not of type String is left out, as
// is one without text; a custom type (String.x) counts as String.
func (m *Message) Add(name, dataType string, text *string) {
	if kind, _, _ := strings.Cut(dataType, "."); kind == "String" && text != nil {
		m.attributes = append(m.attributes, core.Header{Name: name, Value: *text})
	}
}

// Event is the event that a message is. Its id is the message's own, so that one
// that is handed over again is the same event, and its unit is the message
// group. Its attributes become headers, as those of a request do
// ([core.KeptHeader]), sorted by name; an encoding is undone here. Without a
// content type it is application/json or text/plain, or application/octet-stream
// where the body is no text.
func (m *Message) Event() core.Event {
	// SQS tells names of different case apart, and does not say in which order.
	slices.SortFunc(m.attributes, func(a, b core.Header) int { return strings.Compare(a.Name, b.Name) })
	e := core.Event{ID: m.ID, Unit: m.Group, Body: []byte(m.Body)}
	raw := false
	for _, a := range m.attributes {
		a.Name = strings.ToLower(a.Name)
		if a.Name == contentType {
			e.ContentType = a.Value
			continue
		}
		if a.Name == EncodingAttribute && !raw {
			if body, ok := decode(m.Body, a.Value); ok {
				e.Body, raw = body, true
				continue
			}
		}
		if a.Name = core.KeptHeader(a.Name); a.Name != "" {
			e.Headers = append(e.Headers, a)
		}
	}
	slices.SortStableFunc(e.Headers, func(a, b core.Header) int { return strings.Compare(a.Name, b.Name) })
	e.JSON = jsonbody.Valid(e.Body)
	if e.ContentType == "" {
		e.ContentType = mediaOf(&e)
	}
	return e
}

// mediaOf is the content type of a body of which nothing is said.
func mediaOf(e *core.Event) string {
	switch {
	case e.JSON:
		return "application/json"
	case allowed(e.Body):
		return "text/plain"
	}
	return "application/octet-stream"
}
