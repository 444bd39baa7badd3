package main_test

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/functions/internal/scenario"
)

// The scenarios that Sluice passes wherever it runs, on the binary.
func TestE2EScenarios(t *testing.T) {
	t.Parallel()
	scenario.Run(t, "bin/sluice", startMachine)
}

// machine is one process on one folder, behind a front that outlives it.
type machine struct {
	t            *testing.T
	config, data string
	front        *httptest.Server
	client       *http.Client

	mu sync.Mutex // while a process is exchanged for the next
	p  *process

	steps struct {
		sync.Mutex
		passed map[string]bool
		armed  chan string // nil: no death is called for
	}
}

func startMachine(t *testing.T, s scenario.Setup) scenario.System {
	config := filepath.Join(t.TempDir(), "sluice.yaml")
	require.NoError(t, os.WriteFile(config, []byte(s.Config), 0o600))
	transport := &http.Transport{MaxIdleConnsPerHost: 16}
	m := &machine{t: t, config: config, data: t.TempDir(), client: &http.Client{Transport: transport}}
	m.steps.passed = make(map[string]bool)
	var err error
	m.p, err = launch(t, m.config, m.data)
	require.NoError(t, err)
	m.front = httptest.NewServer(http.HandlerFunc(m.forward))
	s.Sink.Tap(func(at scenario.Stage) { m.step("a batch is " + string(at)) })
	t.Cleanup(func() {
		m.front.Close()
		s.Sink.Tap(nil)
		m.mu.Lock()
		defer m.mu.Unlock()
		m.p.kill()
		transport.CloseIdleConnections()
	})
	return m
}

func (m *machine) URL() string { return m.front.URL }

// forward passes a request on to the process there is.
func (m *machine) forward(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	m.mu.Lock()
	url := m.p.url
	m.mu.Unlock()
	ctx := httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{
		WroteRequest: func(httptrace.WroteRequestInfo) { m.step("a request is sent") },
	})
	req, err := http.NewRequestWithContext(ctx, r.Method, url+r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	req.Header = r.Header.Clone()
	resp, err := m.client.Do(req)
	if err != nil {
		panic(http.ErrAbortHandler) // the process has died
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	m.step("a request is done")
	maps.Copy(w.Header(), resp.Header)
	w.WriteHeader(resp.StatusCode)
	_, _ = w.Write(answer)
}

// step kills the process if a death is called for and there was none here yet.
func (m *machine) step(name string) {
	m.steps.Lock()
	defer m.steps.Unlock()
	if m.steps.armed == nil || m.steps.passed[name] {
		return
	}
	m.steps.passed[name] = true
	m.restart(func(p *process) { p.kill() })
	m.steps.armed <- name
	m.steps.armed = nil
}

// restart ends the process and starts the next on its folder.
func (m *machine) restart(end func(*process)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	end(m.p)
	p, err := launch(m.t, m.config, m.data)
	if err != nil {
		m.t.Errorf("the next process: %v", err)
		return
	}
	m.p = p
}

func (m *machine) Crash() (died <-chan string, stop func()) {
	m.steps.Lock()
	defer m.steps.Unlock()
	armed := make(chan string, 1)
	m.steps.armed = armed
	return armed, func() {
		m.steps.Lock()
		defer m.steps.Unlock()
		m.steps.armed = nil
	}
}

// Sweep leaves it to the process, which sweeps at its start and every minute.
func (*machine) Sweep(testing.TB) {}

// Lose kills the process, whose timers and queue are in its memory alone.
func (m *machine) Lose(_ testing.TB, _ int, send func()) {
	send()
	m.restart(func(p *process) { p.kill() })
}

// Double has the process take its store over from itself time and again, which
// arms every deadline anew.
func (m *machine) Double(t testing.TB) (stop func()) {
	end := make(chan struct{})
	var reloads sync.WaitGroup
	reloads.Go(func() {
		for {
			select {
			case <-end:
				return
			default:
			}
			m.mu.Lock()
			p := m.p
			m.mu.Unlock()
			if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
				t.Errorf("reload: %v", err)
				return
			}
			if err := p.reloaded(); err != nil {
				t.Error(err)
				return
			}
		}
	})
	return func() {
		close(end)
		reloads.Wait()
	}
}

func (m *machine) State() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.p.state()
}
