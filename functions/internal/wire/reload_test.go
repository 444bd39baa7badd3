package wire

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/infra/config"
	"sluice/infra/embed"
)

// endpoint is a destination on loopback. Each request waits for its answer.
type endpoint struct {
	*httptest.Server
	got     chan string
	answers chan int
}

func newEndpoint(t *testing.T) *endpoint {
	t.Helper()
	e := &endpoint{got: make(chan string, 100), answers: make(chan int, 100)}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the sender has gone
		}
		e.got <- strings.TrimSpace(string(body))
		select {
		case status := <-e.answers:
			w.WriteHeader(status)
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(e.Close)
	return e
}

func (e *endpoint) answer(n int) {
	for range n {
		e.answers <- http.StatusOK
	}
}

// destination is how a configuration has it.
func (e *endpoint) destination(more string) string {
	return "type: http, url: '" + e.URL + "', allowPrivate: true, retry: {maxAttempts: 1}" + more
}

func TestReloadChangesTheDestination(t *testing.T) {
	t.Parallel()
	before, after := newEndpoint(t), newEndpoint(t)
	path := configure(t, "", before.destination(""))
	s := launch(t, ServeOptions{Config: path, Data: t.TempDir(), Grace: patience}, nil)
	s.accept("a", "a") // the second waits for the first
	require.Equal(t, event("a"), within(t, before.got, "the first event"))
	configure(t, path, after.destination(""))
	s.reloads("configuration reloaded")
	s.accept("b")
	require.Equal(t, event("b"), within(t, after.got, "an event since the reload"))
	after.answer(2)
	before.answer(1)
	require.Equal(t, event("a"), within(t, after.got, "the event that waited behind the send under way"))
	s.end()
	require.Empty(t, before.got)
	require.Empty(t, after.got)
}

// A limit that is raised counts at once, though every sender of the old one is
// busy and nothing more comes in.
func TestReloadRaisesTheConcurrency(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t)
	const long = "maxItems: 1, idleTimeoutMs: 300000, maxWaitFromFirstMs: 600000"
	path := configure(t, "", e.destination(", concurrency: 1"))
	replaceInFile(t, path, "maxItems: 1", long)
	s := launch(t, ServeOptions{Config: path, Data: t.TempDir(), Grace: patience}, nil)
	s.accept("a", "b", "c", "d")
	within(t, e.got, "the first event")
	configure(t, path, e.destination(", concurrency: 3"))
	replaceInFile(t, path, "maxItems: 1", long)
	s.reloads("configuration reloaded")
	within(t, e.got, "a second one at a time")
	within(t, e.got, "a third one at a time")
	require.Empty(t, e.got)
	e.answer(4)
	within(t, e.got, "the fourth event")
	s.end()
}

// A configuration that cannot be used is reported, and changes nothing.
func TestReloadThatFails(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t)
	e.answer(100)
	path := configure(t, "", e.destination(""))
	good, err := os.ReadFile(path)
	require.NoError(t, err)
	s := launch(t, ServeOptions{Config: path, Data: t.TempDir(), Grace: patience}, nil)
	for _, tc := range []struct{ name, from, to, says string }{
		{"no YAML", "sources:", "sources: ][", "sluice.yaml:3"},
		{"an unknown field", "maxItems", "maxItmes", "buffers.b.batch.maxItmes"},
		{"a name that leads nowhere", "to: out", "to: nowhere", "buffers.b.to"},
		{"a secret that is not set", "retry:", "secrets: ['env:SLUICE_TEST_NOT_SET'], retry:", "SLUICE_TEST_NOT_SET"},
		{"a token that is not set", "sources:", "control: {tokens: ['env:SLUICE_TEST_NOT_SET']}\nsources:", "SLUICE_TEST_NOT_SET"},
		{"a folder that is missing", "destinations:", "destinations:\n  file: {type: file, path: /nowhere/at/all.ndjson}", "/nowhere/at"},
		{"no file", "", "", "sluice.yaml"},
	} {
		if tc.from == "" {
			require.NoError(t, os.Remove(path))
		} else {
			require.NoError(t, os.WriteFile(path, good, 0o600))
			replaceInFile(t, path, tc.from, tc.to)
		}
		from := s.log.len()
		s.reloads("the configuration was not reloaded; the present one stays")
		s.log.wait(t, from, tc.says)
		s.accept(tc.name)
		require.Equal(t, event(tc.name), within(t, e.got, tc.name))
	}
	s.end()
}

// What the store is opened with stays until the next start, and it says so.
func TestReloadOfWhatTakesEffectLater(t *testing.T) {
	t.Parallel()
	path := configure(t, "", "type: stdout")
	s := launch(t, ServeOptions{Config: path, Data: t.TempDir(), Grace: patience, Stdout: io.Discard}, nil)
	replaceInFile(t, path, "sync: false", "sync: true")
	s.reloads("store.sync takes effect at the next start")
	s.end()
}

