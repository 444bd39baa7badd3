package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/functions/internal/api"
)

// put stores n events of a byte each in a group, so long ago.
func (h *house) put(buffer, key string, n int, ago time.Duration) {
	h.t.Helper()
	events := make([]core.Event, n)
	for i := range events {
		events[i] = core.Event{ID: fmt.Sprintf("%s-%d", key, i+1), Body: []byte("x"), ReceivedAt: now.Add(-ago)}
	}
	policy := &core.Policy{MaxItems: 100, MaxBytes: 1 << 20, IdleTimeout: time.Minute, MaxWait: time.Minute}
	_, err := h.store.Append(h.t.Context(), now.Add(-ago), []core.Part{{
		Ref: core.Ref{Buffer: buffer, Key: key}, Life: "life" + key, Events: events, Policy: policy,
	}})
	require.NoError(h.t, err)
}

// claim makes a claim on a group's first n items, which then waits for its
// second attempt or, if held, is being sent.
func (h *house) claim(key string, n uint64, held bool) {
	h.t.Helper()
	p := &core.Policy{MaxItems: 100, MaxBytes: 1 << 20, IdleTimeout: time.Minute, MaxWait: time.Minute, Lease: 30 * time.Second, MaxHold: time.Hour}
	_, err := h.store.Update(h.t.Context(), core.Ref{Buffer: "crm-orders", Key: key}, nil, func(g *core.Group) error {
		c, err := g.Claim(core.Taking{From: g.Head + 1, To: g.Head + n, Through: g.HeadBytes + int64(n), Items: int(n), Reason: core.ReasonItems}, p, now)
		if err != nil || held {
			return err
		}
		return g.Release(c.ID, c.Lease, now.Add(time.Minute), "status 500", p, now)
	})
	require.NoError(h.t, err)
}

func TestBuffers(t *testing.T) {
	t.Parallel()
	h := setup(t, func(c *core.Config) {
		b := core.NewBuffer("idle")
		b.From, b.To = []string{"orders"}, "crm"
		c.Buffers = append([]core.Buffer{b}, c.Buffers...)
	})
	h.put("crm-orders", "a", 3, 2*time.Second)
	h.put("crm-orders", "b", 1, time.Second)
	h.put("removed", "", 2, -time.Second) // the clock was set back since
	h.claim("b", 1, true)
	h.attempts.Observer().Attempt(&core.Attempt{Buffer: "crm-orders", Outcome: core.Delivered})
	h.attempts.Observer().Attempt(&core.Attempt{
		Buffer: "crm-orders", Group: "b", Batch: "lifeb-1", Destination: "crm", Items: 1, Reason: core.ReasonIdle, Number: 2,
		Outcome: core.Retry, Err: core.Wrap(core.Unavailable, fmt.Errorf("dial tcp"), "no answer came"),
		At: now.Add(-100 * time.Millisecond), Took: 70 * time.Millisecond, Lateness: 3 * time.Millisecond,
	})
	o := h.attempts.Observer()
	o.DeadLetters(&core.DeadLetter{Buffer: "crm-orders", Batch: "lifeb-1"}, 1)
	o.DeadLetters(&core.DeadLetter{Buffer: "crm-orders", Batch: "lifeb-1"}, 2)
	o.DeadLetters(&core.DeadLetter{Buffer: "crm-orders", Batch: "lifea-1"}, 4) // of another batch
	o.DeadLetters(&core.DeadLetter{Buffer: "idle", Batch: "lifeb-1"}, 4)       // which was not tried
	orders := api.BufferState{
		Name: "crm-orders", Configured: true, Destination: "crm", PendingItems: 3, PendingBytes: 3, ClaimedItems: 1, Groups: 2,
		OldestAt: "2026-03-01T11:59:58.500Z", OldestAgeMs: 2000,
		LastAttempt: &api.AttemptState{
			At: "2026-03-01T12:00:00.400Z", Group: "b", Batch: "lifeb-1", Items: 1, Reason: "idle", Attempt: 2,
			Outcome: "retry", Error: "no answer came", DeadLetters: 3, TookMs: 70, LatenessMs: 3,
		},
	}
	var list api.BufferList
	decode(t, h.get("/v1/buffers"), &list)
	require.Empty(t, cmp.Diff(api.BufferList{Buffers: []api.BufferState{
		{Name: "idle", Configured: true, Destination: "crm"},
		orders,
		{Name: "removed", PendingItems: 2, PendingBytes: 2, Groups: 1, OldestAt: "2026-03-01T12:00:01.500Z"},
	}}, list))

	var one api.BufferState
	decode(t, h.get("/v1/buffers/crm-orders"), &one)
	require.Empty(t, cmp.Diff(orders, one))
	decode(t, h.get("/v1/buffers/removed"), &one)
	require.False(t, one.Configured && one.Name == "removed")
	require.Equal(t, http.StatusNotFound, problem(t, h.get("/v1/buffers/other")).Status)
}

