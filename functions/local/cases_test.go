package main_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/functions/internal/scenario"
)

// slack is what a loaded machine may add to the time that a test bounds; what is
// wrong costs tens of seconds.
const slack = 5 * time.Second

// lateness is how long after their deadlines deliveries came.
type lateness []time.Duration

// at is the lateness that such a share stays within.
func (l lateness) at(share float64) time.Duration {
	slices.Sort(l)
	return l[int(share*float64(len(l)-1))].Round(time.Millisecond)
}

func (l lateness) String() string {
	return fmt.Sprintf("delivered %v (p50), %v (p99), %v (at most) after its deadline", l.at(0.5), l.at(0.99), l.at(1))
}

// A hundred thousand held events, over a kill before they are due and another
// when half have left, all leave, and none before its time.
func TestE2EHeld(t *testing.T) {
	t.Parallel()
	const n, posts, long, idle = 100_000, 100, 10 * time.Second, 100 * time.Millisecond
	s := newSink(t, nil)
	config := configure(t, "", s.URL, `, deliverAt: "{{ .json.at }}", batch: {maxItems: 10000, idleTimeoutMs: 100}`, "")
	data := t.TempDir()
	p := serve(t, config, data)
	begin := time.Now().Add(12 * time.Second)
	due := func(i int) time.Time { return begin.Add(time.Duration(i) * long / n).Truncate(time.Millisecond) }
	for i := range posts {
		var events []string
		for j := i; j < n; j += posts {
			events = append(events, fmt.Sprintf(`{"n":%d,"k":"k%d","at":%q}`, j, j%20, due(j).UTC().Format(time.RFC3339Nano)))
		}
		p.acceptAll("in", events)
	}
	require.True(t, time.Now().Before(begin), "it took so long to post them that nothing was held")
	p.kill()
	p = serve(t, config, data)

	var late lateness
	batches := make(map[int]string, n) // by event
	for kills := 1; len(batches) < n; {
		d := s.Next(t, p.state)
		for _, line := range d.Lines {
			var i int
			_, err := fmt.Sscanf(line, `{"n":%d,`, &i)
			require.NoError(t, err)
			if before, again := batches[i]; again {
				require.Equal(t, before, d.ID(), "doubled under another batch id: %s", line)
				continue
			}
			batches[i] = d.ID()
			late = append(late, d.At.Sub(due(i)))
		}
		if kills == 1 && len(batches) >= n/2 {
			kills++
			p.kill()
			p = serve(t, config, data)
		}
	}
	require.Equal(t, 0, p.stop())
	require.GreaterOrEqual(t, late.at(0), idle-time.Millisecond, "none may join its group early")
	t.Logf("%d held events over two kills: %s", n, late)
	require.Less(t, late.at(0.99), time.Second+slack, "the window of half a second, the batch's 100 ms, and the machine")
}

// troubled is a configuration of a buffer and of others with troubles: dead (the
// destination fails), hung (it does not answer), broken (it has an open
// breaker), full, and a shadow whose destination does not answer either.
func troubled(t *testing.T, sink string) string {
	var sources, destinations, buffers strings.Builder
	add := func(name, source, buffer, destination string) {
		if source == name {
			fmt.Fprintf(&sources, "  %s: {type: http}\n", name)
		}
		fmt.Fprintf(&destinations, "  %s: {type: http, url: \"%s/%[1]s\", allowPrivate: true, timeout: 30s%[3]s}\n", name, sink, destination)
		fmt.Fprintf(&buffers, "  %s: {from: [%s], to: %[1]s, groupBy: \"{{ .json.k }}\"%[3]s}\n", name, source, buffer)
	}
	const at1 = ", batch: {maxItems: 1}"
	add("in", "in", ", batch: {idleTimeoutMs: 100}", "")
	add("dead", "dead", at1, ", retry: {initial: 100ms, max: 1s}")
	add("hung", "hung", at1, fmt.Sprintf(", concurrency: %d", hungSends))
	add("broken", "broken", at1, fmt.Sprintf(", concurrency: 2, breaker: {failures: %d, cooldown: 1h}", brokenAfter))
	add("full", "full", at1+", size: 20", "")
	add("copies", "in", at1+", shadow: true", "")
	path := filepath.Join(t.TempDir(), "sluice.yaml")
	text := fmt.Sprintf("sources:\n%sdestinations:\n%sbuffers:\n%s", &sources, &destinations, &buffers)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

const (
	hungSends   = 3 // under way at a time
	brokenAfter = 3 // failures
)

// trouble is how destinations answer that have troubles, and what they saw.
type trouble struct {
	release chan struct{} // ends what hangs

	mu   sync.Mutex
	sent map[string]int // by path
	busy map[string]int
	peak map[string]int
}

func (b *trouble) answer(d scenario.Delivery) scenario.Answer {
	b.mu.Lock()
	b.sent[d.Path]++
	b.busy[d.Path]++
	b.peak[d.Path] = max(b.peak[d.Path], b.busy[d.Path])
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.busy[d.Path]--
	}()
	switch d.Path {
	case "/hung", "/full", "/copies":
		<-b.release
	case "/in":
		return scenario.Answer{}
	}
	return scenario.Answer{Status: http.StatusInternalServerError}
}

