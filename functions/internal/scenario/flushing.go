package scenario

import (
	"slices"
	"sync"
	"time"

	"github.com/stretchr/testify/require"
)

// flushing are the scenarios about when batches leave.
func flushing() []scenario {
	return []scenario{{
		name:   "timeline",
		buffer: ", batch: {idleTimeoutMs: 3000, maxWaitFromFirstMs: 10000}",
		run:    timeline,
	}, {
		name:   "burst of 120 in batches of 50",
		buffer: ", batch: {maxItems: 50, idleTimeoutMs: 3000, maxWaitFromFirstMs: 60000}",
		run:    burst,
	}, {
		name:   "400 in one request in batches of 10",
		buffer: ", batch: {maxItems: 10, idleTimeoutMs: 60000, maxWaitFromFirstMs: 60000}",
		run: func(w *world) {
			sent := events("a", 400)
			w.acceptAll(sent)
			got := w.collect(len(sent))
			require.Equal(w, slices.Repeat([]int{10}, 40), sizes(got))
			require.Equal(w, sent, lines(got))
			for i := range got {
				require.Equal(w, "items", got[i].Reason())
			}
		},
	}, {
		name:   "idle for 100 ms",
		buffer: ", batch: {idleTimeoutMs: 100}",
		run: func(w *world) {
			w.accept(event("a", 1))
			d := w.next()
			require.Equal(w, "idle", d.Reason())
			w.late(&d, 100*time.Millisecond)
		},
	}}
}

// timeline is the documented one: with an idle timeout of 3 s and a maximum wait of 10 s,
// items at 0, 1, 3, 5, 7 and 9 s leave together at 10 s.
func timeline(w *world) {
	const tries = 3
	for try := range tries {
		key := []string{"a", "b", "c"}[try]
		begin, stalled := time.Now(), false
		for i, s := range []int{0, 1, 3, 5, 7, 9} {
			at := begin.Add(time.Duration(s) * time.Second)
			<-time.After(time.Until(at))
			w.accept(event(key, i+1))
			stalled = stalled || time.Since(at) > time.Second
		}
		if stalled {
			w.Log("the machine stood still for a second, so that this was another timeline")
			w.collect(6)
			continue
		}
		d := w.next()
		require.Equal(w, events(key, 6), d.Lines)
		require.Equal(w, "wait", d.Reason())
		w.late(&d, 10*time.Second)
		return
	}
	require.FailNow(w, "the machine stands still too often to tell")
}

// late fails if a batch whose oldest event was to wait so long came early, and
// logs how late it was.
func (w *world) late(d *Delivery, wait time.Duration) {
	w.Helper()
	waited := d.At.Sub(d.Oldest(w))
	require.GreaterOrEqual(w, waited, wait, "it must not leave early")
	w.Logf("delivered %v after its deadline", waited-wait)
}

// burst: two full batches leave at once, and the rest waits from its own
// arrival.
func burst(w *world) {
	sent := events("a", 120)
	work := make(chan string)
	var writers sync.WaitGroup
	for range 8 {
		writers.Go(func() {
			for e := range work {
				status, answer := w.post(e)
				if status != 202 {
					w.Errorf("status %d: %s", status, answer)
				}
			}
		})
	}
	for _, e := range sent {
		work <- e
	}
	close(work)
	writers.Wait()
	got := w.collect(len(sent))
	require.Equal(w, []int{50, 50, 20}, sizes(got))
	require.ElementsMatch(w, sent, lines(got))
	require.Equal(w, "items", got[0].Reason())
	require.Equal(w, "items", got[1].Reason())
	require.Equal(w, "idle", got[2].Reason())
	w.late(&got[2], 3*time.Second)
}
