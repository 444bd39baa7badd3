package cloud

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/functions/internal/api"
)

func TestIngest(t *testing.T) {
	t.Parallel()
	r := setUp(t, yaml)
	h, err := r.ingest(r.outside)
	require.NoError(t, err)

	answer := call(t, h, http.MethodPost, "/v1/sources/orders", "orders-token", `{"k":"a"}`)
	require.Equal(t, http.StatusAccepted, answer.StatusCode, answer.Body)
	require.EqualValues(t, 1, r.pending())
	require.Len(t, r.timer.all(), 1)
	require.Empty(t, r.queue.all())

	answer = call(t, h, http.MethodPost, "/v1/sources/orders", "orders-token", `{"k":"a"}`)
	require.Equal(t, http.StatusAccepted, answer.StatusCode, answer.Body)
	require.Len(t, r.queue.all(), 1, "the second item has filled the batch")
	require.Contains(t, r.log.String(), "sluice_events_total")

	require.NotContains(t, r.log.String(), `"outcome":"refused"`)
	answer = call(t, h, http.MethodPost, "/v1/sources/orders", "orders-token", strings.Repeat("x", 400<<10))
	require.Equal(t, http.StatusRequestEntityTooLarge, answer.StatusCode, answer.Body)
	require.Contains(t, r.log.String(), `"outcome":"refused"`)

	for _, tt := range []struct {
		method, path, token string
		want                int
	}{
		{http.MethodPost, "/v1/sources/orders", "", http.StatusUnauthorized},
		{http.MethodPost, "/v1/sources/orders", "control-token", http.StatusUnauthorized},
		{http.MethodGet, "/healthz", "", http.StatusOK},
		{http.MethodGet, "/readyz", "", http.StatusOK},
		{http.MethodGet, "/v1/buffers", "control-token", http.StatusNotFound},
		{http.MethodPost, "/v1/deadletters/replay", "control-token", http.StatusNotFound},
		{http.MethodGet, "/metrics", "control-token", http.StatusNotFound},
	} {
		answer := call(t, h, tt.method, tt.path, tt.token, "")
		require.Equal(t, tt.want, answer.StatusCode, "%s %s", tt.method, tt.path)
	}
}

// An event that can never be delivered is a dead letter at once.
func TestIngestOfADeadLetter(t *testing.T) {
	t.Parallel()
	r := setUp(t, yaml+"  later: {from: [orders], to: crm, deliverAt: \"{{ .json.at }}\"}\n")
	h, err := r.ingest(r.outside)
	require.NoError(t, err)
	answer := call(t, h, http.MethodPost, "/v1/sources/orders", "orders-token", `{"k":"a","at":"tomorrow"}`)
	require.Equal(t, http.StatusAccepted, answer.StatusCode, answer.Body)
	require.Equal(t, 1, r.dead())
	require.EqualValues(t, 1, r.pending(), "the other buffer has it")
}

// Behind a gateway nobody is on the same machine, whatever the event says.
func TestSourceForLoopbackLetsNobodyIn(t *testing.T) {
	t.Parallel()
	r := setUp(t, "sources: {orders: {type: http}}\n")
	h, err := r.ingest(r.outside)
	require.NoError(t, err)
	e := fromLoopback("/v1/sources/orders")
	answer, err := h(t.Context(), e)
	require.NoError(t, err)
	require.Equal(t, http.StatusForbidden, answer.StatusCode)
}

func TestReadiness(t *testing.T) {
	t.Parallel()
	r := setUp(t, yaml)
	r.outside.store = broken{r.store}
	h, err := r.ingest(r.outside)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, call(t, h, http.MethodGet, "/healthz", "", "").StatusCode)
	require.Equal(t, http.StatusServiceUnavailable, call(t, h, http.MethodGet, "/readyz", "", "").StatusCode)
}

// asked is a store that counts how often it is asked for a group.
type asked struct {
	core.Store

	times int
	err   error
}

func (a *asked) Group(context.Context, core.Ref) (core.Group, error) {
	a.times++
	return core.Group{}, a.err
}

