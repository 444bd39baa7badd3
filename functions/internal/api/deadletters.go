package api

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"unicode/utf8"

	"sluice/core"
)

// DeadLetterList is the answer to GET /v1/deadletters.
type DeadLetterList struct {
	DeadLetters []DeadLetterState `json:"deadletters"`
	Next        string            `json:"next"`
}

// DeadLetterState is one item whose delivery has finally failed. Times are
// RFC 3339 with milliseconds.
type DeadLetterState struct {
	ID           string    `json:"id"`
	Buffer       string    `json:"buffer"`
	Group        string    `json:"group"`
	Destination  string    `json:"destination"`
	Batch        string    `json:"batch"`
	Reason       string    `json:"reason"` // "permanent" or "exhausted"
	Status       int       `json:"status"` // the destination's; 0: no answer came
	Attempts     int       `json:"attempts"`
	FirstErrorAt string    `json:"firstErrorAt"`
	LastErrorAt  string    `json:"lastErrorAt"`
	LastError    string    `json:"lastError"`
	Answer       string    `json:"answer,omitempty"` // the destination's, cut
	Item         ItemState `json:"item"`
}

// ItemState is an event as it was accepted: its body as it is when that is
// JSON, else in base64.
type ItemState struct {
	ID          string            `json:"id"`
	Source      string            `json:"source"`
	ReceivedAt  string            `json:"receivedAt"`
	ContentType string            `json:"contentType"`
	Headers     map[string]string `json:"headers"` // those of one name joined by a comma
	Body        json.RawMessage   `json:"body,omitempty"`
	BodyBase64  *string           `json:"bodyBase64,omitempty"`
}

// listBytes is how many bytes of letters a list has by default.
const listBytes = 4 << 20

// deadLetters lists dead letters, oldest first.
func (h *handler) deadLetters(w http.ResponseWriter, r *http.Request, _ string) error {
	q, err := parameters(r, "buffer", "after", "limit")
	if err != nil {
		return err
	}
	limit, err := limitOf(q)
	if err != nil {
		return err
	}
	if q.Has("buffer") && q.Get("buffer") == "" {
		return core.Errorf(core.Invalid, "buffer is empty; leave it out to list the dead letters of all buffers")
	}
	filter := core.DeadLetterFilter{Buffer: q.Get("buffer"), MaxBytes: cmp.Or(h.MaxListBytes, listBytes)}
	letters, next, err := h.DeadLetters.List(r.Context(), filter, q.Get("after"), limit)
	if err != nil {
		return err
	}
	if len(letters) == 0 && next == "" && q.Get("after") == "" && !h.configured(filter.Buffer) {
		return noBuffer() // it is misspelled
	}
	list := DeadLetterList{DeadLetters: make([]DeadLetterState, len(letters)), Next: next}
	for i := range letters {
		list.DeadLetters[i] = letterState(&letters[i])
	}
	return reply(w, list)
}

// configured reports whether a filter's buffer is one of the configuration's,
// or left out.
func (h *handler) configured(buffer string) bool {
	return buffer == "" || h.Catalog.Buffer(buffer) != nil
}

func letterState(l *core.DeadLetter) DeadLetterState {
	return DeadLetterState{
		ID: l.ID, Buffer: l.Buffer, Group: l.Group, Destination: l.Destination, Batch: l.Batch,
		Reason: l.Reason, Status: l.Status, Attempts: l.Attempts,
		FirstErrorAt: timestamp(l.FirstErrorAt), LastErrorAt: timestamp(l.LastErrorAt),
		LastError: l.LastError, Answer: l.Answer, Item: itemState(&l.Item),
	}
}

func itemState(it *core.Item) ItemState {
	s := ItemState{
		ID: it.ID, Source: it.Source, ReceivedAt: timestamp(it.ReceivedAt), ContentType: it.ContentType,
		Headers: make(map[string]string, len(it.Headers)),
	}
	for _, h := range it.Headers {
		if before, ok := s.Headers[h.Name]; ok {
			h.Value = before + ", " + h.Value
		}
		s.Headers[h.Name] = h.Value
	}
	// json.Valid bounds nesting as the encoder does.
	if utf8.Valid(it.Body) && json.Valid(it.Body) {
		s.Body = it.Body
	} else {
		text := base64.StdEncoding.EncodeToString(it.Body)
		s.BodyBase64 = &text
	}
	return s
}
