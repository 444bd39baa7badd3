package wire

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

// What is wrong with a program is told with its place, beside all else.
func TestProgramsThatCannotBeCompiled(t *testing.T) {
	t.Parallel()
	path := configure(t, "", `type: stdout, timeout: 1h, transform: ".a["`)
	replaceInFile(t, path, "to: out,", `to: out, filter: ".k ==",`)
	err := Serve(t.Context(), options(t, path))
	require.Equal(t, core.Invalid, core.CodeOf(err))
	require.ErrorContains(t, err, "sluice.yaml:6:")
	require.ErrorContains(t, err, "destinations.out.timeout: ")
	require.ErrorContains(t, err, `sluice.yaml:6:47: destinations.out.transform: is not a jq program: 1:4: `)
	require.ErrorContains(t, err, `sluice.yaml:8:36: buffers.b.filter: is not a jq program: `)
}

// Programs run, and what is dropped is said.
func TestPrograms(t *testing.T) {
	inBubble(t, "maxItems: 1", func(h *house) {
		replaceInFile(h.t, h.o.Config, "to: out,", `to: out, filter: ".k != \"no\"", transform: "{k: (.k + \"!\")}",`)
		h.gate.let(10)
		s := h.start()
		s.accept("a")
		status, body := s.call(http.MethodPost, "/v1/sources/in", event("no"))
		require.Equal(h.t, http.StatusAccepted, status)
		require.Contains(h.t, body, `"accepted":0`)
		require.Contains(h.t, body, `"filtered":1`)
		sleep(time.Second)
		require.Equal(h.t, []string{event("a!")}, h.gate.all())
		s.end()
	})
}

// A drain leaves what is held until its time has come, and says so; the state
// shows it, and the next process delivers it at its time.
func TestHeldEvents(t *testing.T) {
	inBubble(t, patient+"}, deliverAfter: 10m, shards: 4, overflow: {maxBytes: 1MiB", func(h *house) {
		h.o.Drain = true
		s := h.start()
		s.accept("a", "b")
		sleep(5 * time.Minute)
		_, body := s.call(http.MethodGet, "/v1/buffers", "")
		require.Contains(h.t, body, `"pendingItems":0,`)
		require.Contains(h.t, body, `"delayedItems":2,"nextDueAt":"`)
		require.NotContains(h.t, body, "~held")
		_, body = s.call(http.MethodGet, "/metrics", "")
		require.Contains(h.t, body, `sluice_delayed_items{buffer="b"} 2`)
		<-s.stopping()
		s.log.wait(h.t, 0, `msg="left for the next start" buffer=b items=2 groups=1 why="events that are held until their time has come stay"`)
		require.Empty(h.t, h.gate.begun)

		begin := time.Now()
		h.o.Drain = false
		replaceInFile(h.t, h.o.Config, patient, "maxItems: 1")
		s = h.start()
		h.gate.let(10)
		<-h.gate.begun
		require.InDelta(h.t, (5 * time.Minute).Seconds(), time.Since(begin).Seconds(), 1)
		sleep(time.Minute)
		require.Equal(h.t, []string{event("a"), event("b")}, h.gate.all())
		s.end()
	})
}

// A source that waits for the outcome answers with it, or that it is not known
// when it has waited long enough, or the process stops.
func TestAckDelivered(t *testing.T) {
	inBubble(t, "maxItems: 1", func(h *house) {
		replaceInFile(h.t, h.o.Config, "in: {type: http}", "in: {type: http, ack: delivered, respondTimeout: 20s}")
		s := h.start()
		h.gate.let(1)
		status, body := s.call(http.MethodPost, "/v1/sources/in", event("a"))
		require.Equal(h.t, http.StatusOK, status)
		require.Contains(h.t, body, `"status":"delivered"`)

		begin := time.Now()
		status, body = s.call(http.MethodPost, "/v1/sources/in", event("b"))
		require.Equal(h.t, http.StatusAccepted, status)
		require.Contains(h.t, body, `"status":"pending"`)
		require.InDelta(h.t, 20, time.Since(begin).Seconds(), 0.1)
		h.gate.let(1)
		sleep(time.Second)

		u := s.upload()
		u.finish("c")
		sleep(5 * time.Second)
		require.Empty(h.t, u.status)
		took := s.stopping()
		require.Equal(h.t, http.StatusAccepted, <-u.status)
		h.gate.let(1)
		require.Less(h.t, <-took, 5*time.Second)
	})
}

// A breaker stays as it is when the configuration is read again.
func TestABreakerOutlivesAReload(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t)
	path := configure(t, "", e.destination(", breaker: {failures: 1, cooldown: 1h}"))
	s := launch(t, ServeOptions{Config: path, Data: t.TempDir(), Grace: patience, Stdout: io.Discard}, nil)
	e.answers <- http.StatusServiceUnavailable
	s.accept("a")
	s.log.wait(t, 0, "msg=breaker destination=out state=open")
	for range 2 {
		_, body := s.call(http.MethodGet, "/v1/buffers/b", "")
		require.Contains(t, body, `"breaker":{"state":"open","until":"`)
		s.reloads("configuration reloaded")
	}
	s.end()
}

// What becomes a dead letter is in the log, of a batch once, and in the state.
func TestDeadLettersAreLogged(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t)
	path := configure(t, "", e.destination(""))
	replaceInFile(t, path, "maxItems: 1}", "maxItems: 2}, deliverAt: '{{ .json.at }}'")
	s := launch(t, ServeOptions{Config: path, Data: t.TempDir(), Grace: patience, Stdout: io.Discard}, nil)
	status, _ := s.call(http.MethodPost, "/v1/sources/in", `{"at":"hidden"}`)
	require.Equal(t, http.StatusAccepted, status)
	s.log.wait(t, 0, `level=ERROR msg="dead letters" buffer=b group="" batch=`)
	s.log.wait(t, 0, "items=1 reason=permanent attempts=0 status=0 letter=")

	e.answers <- http.StatusServiceUnavailable
	s.accept("a", "a")
	s.log.wait(t, 0, "items=2 reason=exhausted attempts=1 status=503 letter=")
	_, body := s.call(http.MethodGet, "/v1/buffers/b", "")
	require.Contains(t, body, `"deadLetters":2`)
	s.end()
	require.NotContains(t, s.log.all(), "hidden")
}