func TestGroups(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.put("crm-orders", "a", 3, 2*time.Second)
	h.put("crm-orders", "b", 5, time.Second)
	h.claim("b", 2, false)
	h.claim("b", 1, true)
	want := []api.GroupState{
		{Key: "a", PendingItems: 3, PendingBytes: 3, FirstAt: "2026-03-01T11:59:58.500Z", LastAt: "2026-03-01T11:59:58.500Z",
			NextCheck: "2026-03-01T12:00:58.500Z", Claims: []api.ClaimState{}},
		{Key: "b", PendingItems: 2, PendingBytes: 2, FirstAt: "2026-03-01T11:59:59.500Z", LastAt: "2026-03-01T11:59:59.500Z",
			NextCheck: "2026-03-01T12:00:59.500Z", Claims: []api.ClaimState{
				{ID: "lifeb-1", Items: 2, Reason: "items", Attempt: 1, State: "waiting", Due: "2026-03-01T12:01:00.500Z",
					FirstErrorAt: "2026-03-01T12:00:00.500Z", LastError: "status 500"},
				{ID: "lifeb-3", Items: 1, Reason: "items", Attempt: 1, State: "sending", Due: "2026-03-01T12:00:30.500Z"},
			}},
	}
	groups := func(query string) api.GroupList {
		var list api.GroupList
		decode(t, h.get("/v1/buffers/crm-orders/groups"+query), &list)
		return list
	}
	require.Empty(t, cmp.Diff(api.GroupList{Groups: want}, groups("")))
	require.Empty(t, cmp.Diff(api.GroupList{Groups: want[1:]}, groups("?key=b")))
	require.Empty(t, cmp.Diff(api.GroupList{Groups: []api.GroupState{}}, groups("?key=c")))
	require.Empty(t, cmp.Diff(api.GroupList{Groups: want}, groups("?limit=2")))

	require.Equal(t, http.StatusNotFound, h.get("/v1/buffers/other/groups").Code)
	require.Equal(t, http.StatusNotFound, h.get("/v1/buffers/other/groups?key=a").Code)
	h.put("removed", "", 1, 0)
	require.Equal(t, http.StatusOK, h.get("/v1/buffers/removed/groups").Code)
	require.Equal(t, http.StatusOK, h.get("/v1/buffers/removed/groups?key=a").Code)
	require.Equal(t, http.StatusOK, setup(t).get("/v1/buffers/crm-orders/groups").Code, "configured, and empty")
}

// TestGroupsOfFlushes: what a flush takes is not looked at before by itself.
func TestGroupsOfFlushes(t *testing.T) {
	t.Parallel()
	h := setup(t, func(c *core.Config) { c.Buffers[0].FlushEvery = time.Second })
	h.put("crm-orders", "a", 3, 2*time.Second)
	for _, query := range []string{"", "?key=a"} {
		var list api.GroupList
		decode(t, h.get("/v1/buffers/crm-orders/groups"+query), &list)
		require.Len(t, list.Groups, 1)
		require.Empty(t, list.Groups[0].NextCheck)
	}
}

