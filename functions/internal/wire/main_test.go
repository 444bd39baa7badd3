package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"sluice/infra/config"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what must happen, before it gives up.
const patience = 2 * time.Minute

// within is the next value of a channel.
func within[T any](t *testing.T, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		require.FailNow(t, "it never came", what)
		panic("unreachable")
	}
}

// configure writes a configuration of one source, one destination and one
// buffer, whose batches are of one item. It returns the file's path.
func configure(t *testing.T, path, destination string) string {
	t.Helper()
	if path == "" {
		path = filepath.Join(t.TempDir(), "sluice.yaml")
	}
	text := fmt.Sprintf(`
store: {sync: false}
sources:
  in: {type: http}
destinations:
  out: {%s}
buffers:
  b: {from: [in], to: out, groupBy: "{{ .json.k }}", batch: {maxItems: 1}}
`, destination)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// running is a whole system, and a client of it.
type running struct {
	t      *testing.T
	url    string
	client *http.Client
	log    *logs
	reload chan struct{}
	stop   context.CancelFunc
	ended  chan error
}

// launch runs a system until the test ends, or it is stopped. listen opens
// where it listens, and dial connects to that; both nil: on loopback.
func launch(t *testing.T, o ServeOptions, l *pipes) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s := &running{t: t, log: newLogs(), reload: make(chan struct{}), stop: cancel, ended: make(chan error, 1)}
	ready := make(chan string, 1)
	o.Log, o.Reload, o.Ready = slog.New(slog.NewTextHandler(s.log, nil)), s.reload, func(url string) { ready <- url }
	transport := &http.Transport{}
	s.client = &http.Client{Transport: transport}
	if l == nil {
		o.Listen = "127.0.0.1:0"
		go func() { s.ended <- Serve(ctx, o) }()
	} else {
		transport.DialContext = l.dial
		c, err := config.Load(o.Config)
		require.NoError(t, err)
		go func() { s.ended <- serveOn(ctx, c, l, &o) }()
	}
	select {
	case s.url = <-ready:
	case err := <-s.ended:
		require.NoError(t, err, "it did not start")
	}
	t.Cleanup(func() {
		cancel()
		transport.CloseIdleConnections()
	})
	return s
}

// end stops the system, which must succeed.
func (s *running) end() {
	s.t.Helper()
	s.stop()
	s.client.CloseIdleConnections()
	require.NoError(s.t, within(s.t, s.ended, "the end"))
}

// post sends an event, and returns the answer's status.
func (s *running) post(body string) int {
	s.t.Helper()
	status, _ := s.call(http.MethodPost, "/v1/sources/in", body)
	return status
}

func (s *running) accept(keys ...string) {
	s.t.Helper()
	for _, k := range keys {
		require.Equal(s.t, http.StatusAccepted, s.post(event(k)))
	}
}

func event(key string) string { return fmt.Sprintf(`{"k":%q}`, key) }

func (s *running) call(method, path, body string) (int, string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(context.Background(), method, s.url+path, strings.NewReader(body))
	require.NoError(s.t, err)
	r.Header.Set("Content-Type", "application/json")
	answer, err := s.client.Do(r)
	require.NoError(s.t, err)
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	require.NoError(s.t, err)
	return answer.StatusCode, string(text)
}

// deadLetters is how many there are.
func (s *running) deadLetters() int {
	s.t.Helper()
	status, text := s.call(http.MethodGet, "/v1/deadletters", "")
	require.Equal(s.t, http.StatusOK, status)
	var list struct{ DeadLetters []any }
	require.NoError(s.t, json.Unmarshal([]byte(text), &list))
	return len(list.DeadLetters)
}

// reloads has it read its configuration again, and waits until it says how
// that went.
func (s *running) reloads(says string) {
	s.t.Helper()
	from := s.log.len()
	s.reload <- struct{}{}
	s.log.wait(s.t, from, says)
}

// logs keeps what is logged.
type logs struct {
	mu    sync.Mutex
	text  bytes.Buffer
	added chan struct{} // closed and replaced at every write
}

func newLogs() *logs { return &logs{added: make(chan struct{})} }

// Write adds a line.
func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.added)
	l.added = make(chan struct{})
	return l.text.Write(p)
}

func (l *logs) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Len()
}

// wait waits until what was logged behind a place contains a text.
func (l *logs) wait(t *testing.T, from int, text string) {
	t.Helper()
	for {
		l.mu.Lock()
		all, added := l.text.String()[from:], l.added
		l.mu.Unlock()
		if strings.Contains(all, text) {
			return
		}
		select {
		case <-added:
		case <-time.After(patience):
			require.FailNow(t, "it was never logged", "%s in:\n%s", text, all)
		}
	}
}

// pipes is a listener whose connections are pipes in memory, so that a test's
// bubble knows who waits for whom.
type pipes struct {
	opened chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipes() *pipes { return &pipes{opened: make(chan net.Conn), closed: make(chan struct{})} }

// Accept is the next connection.
func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.opened:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close ends Accept.
func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

// Addr is an address on loopback.
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080} }

func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case p.opened <- pipe{far, p.Addr()}:
		return near, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// pipe is a connection from loopback.
type pipe struct {
	net.Conn
	from net.Addr
}

// RemoteAddr is an address on loopback.
func (p pipe) RemoteAddr() net.Addr { return p.from }

// replaceInFile replaces a text, which must be there, in a file.
func replaceInFile(t *testing.T, path, from, to string) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(text), from)
	require.NoError(t, os.WriteFile(path, []byte(strings.ReplaceAll(string(text), from, to)), 0o600))
}