// Whatever is wrong with others, a buffer's batches are as punctual as those of
// a process that has no other buffer, which runs beside it.
func TestE2ETroubleDelaysNoOtherBuffer(t *testing.T) {
	t.Parallel()
	const rounds, groups, every = 100, 5, 50 * time.Millisecond
	b := &trouble{release: make(chan struct{}), sent: map[string]int{}, busy: map[string]int{}, peak: map[string]int{}}
	s, reference := newSink(t, b.answer), newSink(t, nil)
	t.Cleanup(func() { close(b.release) })
	p := serve(t, troubled(t, s.URL), t.TempDir())
	alone := serve(t, configure(t, "", reference.URL, ", batch: {idleTimeoutMs: 100}", ""), t.TempDir())

	refused, begin := 0, time.Now()
	for i := range rounds {
		<-time.After(time.Until(begin.Add(time.Duration(i) * every)))
		var events []string
		for j := range groups {
			events = append(events, fmt.Sprintf(`{"k":"%d-%d"}`, i, j))
		}
		for _, source := range []string{"dead", "hung", "broken", "in"} {
			p.acceptAll(source, events)
		}
		if status, _ := p.post("/v1/sources/full", events[0]); status != http.StatusAccepted {
			require.Equal(t, http.StatusServiceUnavailable, status)
			refused++
		}
		alone.acceptAll("in", events)
	}
	usual, beside := punctual(t, reference, "/", rounds*groups), punctual(t, s, "/in", rounds*groups)
	t.Logf("alone: %s", usual)
	t.Logf("beside others' troubles: %s", beside)
	require.Less(t, beside.at(0.99), usual.at(0.99)+slack)
	require.Less(t, beside.at(1), usual.at(1)+2*slack)

	require.NotZero(t, refused, "full")
	status, metrics := p.call(http.MethodGet, "/metrics", "", "")
	require.Equal(t, http.StatusOK, status)
	require.Regexp(t, `(?m)^sluice_shadow_total\{buffer="copies",outcome="dropped"\} [1-9]`, metrics)
	require.Regexp(t, `(?m)^sluice_breaker_open\{destination="broken"\} 1$`, metrics)
	b.mu.Lock()
	defer b.mu.Unlock()
	require.GreaterOrEqual(t, b.sent["/dead"], rounds*groups)
	require.Equal(t, hungSends, b.peak["/hung"])
	require.LessOrEqual(t, b.sent["/broken"], brokenAfter+1)
}

// punctual is how late the deliveries of so many events were, all to one path
// and of buffers that wait 100 ms. It fails if they take half a minute.
func punctual(t *testing.T, s *scenario.Sink, path string, events int) (late lateness) {
	t.Helper()
	left := func() bool {
		for d, more := s.Poll(); more; d, more = s.Poll() {
			if d.Path == path {
				events -= len(d.Lines)
				late = append(late, d.At.Sub(d.Oldest(t))-100*time.Millisecond)
			}
		}
		return events <= 0
	}
	for end := time.Now().Add(patience); !left(); <-time.After(20 * time.Millisecond) {
		require.True(t, time.Now().Before(end), "%d have not left", events)
	}
	return late
}
