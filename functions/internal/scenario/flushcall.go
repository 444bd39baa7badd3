package scenario

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/stretchr/testify/require"
)

// slow is a buffer beside b that takes the same events and, for as long as a
// scenario runs, ships nothing by itself.
const slow = `  slow: {from: [in], to: out, groupBy: "{{ .json.k }}", batch: {idleTimeoutMs: 300000, maxWaitFromFirstMs: 600000}}`

// flushCalls are the scenarios about flushes that somebody asks for.
func flushCalls() []scenario {
	return []scenario{{
		name:   "a flush dies at every step",
		buffer: ", batch: {maxItems: 2}, flush: {every: 1h}",
		run:    flushCrashes,
	}, {
		name:   "flushes by a call",
		buffer: ", batch: {maxItems: 2}, flush: {every: 1m}",
		more:   slow,
		run:    flushes,
	}}
}

// house is the report of a flush; see package report.
type house struct {
	OK        bool               `json:"ok"`
	Buffers   map[string]flushed `json:"buffers"`
	Unmatched []string           `json:"unmatched"`
}

type flushed struct {
	Buckets          int        `json:"buckets"`
	Rows             int        `json:"rows"`
	Skipped          bool       `json:"skipped"`
	Reason           string     `json:"reason"`
	NextEligibleInMs int64      `json:"nextEligibleInMs"`
	Recovered        *recovered `json:"recovered"`
}

type recovered struct {
	Claims int `json:"claims"`
	Rows   int `json:"rows"`
}

// flush makes a flush in which no buffer fails.
func (w *world) flush(body string) house {
	w.Helper()
	status, answer, _ := w.call(http.MethodPost, "/v1/flush", "application/json", body)
	require.Equal(w, http.StatusOK, status, answer)
	var h house
	require.NoError(w, json.Unmarshal([]byte(answer), &h), answer)
	require.True(w, h.OK, answer)
	return h
}

// pending is how many items of a buffer are not delivered yet.
func (w *world) pending(buffer string) int64 {
	w.Helper()
	var b struct{ PendingItems, ClaimedItems int64 }
	w.read(http.MethodGet, "/v1/buffers/"+buffer, &b)
	return b.PendingItems + b.ClaimedItems
}

// shipped waits for what a flush of a buffer has shipped, as reports count it.
func (w *world) shipped(buffer string, rows int) []Delivery {
	w.Helper()
	got := w.collect(rows)
	for i := range got {
		require.Equal(w, buffer, got[i].Header.Get("Sluice-Buffer"))
		require.Equal(w, "flush", got[i].Reason())
	}
	require.Len(w, lines(got), rows)
	return got
}

// flushes: what is selected leaves at once, as often as its cadence allows.
func flushes(w *world) {
	w.until("the flush that a process makes at its start is over", func() bool {
		return !w.flush(`{"only": ["b"]}`).Buffers["b"].Skipped
	})
	sent := append(events("a", 3), event("c", 1))
	w.acceptAll(sent)
	h := w.flush(`{"only": ["b", "nope"]}`)
	require.Equal(w, []string{"nope"}, h.Unmatched)
	require.Equal(w, map[string]flushed{
		"b": {Rows: 4}, "slow": {Skipped: true, Reason: "not-selected"},
	}, h.Buffers)
	got := w.shipped("b", 4)
	require.ElementsMatch(w, sent, lines(got))
	require.ElementsMatch(w, []int{2, 1, 1}, sizes(got))

	w.accept(event("a", 4))
	b := w.flush(`{"only": ["b"]}`).Buffers["b"]
	require.Positive(w, b.NextEligibleInMs)
	require.LessOrEqual(w, b.NextEligibleInMs, int64(54_000))
	require.Equal(w, flushed{Skipped: true, Reason: "cadence", NextEligibleInMs: b.NextEligibleInMs}, b)
	require.Equal(w, flushed{Rows: 1}, w.flush(`{"only": ["b"], "force": true}`).Buffers["b"])
	require.Equal(w, []string{event("a", 4)}, w.shipped("b", 1)[0].Lines)

	status, answer, _ := w.call(http.MethodPost, "/v1/flush", "application/json", `{"only": ["slow", "nope"], "strict": true}`)
	require.Equal(w, http.StatusBadRequest, status, answer)
	require.Contains(w, answer, "nope")
	require.Equal(w, int64(5), w.pending("slow"), "it is refused before anything is flushed")
	for _, group := range []string{"c", "a"} { // the one at once after the other: there is no cadence
		rows := map[string]int{"c": 1, "a": 4}[group]
		h = w.flush(fmt.Sprintf(`{"only": ["slow"], "groups": [%q]}`, group))
		require.Equal(w, flushed{Rows: rows}, h.Buffers["slow"])
		require.Equal(w, events(group, rows), w.shipped("slow", rows)[0].Lines)
	}
	w.over()
}

// flushCrashes has flushes die at every step. Nothing is lost, and what comes
// again comes under the same batch id, by a later flush or whoever was faster.
func flushCrashes(w *world) {
	l := ledger{posts: map[string]int{}, batches: map[string]string{}, taken: true}
	deaths := 0
	for round, still := 0, 0; still < quiet/2; round++ {
		for _, e := range events(fmt.Sprint("g", round), 3) {
			l.accept(w, e)
		}
		died, stop := w.Crash()
		_, _, _ = w.call(http.MethodPost, "/v1/flush", "", `{"force": true}`) // its answer may be lost
		if w.died(died) {
			deaths, still = deaths+1, 0
		} else {
			still++
		}
		stop()
		l.take(w)
	}
	require.Positive(w, deaths)
	claims, rows := 0, 0
	w.until("nothing is left", func() bool {
		if r := w.flush(`{"force": true}`).Buffers["b"].Recovered; r != nil {
			claims, rows = claims+r.Claims, rows+r.Rows
		}
		return w.pending("b") == 0
	})
	l.take(w)
	l.complete(w)
	require.Positive(w, l.doubled, "a batch whose flush died amid its send comes again")
	w.Logf("%d faults; %d events accepted, all delivered, %d of them again under the same batch id; "+
		"flushes recovered %d claims of %d rows", deaths, len(l.posts), l.doubled, claims, rows)
}
