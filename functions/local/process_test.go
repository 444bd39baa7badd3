package main_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"sluice/functions/internal/scenario"
)

// binary is bin/sluice, built once for all tests.
var binary string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "sluice-e2e-")
	if err != nil {
		panic(err)
	}
	binary = filepath.Join(dir, "sluice")
	build := exec.Command("go", "build", "-o", binary, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		panic(fmt.Sprintf("%v\n%s", err, out))
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(dir)
		os.Exit(code)
	}))
}

// patience bounds every wait for a process.
const patience = 30 * time.Second

// process is a running `sluice serve`.
type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	url  string
	logs *logs
	once sync.Once

	reloads int // seen
}

// logs keeps what a process writes, and lets tests wait for a line.
type logs struct {
	mu    sync.Mutex
	text  bytes.Buffer
	added chan struct{} // closed and replaced at every write
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(p)
	close(l.added)
	l.added = make(chan struct{})
	return len(p), nil
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// find waits until the text matches, and returns the groups.
func (l *logs) find(pattern string) ([]string, error) {
	re := regexp.MustCompile(pattern)
	end := time.After(patience)
	for {
		l.mu.Lock()
		m, added := re.FindStringSubmatch(l.text.String()), l.added
		l.mu.Unlock()
		if m != nil {
			return m, nil
		}
		select {
		case <-added:
		case <-end:
			return nil, fmt.Errorf("no line matches %s in:\n%s", pattern, l)
		}
	}
}

// match is find for what must come.
func (l *logs) match(t *testing.T, pattern string) []string {
	t.Helper()
	m, err := l.find(pattern)
	require.NoError(t, err)
	return m
}

// launch starts the binary on a folder and waits until it is ready.
func launch(t *testing.T, config, data string) (*process, error) {
	p := &process{t: t, logs: &logs{added: make(chan struct{})}}
	p.cmd = exec.Command(binary, "serve", "--config", config, "--data", data, "--listen", "127.0.0.1:0", "--grace", "5s")
	p.cmd.Env = append(os.Environ(), scenario.TokenVariable+"="+scenario.Token)
	p.cmd.Stdout, p.cmd.Stderr = p.logs, p.logs
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	m, err := p.logs.find(`listening on (http://127\.0\.0\.1:\d+)`)
	if err != nil {
		p.kill()
		return nil, err
	}
	p.url = m[1]
	return p, nil
}

// serve starts the binary for the rest of a test.
func serve(t *testing.T, config, data string) *process {
	t.Helper()
	p, err := launch(t, config, data)
	require.NoError(t, err)
	t.Cleanup(p.kill)
	return p
}

// newSink is a destination; the client's idle connections end with it.
func newSink(t *testing.T, answer func(scenario.Delivery) scenario.Answer) *scenario.Sink {
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	return scenario.NewSink(t, answer)
}

// kill ends the process at once, as kill -9 does.
func (p *process) kill() {
	p.once.Do(func() {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	})
}

// stop asks the process to end, and returns its exit code.
func (p *process) stop() int {
	require.NoError(p.t, p.cmd.Process.Signal(syscall.SIGTERM))
	return p.wait()
}

func (p *process) wait() int {
	code := -1
	p.once.Do(func() {
		end := time.AfterFunc(patience, func() { _ = p.cmd.Process.Kill() })
		defer end.Stop()
		_ = p.cmd.Wait()
		code = p.cmd.ProcessState.ExitCode()
	})
	return code
}

// reloaded waits until the process has read its configuration once more than
// it had at the last call.
func (p *process) reloaded() error {
	p.reloads++
	_, err := p.logs.find(fmt.Sprintf(`(?s)(configuration reloaded.*){%d}`, p.reloads))
	return err
}

// post sends a body to a path, and returns the status and the answer.
func (p *process) post(path, body string) (int, string) {
	return p.call(http.MethodPost, path, "application/json", body)
}

// call makes a request, and returns the status and the answer. Status 0: there
// was none.
func (p *process) call(method, path, contentType, body string) (int, string) {
	r, err := http.NewRequest(method, p.url+path, strings.NewReader(body))
	require.NoError(p.t, err)
	r.Header.Set("Content-Type", contentType)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error() // it was killed amid it
	}
	return resp.StatusCode, string(answer)
}

// accept sends an event, which must be accepted.
func (p *process) accept(body string) {
	p.t.Helper()
	status, answer := p.post("/v1/sources/in", body)
	require.Equal(p.t, http.StatusAccepted, status, answer)
}

// acceptAll sends events to a source in one request, which must be accepted.
func (p *process) acceptAll(source string, events []string) {
	p.t.Helper()
	status, answer := p.call(http.MethodPost, "/v1/sources/"+source+"/batch", "application/x-ndjson", strings.Join(events, "\n"))
	require.Equal(p.t, http.StatusAccepted, status, answer)
}

// state is what the process says of its buffers, and the end of its log.
func (p *process) state() string {
	r, err := http.Get(p.url + "/v1/buffers")
	if err != nil {
		return err.Error()
	}
	defer func() { _ = r.Body.Close() }()
	answer, _ := io.ReadAll(r.Body)
	log := p.logs.String()
	return string(answer) + log[max(0, len(log)-4000):]
}

// sluice runs another command, and returns its exit code and output.
func sluice(t *testing.T, stdin string, args ...string) (int, string) {
	t.Helper()
	cmd := exec.Command(binary, args...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		require.ErrorAs(t, err, new(*exec.ExitError))
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// configure writes a configuration of one source, one buffer and one sink.
func configure(t *testing.T, path, url, buffer, destination string) string {
	t.Helper()
	if path == "" {
		path = filepath.Join(t.TempDir(), "sluice.yaml")
	}
	text := fmt.Sprintf(`
sources:
  in: {type: http}
destinations:
  out: {type: http, url: %q, allowPrivate: true%s}
buffers:
  b: {from: [in], to: out, groupBy: "{{ .json.k }}"%s}
`, url, destination, buffer)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}
