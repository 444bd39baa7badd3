package api

import (
	"cmp"
	"context"
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

const (
	// peek is how many letters are asked for at a time, and peekBytes how much
	// payload a list may have before it ends early: letters may be large.
	peek      = 16
	peekBytes = 4 << 20
	// largeLetter is what a letter has at most where answers are bounded.
	largeLetter = 350 << 10
)

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
	filter := core.DeadLetterFilter{Buffer: q.Get("buffer")}
	if err := h.knownToLetters(r.Context(), filter.Buffer); err != nil {
		return err
	}
	list := DeadLetterList{DeadLetters: []DeadLetterState{}, Next: q.Get("after")}
	var size int64
	for len(list.DeadLetters) < limit && size < cmp.Or(h.MaxListBytes, peekBytes) {
		letters, next, err := h.DeadLetters.List(r.Context(), filter, list.Next, min(h.peek(size), limit-len(list.DeadLetters)))
		if err != nil {
			return err
		}
		for i := range letters {
			size += letters[i].Item.Size()
			list.DeadLetters = append(list.DeadLetters, letterState(&letters[i]))
		}
		if list.Next = next; next == "" {
			break
		}
	}
	return reply(w, list)
}

// peek is how many letters to ask for once there are so many bytes of them.
func (h *handler) peek(size int64) int {
	if h.MaxListBytes == 0 {
		return peek
	}
	return int(max(1, min(peek, (h.MaxListBytes-size)/largeLetter)))
}

// knownToLetters refuses the name of a buffer that neither is configured nor
// has dead letters: it is misspelled.
func (h *handler) knownToLetters(ctx context.Context, buffer string) error {
	if buffer == "" || h.Catalog.Buffer(buffer) != nil {
		return nil
	}
	n, err := h.DeadLetters.Count(ctx, core.DeadLetterFilter{Buffer: buffer})
	if err == nil && n == 0 {
		err = noBuffer()
	}
	return err
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
