package scenario

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/stretchr/testify/require"
)

// cases are the scenarios of what users of such systems report.
func cases() []scenario {
	return []scenario{{
		name:         "a dead destination and an open breaker delay no other buffer",
		buffer:       ", batch: {maxItems: 1}",
		sources:      "  dead: {type: http, auth: none}\n  broken: {type: http, auth: none}",
		destinations: deaf("dead", "") + deaf("broken", ", breaker: {failures: 3, cooldown: 10m}"),
		more: `  dead: {from: [dead], to: dead, groupBy: "{{ .json.k }}", batch: {maxItems: 1}}
  broken: {from: [broken], to: broken, groupBy: "{{ .json.k }}", batch: {maxItems: 1}}`,
		run: deadBeside,
	}, {
		name:   "plain and held events of one group",
		buffer: `, deliverAt: "{{ .json.at }}", batch: {idleTimeoutMs: 200}`,
		more:   `  o: {from: [in], to: out, groupBy: "{{ .json.k }}", deliverAt: "{{ .json.at }}", ordering: {}, batch: {idleTimeoutMs: 200}}`,
		run:    heldBeside,
	}, {
		name:        "waits that an endpoint asks for",
		buffer:      ", batch: {maxItems: 1}",
		destination: ", retry: {initial: 100ms, max: 5s}",
		run:         retryAfter,
	}, {
		name:        "answers that name what has failed",
		buffer:      ", batch: {maxItems: 5}",
		destination: ", retry: {initial: 100ms, max: 200ms}",
		answer:      func() func(Delivery) Answer { return naming },
		run:         failures,
	}, {
		name:   "many keys and a slow destination",
		buffer: ", batch: {maxItems: 1}",
		run:    manyKeys,
	}}
}

// deaf is a destination of its own path.
func deaf(name, settings string) string {
	return fmt.Sprintf("  %s: {type: http, url: \"<sink>/%[1]s\", allowPrivate: true, timeout: 5s%s}\n", name, settings)
}

// deadBeside: every group of a dead destination has its first attempt, although
// each waits two minutes then, as what waits holds no worker; behind an open
// breaker none has. Another buffer's events come nowhere near such a wait.
func deadBeside(w *world) {
	const groups, wait = 40, 2 * time.Minute
	beside := func(when string) {
		for i := range 3 {
			w.accept(event(when, i))
		}
		for n := 0; n < 3; {
			if d := w.next(); d.Path == "/" {
				n++
				late := d.At.Sub(d.Oldest(w))
				require.Less(w, late, wait/4)
				w.Logf("%s: delivered %v after its deadline", when, late)
			}
		}
	}
	beside("alone")
	at := map[string]map[string]bool{"/dead": {}, "/broken": {}} // groups that were tried
	w.sink.Answers(func(d Delivery) Answer {
		if d.Path == "/" {
			return Answer{}
		}
		return Answer{Status: http.StatusInternalServerError, RetryAfter: fmt.Sprint(wait.Seconds())}
	})
	var many []string
	for i := range groups {
		many = append(many, event(fmt.Sprint("g", i), i))
	}
	for _, source := range []string{"broken", "dead"} {
		status, r := w.told(source, many)
		require.Equal(w, http.StatusAccepted, status)
		require.Equal(w, receipt{Accepted: groups}, r)
	}
	for len(at["/dead"]) < groups {
		d := w.next()
		require.Equal(w, "1", d.Header.Get("Sluice-Attempt"))
		at[d.Path][d.Header.Get("Sluice-Group")] = true
	}
	beside("beside")
	require.Equal(w, "open", w.breaker("broken"))
	require.Less(w, len(at["/broken"]), groups, "an open breaker keeps them")
	require.EqualValues(w, groups, w.pending("dead"))
	require.EqualValues(w, groups, w.pending("broken"))
	require.Empty(w, w.letters())
}

// heldBeside: a held event leaves at its time, once, and what comes later in
// its group leaves before it, unless the buffer is ordered.
func heldBeside(w *world) {
	due := time.Now().Add(10 * time.Second).Truncate(time.Millisecond)
	held := fmt.Sprintf(`{"k":"k","at":%q}`, due.UTC().Format(time.RFC3339Nano))
	w.accept(held)
	w.accept(event("k", 1))
	w.accept(event("k", 2))
	got := map[string][]string{}
	for n := 0; n < 6; {
		d := w.next()
		require.Equal(w, "k", d.Header.Get("Sluice-Group"))
		buffer := d.Header.Get("Sluice-Buffer")
		for _, line := range d.Lines {
			if buffer == "o" || line == held {
				require.False(w, d.At.Before(due), "%s: %s must not leave early", buffer, line)
			}
		}
		if buffer == "o" || d.Lines[0] == held {
			w.Logf("%s: delivered %v after its deadline", buffer, d.At.Sub(due))
		}
		n += len(d.Lines)
		got[buffer] = append(got[buffer], d.Lines...)
	}
	require.Equal(w, []string{event("k", 1), event("k", 2), held}, got["b"])
	require.Equal(w, []string{held, event("k", 1), event("k", 2)}, got["o"])
	w.over()
}

