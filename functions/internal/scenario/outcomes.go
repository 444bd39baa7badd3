package scenario

import (
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/stretchr/testify/require"
)

// outcomes are the scenarios about what destinations answer.
func outcomes() []scenario {
	return []scenario{{
		name:        "retry with partial success",
		buffer:      ", batch: {maxItems: 3}",
		destination: ", retry: {initial: 100ms, max: 200ms}",
		answer:      partial,
		run:         retry,
	}, {
		name:        "ordered group whose first batch fails",
		buffer:      ", ordering: {}, batch: {maxItems: 2}",
		destination: ", retry: {initial: 100ms, max: 200ms}",
		answer:      failFirst,
		run:         ordered,
	}, {
		name:   "dead letters and their replay",
		buffer: ", batch: {maxItems: 3}",
		answer: func() func(Delivery) Answer {
			return func(Delivery) Answer { return Answer{Status: http.StatusBadRequest, Body: "not like this"} }
		},
		run: deadLetters,
	}}
}

// partial fails a first batch as a whole, and its second event once more.
func partial() func(Delivery) Answer {
	var calls atomic.Int32
	return func(Delivery) Answer {
		switch calls.Add(1) {
		case 1:
			return Answer{Status: http.StatusServiceUnavailable}
		case 2:
			return Answer{Body: `{"batchItemFailures":[{"itemIdentifier":"1"}]}`}
		default:
			return Answer{}
		}
	}
}

func retry(w *world) {
	sent := events("a", 3)
	w.acceptAll(sent)
	first, second, third := w.next(), w.next(), w.next()
	require.Equal(w, sent, first.Lines)
	require.Equal(w, sent, second.Lines)
	require.Equal(w, first.ID(), second.ID(), "a batch keeps its id")
	require.Equal(w, sent[1:2], third.Lines, "only what has failed is sent again")
	require.Equal(w, first.ID()+".2", third.ID(), "as a batch of its own")
	for i, d := range []Delivery{first, second, third} {
		require.Equal(w, []string{"1", "2", "3"}[i], d.Header.Get("Sluice-Attempt"))
	}
	w.over()
}

// failFirst fails group a until group b has had its batch, and twice at least.
func failFirst() func(Delivery) Answer {
	var mu sync.Mutex
	passed, failures := false, 0
	return func(d Delivery) Answer {
		mu.Lock()
		defer mu.Unlock()
		switch group := d.Header.Get("Sluice-Group"); {
		case group == "b":
			passed = true
		case !passed || failures < 2:
			failures++
			return Answer{Status: http.StatusServiceUnavailable}
		}
		return Answer{}
	}
}

// ordered: a batch that is being retried holds back its own group, and nothing
// else.
func ordered(w *world) {
	sent := events("a", 6)
	w.acceptAll(sent)
	failed := w.next()
	require.Equal(w, sent[:2], failed.Lines)
	w.acceptAll(events("b", 2))
	var passed []string
	for len(passed) < len(sent) {
		d := w.next()
		switch {
		case d.Header.Get("Sluice-Group") == "b":
			require.Equal(w, events("b", 2), d.Lines)
		case d.ID() == failed.ID():
			require.Equal(w, sent[:2], d.Lines)
			passed = append(passed[:0], d.Lines...) // the last of these is the one that was taken
		default:
			require.NotEmpty(w, passed, "nothing of the group overtakes its first batch")
			passed = append(passed, d.Lines...)
		}
	}
	require.Equal(w, sent, passed)
	w.drain()
}

func deadLetters(w *world) {
	sent := events("a", 3)
	w.acceptAll(sent)
	require.Equal(w, sent, w.next().Lines)
	var list []letter
	w.until("there are three dead letters", func() bool {
		list = w.letters()
		return len(list) == len(sent)
	})
	seen := map[string]bool{}
	for _, l := range list {
		seen[l.ID] = true
		l.ID, l.LastError = "", ""
		require.Equal(w, letter{Buffer: "b", Group: "a", Destination: "out", Reason: "permanent", Answer: "not like this", Status: 400}, l)
	}
	require.Len(w, seen, len(sent), "each has an id of its own")

	w.sink.Answers(nil)
	var report struct{ Replayed, Failed, Left int }
	w.until("all are replayed", func() bool {
		replayed := report.Replayed
		w.read(http.MethodPost, "/v1/deadletters/replay", &report)
		require.Zero(w, report.Failed)
		report.Replayed += replayed
		return report.Replayed >= len(sent)
	})
	got := w.collect(len(sent))
	require.ElementsMatch(w, sent, lines(got))
	require.Equal(w, "replay", got[0].Reason())
	w.until("the list is empty", func() bool { return len(w.letters()) == 0 })
}
