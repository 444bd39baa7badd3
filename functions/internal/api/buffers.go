package api

import (
	"context"
	"maps"
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
	Breaker      *BreakerState `json:"breaker,omitempty"`      // the destination's, if it has one
	Shadow       bool          `json:"shadow,omitempty"`       // it gets copies
	WindowMs     int64         `json:"windowMs,omitempty"`     // its groups are time windows of this length
	PendingItems int64         `json:"pendingItems"`           // not yet claimed
	PendingBytes int64         `json:"pendingBytes"`           // their payload
	ClaimedItems int64         `json:"claimedItems"`           // being sent, or waiting for a retry
	DelayedItems int64         `json:"delayedItems,omitempty"` // held until their time has come; in an ordered buffer they are pending, too
	NextDueAt    string        `json:"nextDueAt,omitempty"`    // when the first of those in no group yet go on, to half a second
	Groups       int           `json:"groups"`
	OldestAt     string        `json:"oldestAt,omitempty"` // arrival of the oldest pending item
	OldestAgeMs  int64         `json:"oldestAgeMs"`
	LastAttempt  *AttemptState `json:"lastAttempt,omitempty"` // since the process began

	FallbackBreakers []BreakerState `json:"fallbackBreakers,omitempty"` // of the fallbacks that have one, in their order
}

// BreakerState is the state of a destination's breaker.
type BreakerState struct {
	Destination string `json:"destination,omitempty"` // of a fallback's
	State       string `json:"state"`                 // closed, open or half-open: the next batch is a probe, or one is under way
	Until       string `json:"until,omitempty"`       // open until then
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

	DeadLetters int `json:"deadLetters,omitempty"` // so many of the batch's items became some
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
	ctx, now := r.Context(), h.Clock.Now()
	stats, err := h.Store.Stats(ctx)
	if err != nil {
		return nil, err
	}
	stored := make(map[string]*holding, len(stats))
	for _, s := range stats {
		name, held := core.Held(s.Buffer)
		if stored[name] == nil {
			stored[name] = new(holding)
		}
		if held {
			stored[name].delayed = s
		} else {
			stored[name].BufferStats = s
		}
	}
	configured := h.Catalog.Config().Buffers
	states := make([]BufferState, 0, len(configured))
	for i := range configured {
		s, err := h.state(ctx, configured[i].Name, stored[configured[i].Name], now)
		if err != nil {
			return nil, err
		}
		if err := h.describe(ctx, &s, &configured[i], now); err != nil {
			return nil, err
		}
		states = append(states, s)
	}
	for _, name := range slices.Sorted(maps.Keys(stored)) {
		if h.Catalog.Buffer(name) != nil {
			continue
		}
		s, err := h.state(ctx, name, stored[name], now)
		if err != nil {
			return nil, err
		}
		states = append(states, s)
	}
	return states, nil
}

// holding is what the store holds of a buffer, and for it.
type holding struct {
	core.BufferStats

	delayed core.BufferStats
}

// describe adds what the configuration says of a buffer, and what that leads to.
func (h *handler) describe(ctx context.Context, s *BufferState, b *core.Buffer, now core.Millis) error {
	s.Configured, s.Destination, s.Shadow = true, b.To, b.Shadow
	if b.Window != nil {
		s.WindowMs = b.Window.Every.Milliseconds()
	}
	to := h.Catalog.Destination(b.To)
	var err error
	if s.Breaker, err = h.breaker(ctx, to, now); err != nil {
		return err
	}
	for _, name := range to.Fallbacks {
		state, err := h.breaker(ctx, h.Catalog.Destination(name), now)
		if err != nil {
			return err
		}
		if state != nil {
			state.Destination = name
			s.FallbackBreakers = append(s.FallbackBreakers, *state)
		}
	}
	return nil
}

// breaker is the state of a destination's breaker; nil: it has none.
func (h *handler) breaker(ctx context.Context, d *core.Destination, now core.Millis) (*BreakerState, error) {
	if d.Breaker == nil || h.Breaker == nil {
		return nil, nil
	}
	b, err := h.Breaker(ctx, d.Name)
	switch {
	case err != nil:
		return nil, err
	case b.Until == 0:
		return &BreakerState{State: "closed"}, nil
	case b.Open(now) && !b.Probing:
		return &BreakerState{State: "open", Until: timestamp(b.Until)}, nil
	}
	return &BreakerState{State: "half-open"}, nil
}

func (h *handler) state(ctx context.Context, name string, held *holding, now core.Millis) (BufferState, error) {
	if held == nil {
		held = new(holding)
	}
	s := BufferState{
		Name: name, PendingItems: held.Pending, PendingBytes: held.Bytes,
		ClaimedItems: held.Claimed, Groups: held.Groups, OldestAt: timestamp(held.Oldest),
		DelayedItems: held.Held + held.delayed.Pending + held.delayed.Claimed,
	}
	if held.Oldest != 0 {
		s.OldestAgeMs = max(0, now.Sub(held.Oldest).Milliseconds())
	}
	if a, ok := h.Attempts.Last(name); ok {
		s.LastAttempt = attemptState(&a)
	}
	if s.DelayedItems == held.Held {
		return s, nil
	}
	first, err := h.Store.Groups(ctx, held.delayed.Buffer, nil, 1) // each a span of time, by whose end its events go on
	if len(first) > 0 {
		_, end, _ := strings.Cut(first[0].Ref.Key, "/")
		s.NextDueAt, _, _ = strings.Cut(end, "|") // behind it may stand what its source keeps in order
	}
	return s, err
}

func attemptState(a *LastAttempt) *AttemptState {
	s := &AttemptState{
		At: timestamp(a.At), Group: a.Group, Batch: a.Batch, Items: a.Items, Reason: string(a.Reason),
		Attempt: a.Number, Outcome: a.Outcome.String(), Status: a.Status,
		TookMs: a.Took.Milliseconds(), LatenessMs: a.Lateness.Milliseconds(), DeadLetters: a.DeadLetters,
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
