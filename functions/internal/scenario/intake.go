package scenario

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/stretchr/testify/require"
)

// intake are the scenarios about what a source does with its events, and what
// it answers.
func intake() []scenario {
	return []scenario{{
		name:   "delay",
		buffer: `, deliverAfter: 1s, deliverAt: "{{ .json.at }}", batch: {maxItems: 1}`,
		run:    delays,
	}, {
		name:    "answers that wait for the outcome",
		source:  ", ack: delivered, respondTimeout: 25s",
		buffer:  ", batch: {maxItems: 1}",
		sources: "  quick: {type: http, auth: none, ack: delivered, respondTimeout: 300ms}",
		more:    "  quick: {from: [quick], to: out, batch: {maxItems: 1}}",
		run:     answers,
	}, {
		name:   "an id that has been seen",
		buffer: ", dedupe: {window: 1m}, batch: {maxItems: 1}",
		run:    doubles,
	}}
}

// delays: no event leaves before its time, and each leaves once. One without a
// time that can be read is a dead letter.
func delays(w *world) {
	const after = time.Second
	at := func(key string, t time.Time) string {
		return fmt.Sprintf(`{"k":%q,"at":%q}`, key, t.UTC().Format(time.RFC3339Nano))
	}
	begin := time.Now()
	due := map[string]time.Time{"after": begin.Add(after), "later": begin.Add(after + 200*time.Millisecond), "past": begin}
	sent := []string{`{"k":"after"}`, at("later", due["later"]), at("past", begin.Add(-time.Hour)), `{"k":"garbage","at":"tomorrow"}`}
	status, r := w.told("in", sent)
	require.Equal(w, http.StatusAccepted, status)
	require.Equal(w, receipt{Accepted: 4}, r, "a dead letter is durable, too")
	var b struct{ DelayedItems int }
	w.read(http.MethodGet, "/v1/buffers/b", &b)
	require.LessOrEqual(w, b.DelayedItems, 2, "what is due is not held")

	got := w.collect(3)
	require.ElementsMatch(w, sent[:3], lines(got))
	for _, d := range got {
		group := d.Header.Get("Sluice-Group")
		late := d.At.Sub(due[group].Truncate(time.Millisecond))
		require.GreaterOrEqual(w, late, time.Duration(0), "%s must not leave early", group)
		w.Logf("%s: delivered %v after its deadline", group, late)
	}
	w.over()
	list := w.letters()
	require.Len(w, list, 1)
	require.Contains(w, list[0].LastError, "tomorrow")
	list[0].ID, list[0].LastError = "", ""
	require.Equal(w, letter{Buffer: "b", Group: "garbage", Destination: "out", Reason: "permanent"}, list[0])
}

// answers: a source with ack: delivered says what has become of an event, or
// that this is not known yet.
func answers(w *world) {
	release := make(chan struct{})
	let := sync.OnceFunc(func() { close(release) })
	defer let()
	w.sink.Answers(func(d Delivery) Answer {
		switch {
		case d.Header.Get("Sluice-Buffer") == "quick":
			<-release
		case d.Header.Get("Sluice-Group") == never:
			return Answer{Status: http.StatusBadRequest}
		}
		return Answer{}
	})
	for _, tt := range []struct {
		source, key string
		status      int
		outcome     string
	}{
		{"in", "a", http.StatusOK, "delivered"},
		{"in", never, http.StatusBadGateway, "dead-lettered"},
		{"quick", "a", http.StatusAccepted, "pending"},
	} {
		begin := time.Now()
		status, r := w.told(tt.source, events(tt.key, 1))
		w.Logf("%s after %v", tt.outcome, time.Since(begin))
		require.Equal(w, receipt{Accepted: 1, Status: tt.outcome}, r)
		require.Equal(w, tt.status, status)
		require.Equal(w, events(tt.key, 1), w.next().Lines)
	}
	let()
	w.over()
	require.Len(w, w.letters(), 1)
}

// doubles: an event that comes again under its id, even after it was delivered,
// is dropped, and its sender told so.
func doubles(w *world) {
	for _, tt := range []struct {
		id   string
		n    int
		want receipt
	}{
		{"one", 1, receipt{Accepted: 1}},
		{"one", 2, receipt{Duplicates: 1}},
		{"two", 3, receipt{Accepted: 1}},
	} {
		e := event("a", tt.n)
		status, r := w.told("in", []string{e}, "Idempotency-Key", tt.id)
		require.Equal(w, http.StatusAccepted, status)
		require.Equal(w, tt.want, r)
		if r.Accepted > 0 {
			require.Equal(w, []string{e}, w.next().Lines)
		}
	}
	w.over()
}