// retryAfter: a retry waits as long as the endpoint asks for, in seconds or
// until a date, but no longer than the settings allow; what is neither asks for
// nothing.
func retryAfter(w *world) {
	date := time.Now().Add(5 * time.Second).Truncate(time.Second)
	asked := map[string]string{
		"seconds": "3", "date": date.UTC().Format(http.TimeFormat), "garbage": "soon", "year": "31536000",
	}
	w.sink.Answers(func(d Delivery) Answer {
		if d.Header.Get("Sluice-Attempt") != "1" {
			return Answer{}
		}
		return Answer{Status: http.StatusServiceUnavailable, RetryAfter: asked[d.Header.Get("Sluice-Group")]}
	})
	for key := range asked {
		w.accept(event(key, 1))
	}
	tried := map[string][]Delivery{}
	for range 2 * len(asked) {
		d := w.next()
		group := d.Header.Get("Sluice-Group")
		tried[group] = append(tried[group], d)
	}
	for group, least := range map[string]time.Duration{"seconds": 3 * time.Second, "garbage": 0, "year": 5 * time.Second} {
		require.Len(w, tried[group], 2)
		waited := tried[group][1].At.Sub(tried[group][0].At)
		require.GreaterOrEqual(w, waited, least, group)
		w.Logf("%s: delivered %v after its deadline", group, waited-least)
	}
	require.Len(w, tried["date"], 2)
	require.False(w, tried["date"][1].At.Before(date))
	w.over()
}

// naming says of a first attempt what has failed, in the way that the group is
// named after.
func naming(d Delivery) Answer {
	if d.Header.Get("Sluice-Attempt") != "1" {
		return Answer{}
	}
	return Answer{Body: map[string]string{
		"second":    `{"batchItemFailures":[{"itemIdentifier":"1"}]}`,
		"unknown":   `{"batchItemFailures":[{"itemIdentifier":"1"},{"itemIdentifier":"nobody"}]}`,
		"malformed": `{"batchItemFailures":"1"}`,
		"none":      `{"batchItemFailure":[{"itemIdentifier":"1"}]}`,
	}[d.Header.Get("Sluice-Group")]}
}

// failures: what an answer names is sent again, and all if it cannot be read;
// an answer without the field is success.
func failures(w *world) {
	const n = 5
	again := map[string][]string{ // the second attempt
		"second": events("second", n)[1:2], "unknown": events("unknown", n), "malformed": events("malformed", n), "none": nil,
	}
	for key := range again {
		w.acceptAll(events(key, n))
	}
	first, second := map[string]string{}, map[string][]string{"none": nil}
	for range 2*len(again) - 1 {
		d := w.next()
		group := d.Header.Get("Sluice-Group")
		if first[group] == "" {
			require.Equal(w, events(group, n), d.Lines)
			first[group] = d.ID()
			continue
		}
		if group != "second" {
			require.Equal(w, first[group], d.ID(), "it is the same batch")
		}
		second[group] = d.Lines
	}
	require.Equal(w, again, second)
	w.over()
}

// manyKeys: batches of many groups are sent side by side, and each once. The
// destination answers none of the first before it has several.
func manyKeys(w *world) {
	const keys, side = 60, 3
	var mu sync.Mutex
	busy, peak := 0, 0
	several := make(chan struct{})
	w.sink.Answers(func(Delivery) Answer {
		mu.Lock()
		busy++
		if peak = max(peak, busy); busy == side {
			select {
			case <-several:
			default:
				close(several)
			}
		}
		mu.Unlock()
		<-several
		<-time.After(100 * time.Millisecond)
		mu.Lock()
		busy--
		mu.Unlock()
		return Answer{}
	})
	var sent []string
	for i := range keys {
		sent = append(sent, event(fmt.Sprint("g", i), i))
	}
	begin := time.Now()
	w.acceptAll(sent)
	got := w.collect(keys)
	require.ElementsMatch(w, sent, lines(got))
	w.over()
	mu.Lock()
	defer mu.Unlock()
	w.Logf("%d sends of 100 ms in %v, %d at a time", keys, got[keys-1].At.Sub(begin), peak)
}
