package api

import (
	"encoding/base64"
	"net/http"
	"net/url"

	"sluice/core"
)

// GroupList is the answer to GET /v1/buffers/{buffer}/groups.
type GroupList struct {
	Groups []GroupState `json:"groups"`
	Next   string       `json:"next"`
}

// GroupState is a group's state. Times are RFC 3339 with milliseconds.
type GroupState struct {
	Key          string       `json:"key"`
	PendingItems uint64       `json:"pendingItems"` // not yet claimed
	PendingBytes int64        `json:"pendingBytes"` // their payload
	FirstAt      string       `json:"firstAt,omitempty"`
	LastAt       string       `json:"lastAt,omitempty"`
	NextCheck    string       `json:"nextCheck,omitempty"` // not where a group leaves by flushes alone: they come by the clock
	Closed       bool         `json:"closed,omitempty"`    // a time window that is over: it takes no more
	Claims       []ClaimState `json:"claims"`
}

// ClaimState is the state of a batch that is being sent, or waits for its
// next attempt.
type ClaimState struct {
	ID           string `json:"id"`
	Items        uint64 `json:"items"`
	Reason       string `json:"reason"`
	Attempt      int    `json:"attempt"`            // from 1
	State        string `json:"state"`              // "sending" or "waiting"
	Due          string `json:"due"`                // end of the lease, or time of the next attempt
	RowsSent     int    `json:"rowsSent,omitempty"` // of a window that leaves in rows: those the destination has taken
	FirstErrorAt string `json:"firstErrorAt,omitempty"`
	LastError    string `json:"lastError,omitempty"`
}

// groups lists a buffer's groups that are not empty, in order of their keys.
func (h *handler) groups(w http.ResponseWriter, r *http.Request, buffer string) error {
	q, err := parameters(r, "key", "after", "limit")
	if err != nil {
		return err
	}
	limit, err := limitOf(q)
	if err != nil {
		return err
	}
	if _, held := core.Held(buffer); held {
		return noBuffer()
	}
	if q.Has("key") {
		return h.group(w, r, core.Ref{Buffer: buffer, Key: q.Get("key")})
	}
	after, err := place(q)
	if err != nil {
		return err
	}
	found, err := h.Store.Groups(r.Context(), buffer, after, limit+1)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		if err := h.known(r, buffer); err != nil {
			return err
		}
	}
	list := GroupList{Groups: make([]GroupState, 0, len(found))}
	if len(found) > limit {
		found = found[:limit]
		list.Next = next(found[limit-1].Ref.Key)
	}
	for i := range found {
		list.Groups = append(list.Groups, h.groupState(found[i].Ref, &found[i].Group))
	}
	return reply(w, list)
}

// group is a list of the one group of a key, or of none.
func (h *handler) group(w http.ResponseWriter, r *http.Request, ref core.Ref) error {
	g, err := h.Store.Group(r.Context(), ref)
	if err != nil {
		return err
	}
	list := GroupList{Groups: []GroupState{}}
	if !g.Empty() {
		list.Groups = append(list.Groups, h.groupState(ref, &g))
	} else if err := h.known(r, ref.Buffer); err != nil {
		return err
	}
	return reply(w, list)
}

// known refuses the name of a buffer that neither is configured nor holds
// anything.
func (h *handler) known(r *http.Request, buffer string) error {
	if h.Catalog.Buffer(buffer) != nil {
		return nil
	}
	found, err := h.Store.Groups(r.Context(), buffer, nil, 1)
	if err == nil && len(found) == 0 {
		err = noBuffer()
	}
	return err
}

// A place in the list of groups is a key in base64, behind a letter: the key
// may be empty, and any bytes.
const placePrefix = "k"

func next(key string) string {
	return placePrefix + base64.RawURLEncoding.EncodeToString([]byte(key))
}

// place is the key after which a list is to go on; nil: from the first.
func place(q url.Values) (*string, error) {
	after := q.Get("after")
	if after == "" {
		return nil, nil //nolint:nilnil // no key, which is not the empty key
	}
	key, err := base64.RawURLEncoding.DecodeString(after[1:])
	if err != nil || after[:1] != placePrefix {
		return nil, core.Errorf(core.Invalid, "after is no place in the list; take it from an earlier answer's next")
	}
	s := string(key)
	return &s, nil
}

func (h *handler) groupState(ref core.Ref, g *core.Group) GroupState {
	s := GroupState{
		Key: ref.Key, PendingItems: g.Pending(), PendingBytes: g.PendingBytes(),
		FirstAt: timestamp(g.FirstAt), LastAt: timestamp(g.LastAt), NextCheck: timestamp(g.CheckAt),
		Closed: g.Closed != 0, Claims: make([]ClaimState, len(g.Claims)),
	}
	if sub := h.Catalog.Buffer(ref.Buffer); sub != nil && sub.Buffer.FlushEvery > 0 {
		s.NextCheck = ""
	}
	for i := range g.Claims {
		c := &g.Claims[i]
		state := "waiting"
		if c.Held() {
			state = "sending"
		}
		s.Claims[i] = ClaimState{
			ID: c.ID, Items: c.To - c.From + 1 - uint64(c.Done.Len()), Reason: string(c.Reason),
			Attempt: c.Attempt, State: state, Due: timestamp(c.Due), RowsSent: c.Sent,
			FirstErrorAt: timestamp(c.FirstErrorAt), LastError: c.Error,
		}
	}
	return s
}