// TestWindows shows a time window that is on its way out.
func TestWindows(t *testing.T) {
	t.Parallel()
	h := setup(t, func(c *core.Config) {
		c.Buffers[0].Window = &core.WindowConfig{Every: time.Minute, Grace: 5 * time.Second, MaxAhead: time.Hour}
	})
	h.put("crm-orders", "w", 3, time.Second)
	p := &core.Policy{MaxItems: 100, Lease: time.Minute, MaxHold: time.Hour, ShipAt: now, KeptUntil: now.Add(time.Hour)}
	_, err := h.store.Update(t.Context(), core.Ref{Buffer: "crm-orders", Key: "w"}, nil, func(g *core.Group) error {
		g.Close(p.KeptUntil, p, now)
		c, err := g.Claim(core.Taking{From: 1, To: 3, Through: 3, Items: 3, Reason: core.ReasonWindow, Fold: "f"}, p, now)
		if err != nil {
			return err
		}
		return g.Advance(c.ID, c.Lease, "f", 2, p, now)
	})
	require.NoError(t, err)
	var list api.GroupList
	decode(t, h.get("/v1/buffers/crm-orders/groups"), &list)
	require.Empty(t, cmp.Diff(api.GroupList{Groups: []api.GroupState{{
		Key: "w", LastAt: "2026-03-01T11:59:59.500Z", Closed: true, Claims: []api.ClaimState{
			{ID: "lifew-1", Items: 3, Reason: "window", Attempt: 1, State: "sending", Due: "2026-03-01T12:01:00.500Z", RowsSent: 2},
		},
	}}}, list))
	var b api.BufferState
	decode(t, h.get("/v1/buffers/crm-orders"), &b)
	require.Equal(t, int64(60_000), b.WindowMs)
}

// TestGroupsInPages goes through keys that make bad places in a list.
func TestGroupsInPages(t *testing.T) {
	t.Parallel()
	h := setup(t)
	want := []string{"", "\x00", " ", "%2F", "&after=", "a", "a/b", "ä", "🙂"}
	for _, key := range want {
		h.put("crm-orders", key, 1, 0)
	}
	var got []string
	for after := ""; ; {
		var page api.GroupList
		decode(t, h.get("/v1/buffers/crm-orders/groups?limit=1&after="+after), &page)
		require.Len(t, page.Groups, 1)
		got = append(got, page.Groups[0].Key)
		if after = page.Next; after == "" {
			break
		}
	}
	require.Equal(t, want, got)
}

func TestQueries(t *testing.T) {
	t.Parallel()
	h := setup(t)
	for target, detail := range map[string]string{
		"/v1/buffers?x=1":                            "this call has no parameters",
		"/v1/buffers/crm-orders?x=1":                 "this call has no parameters",
		"/v1/buffers/crm-orders/groups?kee=a":        "a parameter is not known; there are key, after, limit",
		"/v1/buffers/crm-orders/groups?key=a&key=b":  "key is given twice",
		"/v1/buffers/crm-orders/groups?key=%zz":      "the query is not well-formed",
		"/v1/buffers/crm-orders/groups?limit=0":      "limit must be a number from 1 to 1000",
		"/v1/buffers/crm-orders/groups?limit=1001":   "limit must be a number from 1 to 1000",
		"/v1/buffers/crm-orders/groups?limit=ten":    "limit must be a number from 1 to 1000",
		"/v1/buffers/crm-orders/groups?after=!":      "after is no place in the list",
		"/v1/buffers/crm-orders/groups?after=xYWJj":  "after is no place in the list",
		"/v1/deadletters?bufer=crm-orders":           "a parameter is not known; there are buffer, after, limit",
		"/v1/deadletters?limit=-1":                   "limit must be a number from 1 to 1000",
		"/v1/deadletters?after=nonsense":             "is no place in the list",
		"/v1/deadletters?after=1&after=2&limit=1000": "after is given twice",
	} {
		h.refused(h.get(target), http.StatusBadRequest, detail)
	}
}

// bury puts n dead letters of a buffer, with bodies of so many bytes.
func (h *house) bury(buffer string, n, size int) {
	h.t.Helper()
	letters := make([]core.DeadLetter, n)
	for i := range letters {
		letters[i] = core.DeadLetter{
			ID: fmt.Sprintf("%s-1/%d", buffer, i+1), Batch: buffer + "-1", Buffer: buffer, Group: "g", Destination: "crm",
			Reason: core.DeadExhausted, Status: 500, Answer: "<oops>", Attempts: 20,
			FirstErrorAt: now.Add(-time.Hour), LastErrorAt: now, LastError: "status 500",
			Item: core.Item{Seq: uint64(i + 1), Event: core.Event{
				ID: "e", Source: "orders", ContentType: "text/plain", ReceivedAt: now.Add(-2 * time.Hour),
				Headers: []core.Header{{Name: "x-a", Value: "1"}, {Name: "x-a", Value: "2"}},
				Body:    []byte(strings.Repeat("<", size)),
			}},
		}
	}
	require.NoError(h.t, h.store.DeadLetters().Put(h.t.Context(), letters))
}