// A group that is open follows the new settings, without another event.
func TestReloadArmsAnew(t *testing.T) {
	inBubble(t, "idleTimeoutMs: 300000, maxWaitFromFirstMs: 600000", func(h *house) {
		begin := time.Now()
		s := h.start()
		h.gate.let(1)
		s.accept("a")
		sleep(time.Second)
		replaceInFile(h.t, h.o.Config, "idleTimeoutMs: 300000", "idleTimeoutMs: 3000")
		s.reloads("configuration reloaded")
		<-h.gate.begun
		require.Equal(h.t, 3*time.Second, time.Since(begin))
		s.end()
	})
}

// A request that began before a reload ends as it began.
func TestReloadDuringARequest(t *testing.T) {
	inBubble(t, "maxItems: 1", func(h *house) {
		s := h.start()
		h.gate.let(1)
		u := s.upload()
		s.reloads("configuration reloaded")
		u.finish("a")
		require.Equal(h.t, http.StatusAccepted, <-u.status)
		synctest.Wait()
		require.Equal(h.t, []string{event("a")}, h.gate.all())
		s.end()
	})
}

// held is a sender whose sends begin, and then wait.
type held struct {
	core.Sender
	begun chan struct{}
	pass  chan struct{}
}

// Send sends the batch when it may.
func (h *held) Send(ctx context.Context, b *core.Batch) core.Response {
	close(h.begun)
	<-h.pass
	return h.Sender.Send(ctx, b)
}

// newTestNode is a node at work, the outcome of each of its attempts, and what
// it logs.
func newTestNode(t *testing.T, path string, out io.Writer, change ...func(*parts)) (*node, chan core.Outcome, *logs) {
	t.Helper()
	store, err := embed.Open(t.TempDir(), embed.Options{})
	require.NoError(t, err)
	n, attempts, log := newNodeOn(t, store, out)
	for _, f := range change {
		f(&n.parts)
	}
	require.NoError(t, n.start(read(t, path)))
	t.Cleanup(func() {
		n.stop(context.Background())
		n.close(context.Background())
		require.NoError(t, store.Close())
	})
	return n, attempts, log
}

func read(t *testing.T, path string) *core.Config {
	t.Helper()
	c, err := config.Load(path)
	require.NoError(t, err)
	return c
}

// take has a node take an event in.
func take(t *testing.T, n *node, key string) int {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1/v1/sources/in", strings.NewReader(event(key)))
	r.RemoteAddr = "127.0.0.1:1"
	w := httptest.NewRecorder()
	n.ServeHTTP(w, r)
	return w.Code
}

// A send that is under way when the configuration is replaced ends at its old
// destination, which stays open for it, and is closed then. Nothing is lost,
// nothing becomes a dead letter, and what follows goes to the new one.
func TestReloadDuringASend(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]func(t *testing.T) (destination string, got func() string){
		"file": func(t *testing.T) (string, func() string) {
			path := filepath.Join(t.TempDir(), "out.ndjson")
			return "type: file, path: '" + path + "', retry: {maxAttempts: 1}", func() string {
				text, err := os.ReadFile(path)
				require.NoError(t, err)
				return string(text)
			}
		},
		"http": func(t *testing.T) (string, func() string) {
			e := newEndpoint(t)
			e.answer(2)
			return e.destination(""), func() string { return within(t, e.got, "a batch") + "\n" }
		},
		"stdout": func(*testing.T) (string, func() string) { return "type: stdout, retry: {maxAttempts: 1}", nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := newGate()
			out.let(100)
			before, beforeGot := kind(t)
			after, afterGot := kind(t)
			path := configure(t, "", before)
			n, attempts, _ := newTestNode(t, path, out)
			old := n.now
			h := &held{old.senders.ByName["out"], make(chan struct{}), make(chan struct{})}
			old.senders.ByName["out"] = h
			require.Equal(t, http.StatusAccepted, take(t, n, "old"))
			within(t, h.begun, "the send")

			configure(t, path, after)
			require.NoError(t, n.reconfigure(read(t, path)))
			require.Equal(t, http.StatusAccepted, take(t, n, "new"))
			require.Equal(t, core.Delivered, within(t, attempts, "the send since"))
			close(h.pass)
			require.Equal(t, core.Delivered, within(t, attempts, "the send that was under way"))

			n.retiring.Wait()
			letters, err := n.parts.letters.Count(t.Context(), core.DeadLetterFilter{})
			require.NoError(t, err)
			require.Zero(t, letters)
			if beforeGot == nil {
				require.Equal(t, []string{event("new"), event("old")}, out.all())
			} else {
				require.Equal(t, event("old")+"\n", beforeGot())
				require.Equal(t, event("new")+"\n", afterGot())
			}
			if name != "http" { // whose sender closes no more than idle connections
				r := h.Sender.Send(t.Context(), &core.Batch{})
				require.ErrorContains(t, r.Err, "closed")
			}
		})
	}
}

// Deadlines that cannot be armed anew by a new configuration are reported. It
// is in use all the same: the sweep makes up for them.
func TestReloadThatCannotArm(t *testing.T) {
	t.Parallel()
	path := configure(t, "", "type: stdout")
	n, _, log := newTestNode(t, path, io.Discard)
	old := n.now
	require.NoError(t, n.store.Close())
	require.NoError(t, n.reconfigure(read(t, path)))
	require.NotSame(t, old, n.now)
	log.wait(t, 0, "arm deadlines by the new configuration")
}
