package api_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/functions/internal/api"
)

// told is an ingester that answers what it is told to.
type told core.Receipt

// Ingest answers.
func (r told) Ingest(context.Context, string, []core.Event, ...func() bool) (core.Receipt, error) {
	return core.Receipt(r), nil
}

func TestReceipts(t *testing.T) {
	t.Parallel()
	ids := []string{"a", `b"`}
	tests := []struct {
		name    string
		receipt core.Receipt
		status  int
		body    string
	}{
		{"accepted", core.Receipt{Accepted: 2, IDs: ids}, 202, `{"accepted":2,"ids":["a","b\""]}`},
		{"all kinds", core.Receipt{Accepted: 1, IDs: ids, Unrouted: 2, Filtered: 3, Duplicates: 4}, 202,
			`{"accepted":1,"ids":["a","b\""],"unrouted":2,"filtered":3,"duplicates":4}`},
		{"delivered", core.Receipt{Accepted: 2, IDs: ids, Status: core.StatusDelivered}, 200, `{"accepted":2,"ids":["a","b\""],"status":"delivered"}`},
		{"dead-lettered", core.Receipt{Accepted: 2, IDs: ids, Status: core.StatusDeadLettered}, 502, `{"accepted":2,"ids":["a","b\""],"status":"dead-lettered"}`},
		{"pending", core.Receipt{Accepted: 2, IDs: ids, Filtered: 1, Status: core.StatusPending}, 202, `{"accepted":2,"ids":["a","b\""],"filtered":1,"status":"pending"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := setup(t)
			h.over(told(tt.receipt))
			for _, path := range []string{sourcePath, sourcePath + "/batch"} {
				w := h.post(path, `[1]`, "Content-Type", "application/json")
				require.Equal(t, tt.status, w.Code)
				require.Equal(t, "application/json", w.Header().Get("Content-Type"))
				require.Equal(t, tt.body+"\n", w.Body.String())
			}
		})
	}
}

// A source whose events are read from a queue takes none here, from nobody.
func TestASourceThatIsAQueue(t *testing.T) {
	t.Parallel()
	h := setup(t, func(c *core.Config) {
		c.Sources[0].Type, c.Sources[0].Queue = core.TypeSQS, "https://sqs.eu-west-1.amazonaws.com/123456789012/orders"
	})
	for _, path := range []string{sourcePath, sourcePath + "/batch"} {
		h.refused(h.post(path, `{}`, "Content-Type", "application/json"), http.StatusNotFound, "read from a queue")
	}
	require.Empty(t, h.refusals, "it is no event of the source")
}

// Events that are held are shown beside their buffer's, and nowhere else.
func TestHeldEvents(t *testing.T) {
	t.Parallel()
	h := setup(t, func(c *core.Config) {
		c.Buffers[0].DeliverAt = "{{ .json.at }}"
		c.Buffers = append(c.Buffers, c.Buffers[0])
		c.Buffers[1].Name, c.Buffers[1].DeliverAt, c.Buffers[1].Shadow, c.Buffers[1].Sample = "copies", "", true, 1
	})
	for _, at := range []string{"2026-03-01T13:00:00Z", "2026-03-01T12:30:00.200Z", "2026-03-02T00:00:00Z"} {
		require.Equal(t, http.StatusAccepted, h.post(sourcePath, `{"at":"`+at+`"}`, "Content-Type", "application/json").Code)
	}
	stray := core.Event{ID: "x", ReceivedAt: now}
	_, err := h.store.Append(t.Context(), now, []core.Part{{
		Ref: core.Ref{Buffer: "gone~held", Key: "2026-03-01T12:00:01.000Z/2026-03-01T12:00:01.500Z"}, Life: "l",
		Events: []core.Event{stray}, Policy: &core.Policy{MaxItems: 1},
	}})
	require.NoError(t, err)
	var list api.BufferList
	decode(t, h.get("/v1/buffers"), &list)
	require.Empty(t, cmp.Diff([]api.BufferState{
		{Name: "crm-orders", Configured: true, Destination: "crm", DelayedItems: 3, NextDueAt: "2026-03-01T12:30:00.500Z"},
		{Name: "copies", Configured: true, Destination: "crm", Shadow: true, PendingItems: 3, PendingBytes: list.Buffers[1].PendingBytes, Groups: 1,
			OldestAt: "2026-03-01T12:00:00.500Z"},
		{Name: "gone", DelayedItems: 1, NextDueAt: "2026-03-01T12:00:01.500Z"},
	}, list.Buffers))
	for _, path := range []string{"", "/groups", "/groups?key=x"} {
		require.Equal(t, http.StatusNotFound, h.get("/v1/buffers/crm-orders~held"+path).Code, path)
	}
	require.Equal(t, http.StatusNotFound, h.post("/v1/buffers/crm-orders~held/flush", "").Code)
	var groups api.GroupList
	decode(t, h.get("/v1/buffers/crm-orders/groups"), &groups)
	require.Empty(t, groups.Groups)
}

func TestBreakers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		state core.Breaker
		want  api.BreakerState
	}{
		{"closed", core.Breaker{Failures: 3}, api.BreakerState{State: "closed"}},
		{"open", core.Breaker{Failures: 10, Until: now + 1500}, api.BreakerState{State: "open", Until: "2026-03-01T12:00:02.000Z"}},
		{"half-open", core.Breaker{Failures: 10, Until: now}, api.BreakerState{State: "half-open"}},
		{"probing", core.Breaker{Failures: 10, Until: now + 1500, Probing: true}, api.BreakerState{State: "half-open"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := setup(t, func(c *core.Config) {
				c.Destinations[0].Breaker = &core.BreakerConfig{Failures: 10, Cooldown: 30 * time.Second}
			})
			var state api.BufferState
			decode(t, h.get("/v1/buffers/crm-orders"), &state)
			require.Nil(t, state.Breaker, "nobody knows")
			h.breaker = func(_ context.Context, destination string) (core.Breaker, error) {
				require.Equal(t, "crm", destination)
				return tt.state, nil
			}
			h.build(config(func(c *core.Config) {
				c.Destinations[0].Breaker = &core.BreakerConfig{Failures: 10, Cooldown: 30 * time.Second}
			}), api.Options{})
			decode(t, h.get("/v1/buffers/crm-orders"), &state)
			require.Equal(t, &tt.want, state.Breaker)
			h.build(config(), api.Options{})
			state = api.BufferState{}
			decode(t, h.get("/v1/buffers/crm-orders"), &state)
			require.Nil(t, state.Breaker, "it has none")
		})
	}
}

// A buffer shows the breakers of all destinations that its batches may go to.
func TestBreakersOfFallbacks(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.breaker = func(_ context.Context, destination string) (core.Breaker, error) {
		if destination == "last" {
			return core.Breaker{Failures: 10, Until: now + 1500}, nil
		}
		return core.Breaker{}, nil
	}
	h.build(config(func(c *core.Config) {
		c.Destinations[0].Fallbacks = []string{"without", "first", "last"}
		for _, name := range c.Destinations[0].Fallbacks {
			d := core.NewDestination(name)
			d.Type, d.Breaker = core.TypeStdout, &core.BreakerConfig{Failures: 10, Cooldown: 30 * time.Second}
			if name == "without" {
				d.Breaker = nil
			}
			c.Destinations = append(c.Destinations, d)
		}
	}), api.Options{})
	var state api.BufferState
	decode(t, h.get("/v1/buffers/crm-orders"), &state)
	require.Nil(t, state.Breaker)
	require.Equal(t, []api.BreakerState{
		{Destination: "first", State: "closed"}, {Destination: "last", State: "open", Until: "2026-03-01T12:00:02.000Z"},
	}, state.FallbackBreakers)
}

// What an ordered buffer holds in its groups is held, and pending, too.
func TestEventsThatAreHeldInPlace(t *testing.T) {
	t.Parallel()
	h := setup(t, func(c *core.Config) { c.Buffers[0].Ordered, c.Buffers[0].DeliverAfter = true, time.Hour })
	for range 3 {
		require.Equal(t, http.StatusAccepted, h.post(sourcePath, `{}`, "Content-Type", "application/json").Code)
	}
	groups, err := h.store.Groups(t.Context(), "crm-orders", nil, 1)
	require.NoError(t, err)
	_, err = h.store.Update(t.Context(), groups[0].Ref, nil, func(g *core.Group) error {
		g.HoldUntil(1, now.Add(time.Hour), &core.Policy{MaxItems: 10}, now)
		return nil
	})
	require.NoError(t, err)
	var state api.BufferState
	decode(t, h.get("/v1/buffers/crm-orders"), &state)
	require.EqualValues(t, 3, state.DelayedItems)
	require.EqualValues(t, 3, state.PendingItems)
	require.Empty(t, state.NextDueAt)
}
