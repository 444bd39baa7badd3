package main_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
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

// patience bounds every wait for something that must happen.
const patience = 30 * time.Second

// process is a running `sluice serve`.
type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	url  string
	logs *logs
	once sync.Once
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

// match waits until the text matches, and returns the groups.
func (l *logs) match(t *testing.T, pattern string) []string {
	t.Helper()
	re := regexp.MustCompile(pattern)
	end := time.After(patience)
	for {
		l.mu.Lock()
		m, added := re.FindStringSubmatch(l.text.String()), l.added
		l.mu.Unlock()
		if m != nil {
			return m
		}
		select {
		case <-added:
		case <-end:
			require.FailNow(t, "no line matches", "%s in:\n%s", pattern, l)
		}
	}
}

// serve starts the binary on a folder and waits until it is ready.
func serve(t *testing.T, config, data string) *process {
	t.Helper()
	p := &process{t: t, logs: &logs{added: make(chan struct{})}}
	p.cmd = exec.Command(binary, "serve", "--config", config, "--data", data, "--listen", "127.0.0.1:0", "--grace", "5s")
	p.cmd.Stdout, p.cmd.Stderr = p.logs, p.logs
	require.NoError(t, p.cmd.Start())
	t.Cleanup(func() { p.kill() })
	p.url = p.logs.match(t, `listening on (http://127\.0\.0\.1:\d+)`)[1]
	return p
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

// post sends a body to a path, and returns the status and the answer.
func (p *process) post(path, body string) (int, string) {
	r, err := http.Post(p.url+path, "application/json", strings.NewReader(body))
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = r.Body.Close() }()
	answer, err := io.ReadAll(r.Body)
	require.NoError(p.t, err)
	return r.StatusCode, string(answer)
}

// accept sends an event, which must be accepted.
func (p *process) accept(body string) {
	p.t.Helper()
	status, answer := p.post("/v1/sources/in", body)
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

// delivery is one request that a sink has received.
type delivery struct {
	at     time.Time
	header http.Header
	lines  []string
}

// sink is an endpoint that keeps what it receives.
type sink struct {
	*httptest.Server
	got chan delivery

	mu     sync.Mutex
	answer func(delivery) int // status; nil: 200
}

func newSink(t *testing.T, answer func(delivery) int) *sink {
	s := &sink{got: make(chan delivery, 100_000), answer: answer}
	s.Server = httptest.NewServer(http.HandlerFunc(s.receive))
	t.Cleanup(func() {
		s.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	return s
}

func (s *sink) receive(w http.ResponseWriter, r *http.Request) {
	d := delivery{at: time.Now(), header: r.Header}
	lines := bufio.NewScanner(r.Body)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		d.lines = append(d.lines, lines.Text())
	}
	if lines.Err() != nil {
		return // the sender was killed
	}
	s.mu.Lock()
	answer := s.answer
	s.mu.Unlock()
	s.got <- d
	if answer != nil {
		w.WriteHeader(answer(d))
	}
}

func (s *sink) answers(f func(delivery) int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = f
}

// next waits for a delivery.
func (s *sink) next(t *testing.T) delivery {
	t.Helper()
	return s.nextOr(t, func() string { return "" })
}

// nextOr waits for a delivery, or fails with what explain says.
func (s *sink) nextOr(t *testing.T, explain func() string) delivery {
	t.Helper()
	select {
	case d := <-s.got:
		return d
	case <-time.After(patience):
		require.FailNow(t, "nothing was delivered", explain())
		return delivery{}
	}
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
