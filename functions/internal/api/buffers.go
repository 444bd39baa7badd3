package api

import (
	"net/http"
	"slices"
	"strings"

	"sluice/core"
)

// BufferList is the answer to GET /v1/buffers.
type BufferList struct {
	Buffers []BufferState `json:"buffers"`
	Next    string        `json:"next"`
}

// BufferState is a buffer's state. Times are RFC 3339 with milliseconds.
type BufferState struct {
	Name         string        `json:"name"`
	Configured   bool          `json:"configured"` // false: it holds items, but the configuration has it no more
	Destination  string        `json:"destination,omitempty"`
	WindowMs     int64         `json:"windowMs,omitempty"` // its groups are time windows of this length
	PendingItems int64         `json:"pendingItems"`       // not yet claimed
	PendingBytes int64         `json:"pendingBytes"`       // their payload
	ClaimedItems int64         `json:"claimedItems"`       // being sent, or waiting for a retry
	Groups       int           `json:"groups"`
	OldestAt     string        `json:"oldestAt,omitempty"` // arrival of the oldest pending item
	OldestAgeMs  int64         `json:"oldestAgeMs"`
	LastAttempt  *AttemptState `json:"lastAttempt,omitempty"` // since the process began
}

// AttemptState is what came of one send of one batch.
type AttemptState struct {
	At         string `json:"at"`
	Group      string `json:"group"`
	Batch      string `json:"batch"`
	Items      int    `json:"items"`
	Reason     string `json:"reason"`
	Attempt    int    `json:"attempt"` // from 1
	Outcome    string `json:"outcome"` // delivered, partial, retry, permanent or interrupted
	Status     int    `json:"status"`  // the destination's; 0: no answer came
	Error      string `json:"error,omitempty"`
	TookMs     int64  `json:"tookMs"`
	LatenessMs int64  `json:"latenessMs"`
}

// buffers lists the configured buffers, in the configuration's order, then
// those that only hold items.
func (h *handler) buffers(w http.ResponseWriter, r *http.Request, _ string) error {
	if _, err := parameters(r); err != nil {
		return err
	}
	states, err := h.states(r)
	if err != nil {
		return err
	}
	return reply(w, BufferList{Buffers: states})
}

// buffer shows one buffer.
func (h *handler) buffer(w http.ResponseWriter, r *http.Request, name string) error {
	if _, err := parameters(r); err != nil {
		return err
	}
	states, err := h.states(r)
	if err != nil {
		return err
	}
	for i := range states {
		if states[i].Name == name {
			return reply(w, &states[i])
		}
	}
	return noBuffer()
}

func noBuffer() error { return core.Errorf(core.NotFound, "there is no buffer of this name") }

func (h *handler) states(r *http.Request) ([]BufferState, error) {
	stats, err := h.Store.Stats(r.Context())
	if err != nil {
		return nil, err
	}
	held := make(map[string]core.BufferStats, len(stats))
	for _, s := range stats {
		held[s.Buffer] = s
	}
	now := h.Clock.Now()
	configured := h.Catalog.Config().Buffers
	states := make([]BufferState, 0, len(configured))
	for i := range configured {
		b := &configured[i]
		s := h.state(b.Name, held[b.Name], now)
		s.Configured, s.Destination = true, b.To
		if b.Window != nil {
			s.WindowMs = b.Window.Every.Milliseconds()
		}
		states = append(states, s)
	}
	slices.SortFunc(stats, func(a, b core.BufferStats) int { return strings.Compare(a.Buffer, b.Buffer) })
	for _, s := range stats {
		if h.Catalog.Buffer(s.Buffer) == nil {
			states = append(states, h.state(s.Buffer, s, now))
		}
	}
	return states, nil
}

func (h *handler) state(name string, held core.BufferStats, now core.Millis) BufferState {
	s := BufferState{
		Name: name, PendingItems: held.Pending, PendingBytes: held.Bytes,
		ClaimedItems: held.Claimed, Groups: held.Groups, OldestAt: timestamp(held.Oldest),
	}
	if held.Oldest != 0 {
		s.OldestAgeMs = max(0, now.Sub(held.Oldest).Milliseconds())
	}
	if a, ok := h.Attempts.Last(name); ok {
		s.LastAttempt = attemptState(&a)
	}
	return s
}

func attemptState(a *core.Attempt) *AttemptState {
	s := &AttemptState{
		At: timestamp(a.At), Group: a.Group, Batch: a.Batch, Items: a.Items, Reason: string(a.Reason),
		Attempt: a.Number, Outcome: a.Outcome.String(), Status: a.Status,
		TookMs: a.Took.Milliseconds(), LatenessMs: a.Lateness.Milliseconds(),
	}
	if a.Err != nil {
		if s.Error = core.DetailOf(a.Err); s.Error == "" {
			s.Error = a.Err.Error()
		}
	}
	return s
}

// timestamp is a time as answers have it, "" when it is not set.
func timestamp(m core.Millis) string {
	if m == 0 {
		return ""
	}
	return m.String()
}
