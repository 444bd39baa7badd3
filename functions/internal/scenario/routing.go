package scenario

import (
	"net/http"
	"time"

	"github.com/stretchr/testify/require"
)

// routing are the scenarios about which destinations get what.
func routing() []scenario {
	return []scenario{{
		name:         "one source, two buffers with filters and transforms",
		buffer:       `, filter: '.n > 1', transform: '{k: ("g" + .k), n}', batch: {maxItems: 1}`,
		destinations: `  other: {type: http, url: "<sink>/other", allowPrivate: true, timeout: 5s, transform: '{tens: (.n * 10)}'}`,
		more:         `  other: {from: [in], to: other, filter: '.k == "x"', batch: {maxItems: 2}}`,
		run:          routes,
	}, {
		name:         "fallback and breaker",
		buffer:       ", batch: {maxItems: 1}",
		destination:  ", retry: {maxAttempts: 2, initial: 100ms, max: 200ms}, breaker: {failures: 2, cooldown: 1s}, fallbacks: [backup]",
		destinations: `  backup: {type: http, url: "<sink>/backup", allowPrivate: true, timeout: 5s}`,
		answer:       func() func(Delivery) Answer { return only("/", http.StatusInternalServerError) },
		run:          fallback,
	}, {
		name:         "shadow",
		buffer:       ", batch: {maxItems: 1}",
		destinations: `  copy: {type: http, url: "<sink>/copy", allowPrivate: true, timeout: 5s}`,
		more:         `  copies: {from: [in], to: copy, groupBy: "{{ .json.k }}", shadow: true, batch: {maxItems: 1}}`,
		answer:       func() func(Delivery) Answer { return only("/copy", http.StatusBadRequest) },
		run:          shadow,
	}}
}

// only gives one destination an answer, and takes everything else.
func only(path string, status int) func(Delivery) Answer {
	return func(d Delivery) Answer {
		if d.Path == path {
			return Answer{Status: status}
		}
		return Answer{}
	}
}

// routes: each buffer gets what its filter keeps, as its transform makes it,
// and a destination what its own makes of that.
func routes(w *world) {
	status, r := w.told("in", []string{event("a", 1), event("a", 2), event("x", 1), event("x", 3)})
	require.Equal(w, http.StatusAccepted, status)
	require.Equal(w, receipt{Accepted: 3, Filtered: 1}, r, "an event counts once, however many buffers want it")
	got := map[string][]string{} // by destination and group
	for _, d := range w.collect(4) {
		to := d.Path + " " + d.Header.Get("Sluice-Group")
		got[to] = append(got[to], d.Lines...)
	}
	require.Equal(w, map[string][]string{
		"/ ga":    {`{"k":"ga","n":2}`},
		"/ gx":    {`{"k":"gx","n":3}`},
		"/other ": {`{"tens":10}`, `{"tens":30}`},
	}, got)

	status, r = w.told("in", []string{event("a", 1)})
	require.Equal(w, http.StatusAccepted, status)
	require.Equal(w, receipt{Filtered: 1}, r)
	w.over()
}

// fallback: what a destination has failed on for good goes to the next one as
// the same batch. An open breaker makes what comes then wait, and no more.
func fallback(w *world) {
	w.accept(event("a", 1))
	first, second, third := w.next(), w.next(), w.next()
	for i, d := range []Delivery{first, second, third} {
		require.Equal(w, []string{"/", "/", "/backup"}[i], d.Path)
		require.Equal(w, []string{event("a", 1)}, d.Lines)
		require.Equal(w, first.ID(), d.ID(), "it is the same batch wherever it goes")
	}
	require.NotEqual(w, "closed", w.breaker("b"))

	w.sink.Answers(nil)
	w.accept(event("b", 1))
	probe := w.next()
	require.Equal(w, "/", probe.Path, "a batch that has to wait has not failed")
	require.Equal(w, "1", probe.Header.Get("Sluice-Attempt"))
	require.Equal(w, []string{event("b", 1)}, probe.Lines)
	opened := second.At.Truncate(time.Millisecond) // or later
	waited := probe.At.Sub(opened)
	require.GreaterOrEqual(w, waited, time.Second, "nothing is sent before the cooldown is over")
	w.Logf("the probe was delivered %v after its deadline", waited-time.Second)

	w.over()
	require.Equal(w, "closed", w.breaker("b"))
	require.Empty(w, w.letters())
}

// breaker is the state of the breaker of a buffer's destination.
func (w *world) breaker(buffer string) string {
	w.Helper()
	var b struct{ Breaker struct{ State string } }
	w.read(http.MethodGet, "/v1/buffers/"+buffer, &b)
	return b.Breaker.State
}

// shadow: copies arrive beside the events, and what becomes of them is told to
// nobody.
func shadow(w *world) {
	sent := append(events("a", 1), events("b", 1)...)
	status, r := w.told("in", sent)
	require.Equal(w, http.StatusAccepted, status)
	require.Equal(w, receipt{Accepted: 2}, r, "copies do not count")
	got := map[string][]string{} // by destination
	for _, d := range w.collect(2 * len(sent)) {
		require.Equal(w, "1", d.Header.Get("Sluice-Attempt"))
		want := map[string]string{"/": "", "/copy": "true"}
		require.Equal(w, want[d.Path], d.Header.Get("Sluice-Shadow"), d.Path)
		got[d.Path] = append(got[d.Path], d.Lines...)
	}
	require.ElementsMatch(w, sent, got["/"])
	require.ElementsMatch(w, sent, got["/copy"])
	w.over()
	require.Empty(w, w.letters(), "a copy that was refused is gone")
}
