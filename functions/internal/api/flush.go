package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"time"

	"sluice/core"
	"sluice/functions/internal/report"
)

// FlushRequest is the body of POST /v1/flush, and without Only and Strict of
// POST /v1/buffers/{buffer}/flush. An empty one flushes as the cadence has it.
type FlushRequest struct {
	Force  bool     `json:"force,omitempty"`
	Final  bool     `json:"final,omitempty"`
	Only   []string `json:"only,omitempty"` // these buffers alone
	Strict bool     `json:"strict,omitempty"`
	Groups []string `json:"groups,omitempty"` // these group keys alone
}

// maxFlushBytes bounds the body of a flush.
const maxFlushBytes = 1 << 20

// What is right in the body of a flush of all buffers, and of one.
const (
	flushForm       = `send nothing, or {"force": true, "final": true, "only": ["..."], "strict": true, "groups": ["..."]}, of which each may be left out`
	bufferFlushForm = `send nothing, or {"force": true, "final": true, "groups": ["..."]}, of which each may be left out`
)

// flush flushes the buffers. What came of it is in the report, whose ok says
// whether all went well; the answer is a 200 all the same.
func (h *handler) flush(w http.ResponseWriter, r *http.Request, _ string) error {
	q, err := h.flushRequest(r, flushForm)
	if err != nil {
		return err
	}
	ctx, o, end := h.flushing(w, r, q)
	defer end()
	done, err := h.Flusher.Flush(ctx, o)
	if err != nil {
		return err
	}
	for i := range done.Buffers {
		h.logFaults(r, &done.Buffers[i])
	}
	return reply(w, report.Of(&done))
}

// flushBuffer flushes one buffer.
func (h *handler) flushBuffer(w http.ResponseWriter, r *http.Request, buffer string) error {
	q, err := h.flushRequest(r, bufferFlushForm)
	switch {
	case err != nil:
		return err
	case q.Only != nil:
		return core.Errorf(core.Invalid, "only is for POST /v1/flush; here the path names the buffer")
	case q.Strict:
		return core.Errorf(core.Invalid, "strict is for POST /v1/flush; here an unknown buffer is always refused")
	}
	if _, held := core.Held(buffer); held || h.Catalog.Buffer(buffer) == nil {
		return noBuffer()
	}
	ctx, o, end := h.flushing(w, r, q)
	defer end()
	done, err := h.Flusher.FlushBuffer(ctx, buffer, o)
	if err != nil {
		return err
	}
	h.logFaults(r, &done)
	return reply(w, report.OfBuffer(&done))
}

// flushRequest reads the body of a flush, of which form says what is right.
func (h *handler) flushRequest(r *http.Request, form string) (*FlushRequest, error) {
	if h.Flusher == nil {
		return nil, core.Errorf(core.NotFound, "nothing is flushed from here")
	}
	if r.URL.RawQuery != "" {
		return nil, core.Errorf(core.Invalid, "a flush has no parameters; its options are in the body: %s", form)
	}
	m := ration{left: &h.memory}
	defer m.giveBack()
	body, err := h.payload(r, limit{maxFlushBytes, "that a flush takes; name fewer groups at a time"}, &m)
	if err != nil {
		return nil, err
	}
	q := new(FlushRequest)
	return q, q.parse(body, form)
}

// parse reads a body. A field that is not known is refused: it may be a
// misspelled one, and the flush another than meant. So are one that is given
// twice, null, and an empty list, which a client may send for one that turned
// out empty.
func (q *FlushRequest) parse(body []byte, form string) error {
	if len(bytes.TrimSpace(body)) == 0 {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	begin, err := dec.Token()
	if err != nil || begin != json.Delim('{') {
		return core.Errorf(core.Invalid, "the body is not a flush; %s", form)
	}
	seen := make(map[string]bool)
	for dec.More() {
		token, err := dec.Token()
		name, _ := token.(string)
		var value json.RawMessage
		if err == nil {
			err = dec.Decode(&value)
		}
		switch {
		case err != nil:
			return core.Wrap(core.Invalid, err, "the body is not a flush; %s", form)
		case seen[name]:
			return core.Errorf(core.Invalid, "%s is given twice", core.FieldPath("", name))
		}
		seen[name] = true
		if err := q.set(name, value, form); err != nil {
			return err
		}
	}
	if _, err := dec.Token(); err != nil { // the end of the object
		return core.Wrap(core.Invalid, err, "the body is not a flush; %s", form)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return core.Errorf(core.Invalid, "something follows the flush; %s", form)
	}
	return nil
}

// set sets a field.
func (q *FlushRequest) set(name string, value json.RawMessage, form string) error {
	switch name {
	case "force":
		return flag(name, value, &q.Force)
	case "final":
		return flag(name, value, &q.Final)
	case "strict":
		return flag(name, value, &q.Strict)
	case "only":
		return texts(name, value, &q.Only, "buffers")
	case "groups":
		return texts(name, value, &q.Groups, "groups")
	}
	return core.Errorf(core.Invalid, "%s is not known; %s", core.FieldPath("", name), form)
}

func flag(name string, value json.RawMessage, into *bool) error {
	switch string(value) {
	case "true":
		*into = true
	case "false":
		*into = false
	default:
		return core.Errorf(core.Invalid, "%s must be true or false", name)
	}
	return nil
}

func texts(name string, value json.RawMessage, into *[]string, all string) error {
	var list []*string
	err := json.Unmarshal(value, &list)
	if err == nil && list != nil && len(list) == 0 {
		return core.Errorf(core.Invalid, "%s is empty; leave it out to flush all %s", name, all)
	}
	for _, text := range list {
		if text == nil {
			list = nil
			break
		}
		*into = append(*into, *text)
	}
	if err != nil || list == nil {
		return core.Errorf(core.Invalid, `%s must be a list of texts, such as ["a", "b"]; leave it out to flush all %s`, name, all)
	}
	return nil
}

// flushing is what a flush runs in. It may take far longer than other calls
// are given: only a deadline of the request's own ends it. When the caller
// goes away, or the process stops, it begins no more sends; those under way
// are not cut off, as what a destination has taken would be sent again.
func (h *handler) flushing(w http.ResponseWriter, r *http.Request, q *FlushRequest) (context.Context, core.FlushOptions, func()) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // where there is none to set, there is none to lift

	ctx, cut := detached(r.Context())
	undo := context.AfterFunc(h.Grace, cut)
	may, leave := context.WithCancel(r.Context())
	unwatch := context.AfterFunc(h.Working, leave)
	o := core.FlushOptions{Force: q.Force, Final: q.Final, Only: q.Only, Strict: q.Strict, Groups: q.Groups, While: may}
	return ctx, o, func() { undo(); unwatch(); leave(); cut() }
}

// detached is a context that ends at the deadline of another alone.
func detached(from context.Context) (context.Context, context.CancelFunc) {
	ctx := context.WithoutCancel(from)
	if deadline, ok := from.Deadline(); ok {
		return context.WithDeadline(ctx, deadline)
	}
	return context.WithCancel(ctx)
}

// logFaults logs the errors of a report of which it says no more than that
// they are ours.
func (h *handler) logFaults(r *http.Request, b *core.BufferFlush) {
	for _, err := range report.Faults(b) {
		h.Log.ErrorContext(r.Context(), "flush failed", slog.String("buffer", b.Buffer), slog.Any("err", err))
	}
}
