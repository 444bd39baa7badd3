package scenario

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/stretchr/testify/require"
)

// windowing are the scenarios about time windows that leave as folded rows.
func windowing() []scenario {
	const fold = "fold: {count: count, total: sum .json.n}"
	return []scenario{{
		name:        "windows leave as rows when they are over",
		buffer:      `, batch: {maxItems: 2}, window: {every: 1s, grace: 1s, time: "{{ .json.t }}"}, ` + fold,
		destination: ", retry: {initial: 100ms, max: 200ms}",
		answer:      func() func(Delivery) Answer { return secondTime },
		run:         windows,
	}, {
		name:   "a final flush ships windows inside their grace",
		buffer: `, window: {every: 1m, grace: 1h, time: "{{ .json.t }}"}, ` + fold,
		run:    finalFlush,
	}}
}

// secondTime takes every batch at its second attempt.
func secondTime(d Delivery) Answer {
	if d.Header.Get("Sluice-Attempt") == "1" {
		return Answer{Status: http.StatusServiceUnavailable}
	}
	return Answer{}
}

// timed are n events of a row key and a time, numbered from 1.
func timed(key string, n int, at time.Time) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf(`{"k":%q,"n":%d,"t":%d}`, key, i+1, at.UnixMilli())
	}
	return list
}

// row is what a window says of a key.
type row struct {
	ID          string    `json:"id"`
	Key         string    `json:"key"`
	WindowStart time.Time `json:"windowStart"`
	WindowEnd   time.Time `json:"windowEnd"`
	Count       int       `json:"count"`
	Total       int       `json:"total"`
}

// rowsOf are the rows of a delivery, which are all of its window.
func rowsOf(w *world, d *Delivery) []row {
	w.Helper()
	list := make([]row, len(d.Lines))
	group, err := url.PathUnescape(d.Header.Get("Sluice-Group"))
	require.NoError(w, err)
	for i, line := range d.Lines {
		r := &list[i]
		require.NoError(w, json.Unmarshal([]byte(line), r), line)
		const iso = "2006-01-02T15:04:05.000Z"
		require.Equal(w, group, r.WindowStart.Format(iso)+"/"+r.WindowEnd.Format(iso))
	}
	return list
}

// counts is how many events of a key a window has, by both.
type counts map[string]int

func (c counts) add(start time.Time, key string, n int) {
	c[fmt.Sprintf("%s of %s", key, start.Format(time.TimeOnly))] += n
}

// windows: each row of a window comes once it is over with its grace, again
// under the same ids when it was not taken, and once after that. A late event
// is in a later window.
func windows(w *world) {
	first := time.Now().Add(3 * time.Second).Truncate(time.Second).UTC()
	second := first.Add(time.Second)
	want, total := counts{}, 0
	var sent []string
	for _, start := range []time.Time{first, second} {
		for i, key := range []string{"x", "y", "z"} {
			sent = append(sent, timed(key, i+1, start.Add(time.Duration(i)*300*time.Millisecond))...)
			want.add(start, key, i+1)
			total += i + 1
		}
	}
	w.acceptAll(sent)
	inTime := time.Now().Before(second)
	l := rowLedger{tried: map[string][]string{}, taken: map[string]row{}}
	l.until(w, total)
	if inTime {
		require.Equal(w, want, l.counts())
	} else {
		w.Log("the machine stood still for seconds, so that some of the events were late")
	}

	rows := len(l.counts())
	w.acceptAll(timed("x", 1, first)) // late
	l.until(w, total+1)
	require.Len(w, l.counts(), rows+1, "it is moved on into a window that has not shipped")
	w.over()
}

// rowLedger is what a destination knows that takes each batch at its second
// attempt.
type rowLedger struct {
	tried  map[string][]string // the lines of a first attempt, by batch id
	taken  map[string]row      // by id
	events int
}

// until waits until rows of so many events were taken.
func (l *rowLedger) until(w *world, events int) {
	w.Helper()
	for l.events < events {
		d := w.next()
		rows := rowsOf(w, &d)
		for i := range rows {
			require.False(w, d.At.Before(rows[i].WindowEnd.Add(time.Second)), "its window's grace is not over")
		}
		if secondTime(d).Status != 0 {
			require.NotContains(w, l.tried, d.ID())
			l.tried[d.ID()] = d.Lines
			continue
		}
		require.Equal(w, l.tried[d.ID()], d.Lines, "a batch keeps its id, and its rows theirs")
		require.Equal(w, "window", d.Reason())
		for _, r := range rows {
			require.NotContains(w, l.taken, r.ID)
			l.taken[r.ID] = r
			l.events += r.Count
		}
	}
	require.Equal(w, events, l.events, "no event is in two rows")
}

// counts are what the rows say that were taken, of which no two are of the
// same window and key.
func (l *rowLedger) counts() counts {
	c := counts{}
	for _, r := range l.taken {
		c.add(r.WindowStart, r.Key, r.Count)
	}
	return c
}

// finalFlush: inside their grace, windows wait for all but a final flush, and
// one that is open waits for that as well.
func finalFlush(w *world) {
	over := time.Now().Add(-2 * time.Minute).Truncate(time.Minute).UTC()
	open := time.Now().Add(30 * time.Minute)
	ship := func(keys ...string) []row {
		w.Helper()
		require.Equal(w, flushed{}, w.flush(`{"force": true}`).Buffers["b"])
		require.Equal(w, flushed{Buckets: 1, Rows: len(keys)}, w.flush(`{"final": true}`).Buffers["b"])
		rows := rowsOf(w, &w.shipped("b", len(keys))[0])
		for i := range rows {
			require.Equal(w, keys[i], rows[i].Key)
		}
		return rows
	}
	w.acceptAll(append(append(timed("x", 3, over), timed("y", 2, over)...), timed("z", 1, open)...))
	rows := ship("x", "y")
	for i, want := range []row{{Count: 3, Total: 6}, {Count: 2, Total: 3}} {
		want.ID, want.Key, want.WindowStart, want.WindowEnd = rows[i].ID, rows[i].Key, over, over.Add(time.Minute)
		require.Equal(w, want, rows[i])
	}

	w.acceptAll(timed("x", 1, over)) // late by now
	late := ship("x")[0]
	require.NotEqual(w, rows[0].ID, late.ID)
	require.NotEqual(w, over, late.WindowStart, "its own window has shipped")
	require.Equal(w, 1, late.Count)
	require.Equal(w, int64(1), w.pending("b"), "the open window is left")
}