func TestDeadLetters(t *testing.T) {
	t.Parallel()
	h := setup(t)
	text := "PDw=" // two of <
	h.bury("crm-orders", 1, 2)
	var list api.DeadLetterList
	decode(t, h.get("/v1/deadletters"), &list)
	require.Empty(t, cmp.Diff(api.DeadLetterList{DeadLetters: []api.DeadLetterState{{
		ID: "crm-orders-1/1", Batch: "crm-orders-1", Buffer: "crm-orders", Group: "g", Destination: "crm",
		Reason: "exhausted", Status: 500, Answer: "<oops>", Attempts: 20,
		FirstErrorAt: "2026-03-01T11:00:00.500Z", LastErrorAt: "2026-03-01T12:00:00.500Z", LastError: "status 500",
		Item: api.ItemState{
			ID: "e", Source: "orders", ReceivedAt: "2026-03-01T10:00:00.500Z", ContentType: "text/plain",
			Headers: map[string]string{"x-a": "1, 2"}, BodyBase64: &text,
		},
	}}}, list))
	h.bury("removed", 1, 0)
	decode(t, h.get("/v1/deadletters?buffer=removed"), &list)
	require.Len(t, list.DeadLetters, 1)
	require.Empty(t, *list.DeadLetters[0].Item.BodyBase64)
	require.Equal(t, http.StatusNotFound, h.get("/v1/deadletters?buffer=other").Code)
	w := h.get("/v1/deadletters?buffer=")
	require.Equal(t, http.StatusBadRequest, w.Code)
	require.Contains(t, problem(t, w).Detail, "buffer is empty")
	list = api.DeadLetterList{}
	decode(t, setup(t).get("/v1/deadletters?buffer=crm-orders"), &list)
	require.NotNil(t, list.DeadLetters, "a list without elements is an empty one")
}

// TestDeadLetterBodies shows each body in the form in which it can be shown.
func TestDeadLetterBodies(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)
	for body, want := range map[string]string{
		`{"a":"<b>", "a":1e999}`: `"body":{"a":"<b>","a":1e999}}`,
		"hello":                  `"bodyBase64":"aGVsbG8="}`,
		"":                       `"bodyBase64":""}`,
		"\"\xff\"":               `"bodyBase64":"Iv8i"}`,
		deep:                     `"bodyBase64":"W1t`,
	} {
		h := setup(t)
		require.NoError(t, h.store.DeadLetters().Put(t.Context(), []core.DeadLetter{{ID: "x/1", Item: core.Item{Event: core.Event{Body: []byte(body)}}}}))
		require.Contains(t, h.get("/v1/deadletters").Body.String(), want)
	}
}

func TestDeadLettersInPages(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.bury("crm-orders", 50, 1)
	h.bury("removed", 5, 1)
	pages := func(target string) (lengths []int, ids map[string]bool) {
		ids = map[string]bool{}
		for after := ""; ; {
			var page api.DeadLetterList
			decode(t, h.get(target+"&after="+after), &page)
			lengths = append(lengths, len(page.DeadLetters))
			for _, l := range page.DeadLetters {
				require.False(t, ids[l.ID], "twice: %s", l.ID)
				ids[l.ID] = true
			}
			if after = page.Next; after == "" {
				return lengths, ids
			}
		}
	}
	lengths, ids := pages("/v1/deadletters?limit=20")
	require.Equal(t, []int{20, 20, 15}, lengths)
	require.Len(t, ids, 55)
	lengths, _ = pages("/v1/deadletters?buffer=removed")
	require.Equal(t, []int{5}, lengths)

	// Large ones make short pages.
	h = setup(t)
	h.bury("crm-orders", 40, 256<<10)
	lengths, ids = pages("/v1/deadletters?limit=100")
	require.Equal(t, []int{15, 15, 10}, lengths)
	require.Len(t, ids, 40)
}

