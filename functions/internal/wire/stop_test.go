package wire

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

const grace = 10 * time.Second

// gate is a standard output that takes its time: each write begins, and then
// waits to be let through.
type gate struct {
	begun chan string
	pass  chan struct{}

	mu      sync.Mutex
	written []string
}

func newGate() *gate { return &gate{begun: make(chan string, 1000), pass: make(chan struct{}, 1000)} }

// Write writes a batch when it is let through.
func (g *gate) Write(p []byte) (int, error) {
	g.begun <- string(p)
	<-g.pass
	g.mu.Lock()
	defer g.mu.Unlock()
	g.written = append(g.written, strings.TrimSpace(string(p)))
	return len(p), nil
}

func (g *gate) let(n int) {
	for range n {
		g.pass <- struct{}{}
	}
}

func (g *gate) all() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Sorted(slices.Values(g.written))
}

// house is a configuration and a data folder, on which one system runs after
// the other in a bubble, where time passes only when all wait.
type house struct {
	t    *testing.T
	o    ServeOptions
	gate *gate
}

// inBubble runs a test in a bubble. Sends to its one destination are made one
// after the other, and each once, so that none may be wasted.
func inBubble(t *testing.T, batch string, test func(h *house)) {
	t.Helper()
	t.Parallel()
	path, data := configure(t, "", "type: stdout, timeout: 5m, concurrency: 1, retry: {maxAttempts: 1}"), t.TempDir()
	replaceInFile(t, path, "maxItems: 1", batch)
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		test(&house{t: t, gate: g, o: ServeOptions{Config: path, Data: data, Grace: grace, Stdout: g}})
	})
}

func (h *house) start() *running { return launch(h.t, h.o, newPipes()) }

// next runs another system until all that is left has been sent.
func (h *house) next() {
	h.t.Helper()
	s := h.start()
	h.gate.let(100)
	sleep(time.Hour)
	require.Zero(h.t, s.deadLetters())
	s.end()
}

// sleep lets the bubble's time go on.
func sleep(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// upload is a request whose body has not come yet.
type upload struct {
	body   *io.PipeWriter
	status chan int // 0: it was cut off
}

func (s *running) upload() *upload {
	s.t.Helper()
	body, w := io.Pipe()
	u := &upload{body: w, status: make(chan int, 1)}
	r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, s.url+"/v1/sources/in", body)
	require.NoError(s.t, err)
	r.Header.Set("Content-Type", "application/json")
	go func() {
		answer, err := s.client.Do(r)
		_ = body.CloseWithError(errors.New("nobody reads on"))
		if err != nil {
			u.status <- 0
			return
		}
		_ = answer.Body.Close()
		u.status <- answer.StatusCode
	}()
	_, _ = io.WriteString(w, `{"k":`) // fails when nobody listens, which the status then says
	synctest.Wait()                   // it is being read
	return u
}

func (u *upload) finish(key string) {
	_, _ = io.WriteString(u.body, `"`+key+`"}`) // fails if it was cut off, which its status then says
	_ = u.body.Close()
}

// stopping begins to stop a system, and returns how long that took when it has.
func (s *running) stopping() chan time.Duration {
	begin := time.Now()
	took := make(chan time.Duration, 1)
	s.stop()
	go func() {
		if err := <-s.ended; err != nil {
			s.t.Errorf("stopped with %v", err)
		}
		took <- time.Since(begin)
	}()
	synctest.Wait()
	return took
}

func TestStopWithNothingUnderWay(t *testing.T) {
	inBubble(t, "maxItems: 1", func(h *house) {
		s := h.start()
		h.gate.let(1)
		s.accept("a")
		synctest.Wait()
		require.Zero(h.t, <-s.stopping())
	})
}

// A client that never ends its request has the whole grace, as has the send
// under way. No other send begins meanwhile.
func TestStopWithAHangingRequest(t *testing.T) {
	inBubble(t, "maxItems: 1", func(h *house) {
		s := h.start()
		s.accept("sent", "waits")
		<-h.gate.begun
		u := s.upload()
		took := s.stopping()
		sleep(9 * time.Second)
		h.gate.let(1)
		require.Equal(h.t, grace, <-took)
		u.finish("too late")
		require.Zero(h.t, <-u.status)
		require.Equal(h.t, []string{event("sent")}, h.gate.all())
		require.Empty(h.t, h.gate.begun)
		h.next()
		require.Equal(h.t, []string{event("sent"), event("waits")}, h.gate.all())
	})
}

// A send that never ends has the whole grace, as has the request under way. No
// other request is let in meanwhile. The send is made again by the next
// process, as the same attempt, though its destination cannot even be closed.
func TestStopWithAHangingSend(t *testing.T) {
	inBubble(t, "maxItems: 1", func(h *house) {
		s := h.start()
		s.accept("hangs")
		<-h.gate.begun
		u := s.upload()
		took := s.stopping()
		sleep(9 * time.Second)
		late := s.upload()
		require.Zero(h.t, <-late.status, "it does not listen any more")
		u.finish("late")
		require.Equal(h.t, http.StatusAccepted, <-u.status)
		require.Equal(h.t, grace, <-took)
		h.next()
		require.Equal(h.t, []string{event("hangs"), event("hangs"), event("late")}, h.gate.all(), "what hung was written in the end")
	})
}

// What ends within the grace is waited for, and no longer.
func TestStopWaitsForBoth(t *testing.T) {
	inBubble(t, "maxItems: 1", func(h *house) {
		s := h.start()
		s.accept("sent")
		<-h.gate.begun
		u := s.upload()
		took := s.stopping()
		sleep(2 * time.Second)
		h.gate.let(1)
		sleep(2 * time.Second)
		require.Empty(h.t, took)
		u.finish("late")
		require.Equal(h.t, http.StatusAccepted, <-u.status)
		require.Less(h.t, <-took, 5*time.Second)
		require.Equal(h.t, []string{event("sent")}, h.gate.all(), "the late one is for the next process")
		h.next()
		require.Equal(h.t, []string{event("late"), event("sent")}, h.gate.all())
	})
}

// A stop begins no send: neither of what waits for a sender nor of what the
// send under way leaves of its own group.
func TestStopBeginsNoSend(t *testing.T) {
	inBubble(t, "maxItems: 1", func(h *house) {
		s := h.start()
		s.accept("a", "a", "b", "c")
		<-h.gate.begun
		took := s.stopping()
		h.gate.let(100)
		require.Less(h.t, <-took, time.Second, "it waits for nobody, but may look twice for connections to be idle")
		require.Equal(h.t, []string{event("a")}, h.gate.all())
		require.Empty(h.t, h.gate.begun)
		h.next()
		require.Equal(h.t, []string{event("a"), event("a"), event("b"), event("c")}, h.gate.all())
	})
}

// What waits keeps its deadline over a stop, to the millisecond.
func TestStopKeepsDeadlines(t *testing.T) {
	inBubble(t, "idleTimeoutMs: 300000, maxWaitFromFirstMs: 600000", func(h *house) {
		h.gate.let(100)
		begin := time.Now()
		s := h.start()
		s.accept("a", "b")
		sleep(time.Minute)
		require.Zero(h.t, <-s.stopping())
		sleep(time.Minute)
		s = h.start()
		for range 2 {
			<-h.gate.begun
			require.Equal(h.t, 5*time.Minute, time.Since(begin))
		}
		synctest.Wait()
		s.end()
	})
}
