package main_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/functions/internal/scenario"
)

// always is a destination with one answer.
func always(status int) func(scenario.Delivery) scenario.Answer {
	return func(scenario.Delivery) scenario.Answer { return scenario.Answer{Status: status} }
}

// Kill -9 under load, three times in a row, loses nothing that was accepted;
// what is delivered twice has the same batch id.
func TestE2EKill(t *testing.T) {
	t.Parallel()
	s := newSink(t, nil)
	config := configure(t, "", s.URL, ", batch: {maxItems: 20, idleTimeoutMs: 200, maxWaitFromFirstMs: 1000}", "")
	data := t.TempDir()
	accepted := make(map[string]bool)
	for round := range 3 {
		p := serve(t, config, data)
		for id := range underLoad(p, round) {
			accepted[id] = true
		}
	}
	p := serve(t, config, data)
	batches := make(map[string]string) // by item
	for missing := len(accepted); missing > 0; {
		d := s.Next(t, func() string { return p.state() + describe(accepted, batches) })
		batch := d.ID()
		for _, line := range d.Lines {
			if before, ok := batches[line]; ok {
				require.Equal(t, before, batch, "doubled under another batch id: %s", line)
				continue
			}
			batches[line] = batch
			if accepted[line] {
				missing--
			}
		}
	}
	require.Equal(t, 0, p.stop())
	t.Logf("%d events accepted over three kills, all delivered", len(accepted))
}

// describe names some of the accepted events that were not delivered.
func describe(accepted map[string]bool, batches map[string]string) string {
	var missing []string
	for event := range accepted {
		if batches[event] == "" {
			missing = append(missing, event)
		}
	}
	return fmt.Sprintf("%d are missing, among them %v", len(missing), missing[:min(len(missing), 10)])
}

// underLoad writes to a process from many connections until it is killed
// amid it, and returns what it has accepted.
func underLoad(p *process, round int) map[string]bool {
	var mu sync.Mutex
	accepted := make(map[string]bool)
	var writers sync.WaitGroup
	enough := make(chan struct{})
	for w := range 16 {
		writers.Go(func() {
			for i := 0; ; i++ {
				event := fmt.Sprintf(`{"k":"k%d","id":"%d-%d-%d"}`, (w+i)%50, round, w, i)
				status, _ := p.post("/v1/sources/in", event)
				if status == 0 {
					return // killed
				}
				mu.Lock()
				if status == http.StatusAccepted {
					accepted[event] = true
				}
				if len(accepted) == 3000 {
					close(enough)
				}
				mu.Unlock()
			}
		})
	}
	<-enough
	p.kill()
	writers.Wait()
	http.DefaultClient.CloseIdleConnections()
	return accepted
}

// SIGTERM lets a send under way end, exits with 0, and keeps what is pending
// and its deadline.
func TestE2ETerm(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	s := newSink(t, func(scenario.Delivery) scenario.Answer { <-release; return scenario.Answer{} })
	config := configure(t, "", s.URL, ", batch: {maxItems: 2, idleTimeoutMs: 3000, maxWaitFromFirstMs: 3000}", "")
	data := t.TempDir()
	p := serve(t, config, data)
	p.accept(`{"k":"sent","n":1}`)
	p.accept(`{"k":"sent","n":2}`)
	require.Len(t, s.Next(t, nil).Lines, 2)
	before := time.Now()
	p.accept(`{"k":"waits"}`)
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
	p.logs.match(t, "stopping")
	close(release)
	require.Equal(t, 0, p.wait(), p.logs)

	p = serve(t, config, data)
	d := s.Next(t, nil)
	require.Equal(t, []string{`{"k":"waits"}`}, d.Lines)
	require.GreaterOrEqual(t, d.At.Sub(before), 3*time.Second-time.Millisecond, "it must keep its deadline")
	require.Equal(t, 0, p.stop())
	_, more := s.Poll()
	require.False(t, more, "the batch whose send had ended is settled")
}