// Each look at the store is paid for, and anybody may have it made: so its
// answer, good or bad, holds for a moment.
func TestReadinessIsKept(t *testing.T) {
	t.Parallel()
	now := core.Millis(1_700_000_000_000)
	store := new(asked)
	ask := ready(store, core.ClockFunc(func() core.Millis { return now }))
	down := core.Errorf(core.Unavailable, "the table does not answer")
	for _, step := range []struct {
		later time.Duration
		err   error // what the store answers, from then on
		want  error
		times int
	}{
		{0, nil, nil, 1},
		{999 * time.Millisecond, down, nil, 1},
		{time.Millisecond, down, down, 2},
		{500 * time.Millisecond, nil, down, 2},
		{500 * time.Millisecond, nil, nil, 3},
		{-time.Hour, down, down, 4}, // a clock that was set back keeps nothing
	} {
		now, store.err = now.Add(step.later), step.err
		require.Equal(t, step.want, ask())
		require.Equal(t, step.times, store.times)
	}
}

func TestControl(t *testing.T) {
	t.Parallel()
	r := setUp(t, yaml)
	r.append("a", 1)
	h, err := r.control(r.outside, r.sender)
	require.NoError(t, err)

	answer := call(t, h, http.MethodGet, "/v1/buffers", "control-token", "")
	require.Equal(t, http.StatusOK, answer.StatusCode)
	var list api.BufferList
	require.NoError(t, json.Unmarshal([]byte(answer.Body), &list))
	require.Len(t, list.Buffers, 1)
	require.EqualValues(t, 1, list.Buffers[0].PendingItems)

	for _, path := range []string{"/v1/buffers/b", "/v1/buffers/b/groups", "/v1/deadletters"} {
		require.Equal(t, http.StatusOK, call(t, h, http.MethodGet, path, "control-token", "").StatusCode, path)
		require.Equal(t, http.StatusUnauthorized, call(t, h, http.MethodGet, path, "", "").StatusCode, path)
	}
	require.Equal(t, http.StatusNotFound, call(t, h, http.MethodPost, "/v1/sources/orders", "orders-token", "{}").StatusCode)
}

// bury makes dead letters, a batch each.
func (r *rig) bury(n int, destination string) []core.DeadLetter {
	r.t.Helper()
	var all []core.DeadLetter
	for i := range n {
		batch := fmt.Sprintf("B%03d", i)
		all = append(all, core.DeadLetter{
			ID: batch + "/1", Batch: batch, Buffer: "b", Group: "a", Destination: destination, Reason: core.DeadExhausted, Attempts: 2,
			Item: core.Item{Seq: 1, Event: core.Event{ID: batch, Body: []byte("{}"), JSON: true}},
		})
	}
	require.NoError(r.t, r.store.DeadLetters().Put(r.t.Context(), all))
	return all
}

// replay calls a replay as the gateway does, which waits for 30 s, of a
// function that has 29.
func replay(t *testing.T, h HTTPHandler) (api.ReplayReport, time.Duration) {
	t.Helper()
	begin := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 29*time.Second)
	defer cancel()
	e := fromLoopback("/v1/deadletters/replay")
	e.Headers["authorization"] = "Bearer control-token"
	answer, err := h(ctx, e)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, answer.StatusCode, answer.Body)
	require.NoError(t, ctx.Err())
	var report api.ReplayReport
	require.NoError(t, json.Unmarshal([]byte(answer.Body), &report))
	return report, time.Since(begin)
}

// A replay ends in time with a report, however slow the destination is.
func TestReplayEndsInTime(t *testing.T) { //nolint:paralleltest // bubbles
	for name, tt := range map[string]struct {
		each     time.Duration // that a send takes
		replayed int
		failed   int
		most     time.Duration
	}{
		"quick": {0, 40, 0, 0},
		"slow":  {time.Second, 12, 0, replayTime},
		"hangs": {time.Hour, 0, 1, 20 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := setUp(t, yaml)
				r.bury(40, "crm")
				r.crm.answer = func(ctx context.Context, _ *core.Batch) core.Response {
					select {
					case <-time.After(tt.each):
						return core.Response{Status: http.StatusOK}
					case <-ctx.Done():
						return core.Response{Err: core.Wrap(core.Canceled, ctx.Err(), "cut off")}
					}
				}
				h, err := r.control(r.outside, r.sender)
				require.NoError(t, err)
				report, took := replay(t, h)
				require.Equal(t, api.ReplayReport{Replayed: tt.replayed, Failed: tt.failed, Left: 40 - tt.replayed}, report)
				require.LessOrEqual(t, took, tt.most)

				// what was not replayed is free again
				r.crm.answer = nil
				report, _ = replay(t, h)
				require.Equal(t, api.ReplayReport{Replayed: 40 - tt.replayed}, report)
			})
		})
	}
}
