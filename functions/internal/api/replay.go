package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"sluice/core"
)

// ReplayRequest is the body of POST /v1/deadletters/replay. What is left out
// does not restrict; an empty body replays everything.
type ReplayRequest struct {
	Buffer *string  `json:"buffer,omitempty"`
	IDs    []string `json:"ids,omitempty"`
	To     *string  `json:"to,omitempty"`  // a destination, instead of each letter's own
	Max    *int     `json:"max,omitempty"` // at most so many
}

// ReplayReport is the answer to it.
type ReplayReport struct {
	Replayed int `json:"replayed"`
	Failed   int `json:"failed"` // and dead letters still
	Left     int `json:"left"`   // at least: where to count is to look at each, as many as there was time for

	// Missing are the destinations of failed ones that are not configured.
	Missing []string `json:"missing,omitempty"`
}

// maxReplayBytes bounds the body of a replay.
const maxReplayBytes = 1 << 20

// replay sends dead letters again.
func (h *handler) replay(w http.ResponseWriter, r *http.Request, _ string) error {
	m := ration{left: &h.memory}
	defer m.giveBack()
	body, err := h.payload(r, limit{maxReplayBytes, "that a replay takes; name fewer ids at a time"}, &m)
	if err != nil {
		return err
	}
	var q ReplayRequest
	if err := q.parse(body); err != nil {
		return err
	}
	picked, err := q.pick()
	if err != nil {
		return err
	}
	report, err := h.Replayer.Replay(r.Context(), picked)
	if err != nil {
		return err
	}
	if report.Replayed+report.Failed+report.Left == 0 && !h.configured(picked.Filter.Buffer) {
		return noBuffer() // it is misspelled
	}
	return reply(w, ReplayReport(report))
}

// parse reads a body. A field that is not known is refused: it may be a
// misspelled one, and the replay larger than meant. So is null, which a client
// may send for a list that turned out empty.
func (q *ReplayRequest) parse(body []byte) error {
	if len(bytes.TrimSpace(body)) == 0 {
		return nil
	}
	const right = `send nothing, or {"buffer": "...", "ids": ["..."], "to": "...", "max": 1}, of which each may be left out`
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(q); err != nil {
		return core.Wrap(core.Invalid, err, "the body is not a replay; %s", right)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return core.Errorf(core.Invalid, "something follows the replay; %s", right)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil || fields == nil {
		return core.Errorf(core.Invalid, "the body is not a replay; %s", right)
	}
	for name, value := range fields {
		if string(value) == "null" {
			return core.Errorf(core.Invalid, "%s is null; leave it out to not restrict the replay by it", name)
		}
	}
	return nil
}

// pick is the request as the core takes it. Fields that are there but empty
// are refused: they would pick everything, which is seldom meant.
func (q *ReplayRequest) pick() (core.ReplayRequest, error) {
	var picked core.ReplayRequest
	empty := ""
	switch {
	case q.Buffer != nil && *q.Buffer == "":
		empty = "buffer"
	case q.IDs != nil && len(q.IDs) == 0:
		empty = "ids"
	case q.To != nil && *q.To == "":
		empty = "to"
	case q.Max != nil && *q.Max < 1:
		return picked, core.Errorf(core.Invalid, "max must be at least 1; leave it out to replay all")
	}
	if empty != "" {
		return picked, core.Errorf(core.Invalid, "%s is empty; leave it out to not restrict the replay by it", empty)
	}
	picked.Filter.IDs = q.IDs
	if q.Buffer != nil {
		picked.Filter.Buffer = *q.Buffer
	}
	if q.To != nil {
		picked.To = *q.To
	}
	if q.Max != nil {
		picked.Max = *q.Max
	}
	return picked, nil
}
