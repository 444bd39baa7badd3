package scenario

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
)

// faulty are the scenarios in which parts die and hints go astray.
func faulty() []scenario {
	return []scenario{{
		name:        "a part dies at every step",
		buffer:      ", batch: {maxItems: 2, idleTimeoutMs: 100}",
		destination: ", retry: {initial: 100ms, max: 200ms}",
		answer:      func() func(Delivery) Answer { return fussy },
		run:         crashes,
	}, {
		name:   "a control call dies at every step",
		buffer: ", batch: {maxItems: 3}",
		answer: func() func(Delivery) Answer { return fussy },
		run:    controlCrashes,
	}, {
		name:   "lost hints are found by the sweep",
		buffer: ", batch: {maxItems: 3, idleTimeoutMs: 200}",
		run: func(w *world) {
			const groups = 5
			var sent []string
			w.Lose(w, groups, func() {
				for i := range groups {
					list := events(fmt.Sprintf("g%d", i), i%3+1) // some are due at once
					w.acceptAll(list)
					sent = append(sent, list...)
				}
			})
			w.drain()
			l := ledger{posts: map[string]int{}, batches: map[string]string{}, taken: true}
			for _, e := range sent {
				l.posts[e]++
			}
			l.take(w)
			l.complete(w)
		},
	}, {
		name:   "doubled hints",
		buffer: ", batch: {maxItems: 3, idleTimeoutMs: 200}",
		run: func(w *world) {
			stop := w.Double(w)
			var sent []string
			for i := range 20 {
				list := events(fmt.Sprintf("g%d", i), i%5+1)
				w.acceptAll(list)
				sent = append(sent, list...)
			}
			w.drain()
			stop()
			var got []string
			for {
				d, more := w.sink.Poll()
				if !more {
					break
				}
				got = append(got, d.Lines...)
			}
			require.ElementsMatch(w, sent, got, "no two claims have the same event")
		},
	}}
}

// The groups that fussy makes difficult.
const (
	again = "again" // is taken at the second attempt
	never = "never" // is not taken at all
)

// fussy takes batches as their groups say.
func fussy(d Delivery) Answer {
	switch group := d.Header.Get("Sluice-Group"); {
	case strings.HasPrefix(group, again) && d.Header.Get("Sluice-Attempt") == "1":
		return Answer{Status: http.StatusServiceUnavailable}
	case strings.HasPrefix(group, never):
		return Answer{Status: http.StatusBadRequest}
	default:
		return Answer{}
	}
}

// quiet is how many rounds without a death say that no step is left.
const quiet = 4

// crashes has every part die at every step, one at a time, while a client
// posts until each of its events is accepted. Nothing is lost, and what is
// delivered twice has the same batch id, unless it was posted twice.
func crashes(w *world) {
	l := ledger{posts: map[string]int{}, batches: map[string]string{}}
	deaths := 0
	for round, still := 0, 0; still < quiet; round++ {
		died, stop := w.Crash()
		for _, e := range events(fmt.Sprintf("full%d", round), 2) {
			l.accept(w, e)
		}
		for _, kind := range []string{"idle", again, never} {
			l.accept(w, event(fmt.Sprint(kind, round), 1))
		}
		w.Sweep(w)
		if w.died(died) {
			deaths, still = deaths+1, 0
		} else {
			still++
		}
		stop()
		l.take(w)
	}
	require.Positive(w, deaths)
	w.drain()
	l.take(w)
	l.taken = true
	w.sink.Answers(nil)
	w.until("no dead letter is left", func() bool {
		var report struct{ Failed, Left int }
		w.read(http.MethodPost, "/v1/deadletters/replay", &report)
		require.Zero(w, report.Failed)
		return report.Left == 0
	})
	l.take(w)
	l.complete(w)
	w.Logf("%d faults; %d events accepted, all delivered, %d of them again under the same batch id", deaths, len(l.posts), l.doubled)
}

// died waits for a part to die, and logs where.
func (w *world) died(died <-chan string) bool {
	w.Helper()
	select {
	case step := <-died:
		w.Logf("fault: %s", step)
		return true
	case <-time.After(500 * time.Millisecond):
		return false
	}
}

// controlCrashes has control calls die at every step. They change nothing.
func controlCrashes(w *world) {
	sent := events(never, 3)
	w.acceptAll(sent)
	w.next()
	w.until("all events are dead letters", func() bool { return len(w.letters()) == len(sent) })
	deaths := 0
	for still := 0; still < quiet/2; {
		died, stop := w.Crash()
		for _, path := range []string{"/v1/buffers", "/v1/buffers/b/groups", "/v1/deadletters"} {
			_, _, _ = w.call(http.MethodGet, path, "", "") // its answer may be lost
		}
		if w.died(died) {
			deaths, still = deaths+1, 0
		} else {
			still++
		}
		stop()
	}
	require.Positive(w, deaths)
	w.until("the dead letters are there", func() bool { return len(w.letters()) == len(sent) })
}

// ledger is what a client knows of its events.
type ledger struct {
	posts   map[string]int    // how often an event was posted until it was accepted
	batches map[string]string // the batch that an event was taken in
	taken   bool              // the sink takes everything
	doubled int
}

// accept posts an event until it is accepted.
func (l *ledger) accept(w *world, e string) {
	w.Helper()
	for {
		l.posts[e]++
		status, answer := w.post(e)
		switch {
		case status == http.StatusAccepted:
			return
		case status != 0 && status < http.StatusInternalServerError || l.posts[e] == 50:
			require.FailNow(w, "not accepted", "%d: %s %s", status, answer, w.State())
		}
	}
}

// take looks at what the sink has taken since.
func (l *ledger) take(w *world) {
	w.Helper()
	for {
		d, more := w.sink.Poll()
		switch {
		case !more:
			return
		case !l.taken && fussy(d).Status != 0:
			continue
		}
		for _, e := range d.Lines {
			require.NotZero(w, l.posts[e], "never posted: %s", e)
			switch before, again := l.batches[e]; {
			case !again:
				l.batches[e] = d.ID()
			case before == d.ID():
				l.doubled++
			default: // a dead letter may be there twice, and so may what was posted twice
				require.True(w, l.posts[e] > 1 || d.Reason() == "replay", "doubled under another batch id: %s", e)
			}
		}
	}
}

// complete fails unless every event was taken.
func (l *ledger) complete(w *world) {
	w.Helper()
	for e := range l.posts {
		require.Contains(w, l.batches, e, "accepted, and lost; %s", w.State())
	}
}