func TestReplay(t *testing.T) {
	t.Parallel()
	filter := func(buffer string, ids ...string) core.DeadLetterFilter {
		return core.DeadLetterFilter{Buffer: buffer, IDs: ids}
	}
	tests := []struct {
		name, body string
		want       core.ReplayRequest
		status     int
		detail     string
	}{
		{"everything", "", core.ReplayRequest{}, 200, ""},
		{"everything, in JSON", " {} \n", core.ReplayRequest{}, 200, ""},
		{"a part", `{"buffer":"crm-orders","ids":["a","b"],"to":"crm","max":7}`,
			core.ReplayRequest{Filter: filter("crm-orders", "a", "b"), To: "crm", Max: 7}, 200, ""},
		{"null for buffer", `{"buffer":null}`, core.ReplayRequest{}, 400, "buffer is null; leave it out"},
		{"null for ids", `{"ids":null}`, core.ReplayRequest{}, 400, "ids is null; leave it out"},
		{"null for to", `{"to":null}`, core.ReplayRequest{}, 400, "to is null; leave it out"},
		{"null for max", `{"max":null}`, core.ReplayRequest{}, 400, "max is null; leave it out"},
		{"null", `null`, core.ReplayRequest{}, 400, "the body is not a replay"},
		{"a misspelled field", `{"bufer":"crm-orders"}`, core.ReplayRequest{}, 400, `send nothing, or {"buffer": "..."`},
		{"a wrong type", `{"max":"7"}`, core.ReplayRequest{}, 400, "the body is not a replay"},
		{"no object", `[]`, core.ReplayRequest{}, 400, "the body is not a replay"},
		{"two of them", `{}{}`, core.ReplayRequest{}, 400, "something follows the replay"},
		{"no ids", `{"ids":[]}`, core.ReplayRequest{}, 400, "ids is empty; leave it out to not restrict the replay by it"},
		{"an empty buffer", `{"buffer":""}`, core.ReplayRequest{}, 400, "buffer is empty"},
		{"an empty destination", `{"to":""}`, core.ReplayRequest{}, 400, "to is empty"},
		{"none at most", `{"max":0}`, core.ReplayRequest{}, 400, "max must be at least 1; leave it out to replay all"},
		{"a buffer that was removed", `{"buffer":"other"}`, core.ReplayRequest{Filter: filter("other")}, 200, ""},
		{"too long", `{"ids":["` + strings.Repeat("x", 1<<20) + `"]}`, core.ReplayRequest{}, 413, "the body has more than 1048576 bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := setup(t)
			w := h.post("/v1/deadletters/replay", tt.body)
			if tt.status != http.StatusOK {
				h.refused(w, tt.status, tt.detail)
				require.Empty(t, h.replayed)
				return
			}
			var got api.ReplayReport
			decode(t, w, &got)
			require.Equal(t, api.ReplayReport{Replayed: 3, Failed: 1, Left: 2}, got)
			require.Empty(t, cmp.Diff([]core.ReplayRequest{tt.want}, h.replayed))
		})
	}
}

// TestReplayToWhatIsGone names the destinations that are not configured.
func TestReplayToWhatIsGone(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.report = core.ReplayReport{Failed: 2, Left: 2, Missing: []string{"old", "slow"}}
	w := h.post("/v1/deadletters/replay", "")
	require.JSONEq(t, `{"replayed":0,"failed":2,"left":2,"missing":["old","slow"]}`, w.Body.String())
}

// TestReplayOfNoBuffer refuses a name that neither is configured nor has dead
// letters, without a look at all of them only to know.
func TestReplayOfNoBuffer(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.report = core.ReplayReport{}
	h.refused(h.post("/v1/deadletters/replay", `{"buffer":"other"}`), http.StatusNotFound, "there is no buffer of this name")
	require.Len(t, h.replayed, 1)
	for _, body := range []string{"", `{"buffer":"crm-orders"}`} {
		require.Equal(t, http.StatusOK, h.post("/v1/deadletters/replay", body).Code, "nothing to replay is no fault")
	}
}