func TestE2ESecondProcess(t *testing.T) {
	t.Parallel()
	s := newSink(t, nil)
	config := configure(t, "", s.URL, "", "")
	data := t.TempDir()
	p := serve(t, config, data)
	code, out := sluice(t, "", "serve", "--config", config, "--data", data, "--listen", "127.0.0.1:0")
	require.Equal(t, 1, code)
	require.Contains(t, out, data)
	require.Contains(t, out, fmt.Sprint(p.cmd.Process.Pid))
	require.Equal(t, 0, p.stop())
}

func TestE2EReload(t *testing.T) {
	t.Parallel()
	s, moved := newSink(t, always(http.StatusServiceUnavailable)), newSink(t, nil)
	quick := ", batch: {maxItems: 1}"
	config := configure(t, "", s.URL, quick, ", retry: {initial: 1s, max: 1s}")
	p := serve(t, config, t.TempDir())
	p.accept(`{"k":"a"}`)
	first := s.Next(t, nil)
	id := first.ID()

	require.NoError(t, os.WriteFile(config, []byte("sources: {in: {typ: http}}"), 0o600))
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGHUP))
	p.logs.match(t, "not reloaded")
	p.logs.match(t, `sluice.yaml:1:\d+`)
	second := s.Next(t, nil)
	require.Equal(t, id, second.ID(), "a bad file changes nothing")

	configure(t, config, moved.URL, quick, ", retry: {initial: 1s, max: 1s}")
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGHUP))
	p.logs.match(t, "configuration reloaded")
	third := moved.Next(t, nil)
	require.Equal(t, id, third.ID(), "a claim in retry uses the new address")
	require.Equal(t, 0, p.stop())
}

// The command line shows dead letters and replays them.
func TestE2EDeadLetters(t *testing.T) {
	t.Parallel()
	s := newSink(t, always(http.StatusBadRequest))
	data := t.TempDir()
	config := configure(t, "", s.URL, ", batch: {maxItems: 3}", "")
	p := serve(t, config, data)
	code, out := sluice(t, "{\"k\":\"a\",\"n\":1}\n{\"k\":\"a\",\"n\":2}\n{\"k\":\"a\",\"n\":3}\n", "send", "--url", p.url, "--batch", "in")
	require.Equal(t, 0, code, out)
	require.Len(t, s.Next(t, nil).Lines, 3)
	p.logs.match(t, `outcome"?[=:]"?permanent`)
	require.Equal(t, 0, p.stop())

	p = serve(t, config, data)
	code, out = sluice(t, "", "dlq", "list", "--url", p.url, "--json")
	require.Equal(t, 0, code, out)
	require.Equal(t, 3, strings.Count(out, `"status":400`)+strings.Count(out, `"status": 400`), out)
	s.Answers(nil)
	code, out = sluice(t, "", "dlq", "replay", "--url", p.url)
	require.Equal(t, 0, code, out)
	d := s.Next(t, nil)
	require.Len(t, d.Lines, 3)
	require.Equal(t, "replay", d.Reason())
	code, out = sluice(t, "", "dlq", "list", "--url", p.url)
	require.Equal(t, 0, code)
	require.NotContains(t, out, "400")
	require.Equal(t, 0, p.stop())
}

func TestE2EBadConfiguration(t *testing.T) {
	t.Parallel()
	config := filepath.Join(t.TempDir(), "sluice.yaml")
	require.NoError(t, os.WriteFile(config, []byte("sources:\n  in: {type: htp}\nbuffers:\n  b: {from: [nope], to: out}\n"), 0o600))
	code, out := sluice(t, "", "serve", "--config", config, "--data", t.TempDir(), "--listen", "127.0.0.1:0")
	require.Equal(t, 1, code)
	require.Contains(t, out, "sluice.yaml:2:")
	require.Contains(t, out, "sluice.yaml:4:")
}
