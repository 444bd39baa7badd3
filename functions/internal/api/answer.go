package api

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"

	"sluice/core"
)

// Accepted is what a source answers for events that it has taken. They are
// durable.
type Accepted struct {
	Accepted int      `json:"accepted"`
	IDs      []string `json:"ids"`                // of all events, in order
	Unrouted int      `json:"unrouted,omitempty"` // wanted by no buffer

	Filtered   int    `json:"filtered,omitempty"`   // dropped by the filters of all buffers
	Duplicates int    `json:"duplicates,omitempty"` // seen before by all buffers that want them
	Status     string `json:"status,omitempty"`     // of a source with ack: delivered: one of core's
}

// The values of the Content-Type header, as net/http takes them; never written to.
var (
	plainJSON   = []string{"application/json"}
	problemJSON = []string{"application/problem+json"}
)

// send answers with a body that is complete.
func send(w http.ResponseWriter, status int, contentType []string, body []byte) {
	header := w.Header()
	header["Content-Type"] = contentType
	header["Content-Length"] = []string{strconv.Itoa(len(body))}
	w.WriteHeader(status)
	_, _ = w.Write(body) //nolint:gosec // JSON, and declared so; a client that went away is nobody to tell
}

// reply answers 200 with a value.
func reply(w http.ResponseWriter, v any) error {
	var body bytes.Buffer
	encode(&body, v)
	send(w, http.StatusOK, plainJSON, body.Bytes())
	return nil
}

// encode writes v as JSON in which markup stays as it is.
func encode(body *bytes.Buffer, v any) {
	enc := json.NewEncoder(body)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err) // all that is encoded here are our own structs
	}
}

// statuses are the answers of a source that waits for the outcome.
var statuses = map[core.Status]int{
	"":                      http.StatusAccepted,
	core.StatusDelivered:    http.StatusOK,
	core.StatusDeadLettered: http.StatusBadGateway,
	core.StatusPending:      http.StatusAccepted,
}

// accepted answers that events are durable, or what became of them. It is written
// by hand because every event comes by.
func accepted(w http.ResponseWriter, r *core.Receipt) error {
	size := 64
	for _, id := range r.IDs {
		size += len(id) + 3
	}
	body := make([]byte, 0, size)
	body = strconv.AppendInt(append(body, `{"accepted":`...), int64(r.Accepted), 10)
	body = append(body, `,"ids":[`...)
	for i, id := range r.IDs {
		if i > 0 {
			body = append(body, ',')
		}
		body = appendID(body, id)
	}
	body = append(body, ']')
	body = appendCount(body, `,"unrouted":`, r.Unrouted)
	body = appendCount(body, `,"filtered":`, r.Filtered)
	body = appendCount(body, `,"duplicates":`, r.Duplicates)
	if r.Status != "" {
		body = append(append(append(body, `,"status":"`...), r.Status...), '"')
	}
	send(w, statuses[r.Status], plainJSON, append(body, "}\n"...))
	return nil
}

// appendCount appends a member unless it is zero.
func appendCount(dst []byte, name string, n int) []byte {
	if n == 0 {
		return dst
	}
	return strconv.AppendInt(append(dst, name...), int64(n), 10)
}

// appendID appends an id as a JSON string. Ids are printable UTF-8; of that,
// two characters need escaping.
func appendID(dst []byte, id string) []byte {
	dst = append(dst, '"')
	for i := range len(id) {
		if id[i] == '"' || id[i] == '\\' {
			dst = append(dst, '\\')
		}
		dst = append(dst, id[i])
	}
	return append(dst, '"')
}

func (h *handler) health(w http.ResponseWriter, _ *http.Request, _ string) error {
	return reply(w, status{"ok"})
}

func (h *handler) ready(w http.ResponseWriter, _ *http.Request, _ string) error {
	err := h.Ready()
	if err == nil {
		return reply(w, status{"ready"})
	}
	detail := core.DetailOf(err)
	if detail == "" {
		detail = "not ready to take events"
	}
	return &core.Error{Code: core.Unavailable, Detail: detail, RetryAfter: core.RetryAfterOf(err), Err: err}
}

type status struct {
	Status string `json:"status"`
}

func (h *handler) metrics(w http.ResponseWriter, r *http.Request, _ string) error {
	if h.Metrics == nil {
		return core.Errorf(core.NotFound, "there are no metrics here")
	}
	h.Metrics.ServeHTTP(w, r)
	return nil
}
