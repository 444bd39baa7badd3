package wire

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// slowly gives the destination a rate limit of one a minute.
func slowly(h *house) {
	replaceInFile(h.t, h.o.Config, "concurrency: 1", "concurrency: 4, rateLimit: {requests: 1, per: 1m}")
	h.gate.let(100)
	h.o.Drain = true
}

// A drain waits for the tokens of a rate limit: those of what was being delivered
// when it began, too.
func TestDrainUnderARateLimit(t *testing.T) {
	for name, batch := range map[string]string{"of what waits": patient, "of what is on its way": "maxItems: 1"} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, batch, func(h *house) {
				slowly(h)
				s := h.start()
				s.accept("a", "b", "c", "d", "e", "a")
				begin := time.Now()
				<-s.stopping()
				require.GreaterOrEqual(h.t, time.Since(begin), 4*time.Minute)
				require.Less(h.t, time.Since(begin), 6*time.Minute)
				require.Contains(h.t, h.gate.all(), event("e"))
				s.log.wait(h.t, 0, `msg="drained; nothing is left"`)
			})
		})
	}
}

// It says why when it is cut short meanwhile.
func TestDrainCutShortUnderARateLimit(t *testing.T) {
	inBubble(t, patient, func(h *house) {
		slowly(h)
		hurry := make(chan struct{})
		h.o.Hurry = hurry
		s := h.start()
		s.accept("a", "b", "c")
		took := s.stopping()
		sleep(90 * time.Second)
		close(hurry)
		require.InDelta(h.t, 90*time.Second, <-took, polls)
		s.log.wait(h.t, 0, "as the rate limit of destination out lets no more through")
		s.log.wait(h.t, 0, `msg="left for the next start" buffer=b items=1 groups=1 why="it was not delivered"`)
		h.o.Drain = false
		h.next()
		require.Equal(h.t, []string{event("a"), event("b"), event("c")}, h.gate.all())
	})
}

// What was held until a while after the drain has begun leaves with it.
func TestDrainOfWhatIsHeldNoMore(t *testing.T) {
	inBubble(t, patient+"}, deliverAfter: 10s, overflow: {maxBytes: 1MiB", func(h *house) {
		h.o.Drain = true
		h.gate.let(10)
		s := h.start()
		s.accept("a")
		sleep(5 * time.Second)
		u := s.upload()
		took := s.stopping()
		sleep(8 * time.Second)
		u.finish("held")
		require.Equal(h.t, http.StatusAccepted, <-u.status)
		<-took
		require.Equal(h.t, []string{event("a")}, h.gate.all())
		s.log.wait(h.t, 0, `msg="left for the next start" buffer=b items=1 groups=1 why="events that are held until their time has come stay"`)
	})
}

// What comes due only after the last flush stays for the next start, and is no
// failure, though copies that hang keep the drain waiting.
func TestDrainWhileWhatStaysComesDue(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ buffer, why string }{
		"held":             {"deliverAfter: 3s", "events that are held until their time has come stay"},
		"held in order":    {"ordering: {}, deliverAfter: 3s", "events that are held until their time has come stay"},
		"in a time window": {"window: {every: 3s, grace: 0s}", "open time windows stay"},
	} {
		t.Run(name, func(t *testing.T) {
			withShadow(t, "maxItems: 50", func(h *house, delivered func() string) {
				replaceInFile(h.t, h.o.Config, "to: file", "to: file, "+tt.buffer)
				h.o.Drain = true
				s := h.start()
				s.accept("a")
				sleep(time.Second)
				took := s.stopping()
				h.closes(copiesGrace)
				<-took
				s.log.wait(h.t, 0, `msg="left for the next start" buffer=b items=1 groups=1 why="`+tt.why+`"`)
				h.o.Drain = false
				h.gate.let(100)
				h.next()
				require.Equal(h.t, event("a"), delivered())
			})
		})
	}
}

// What was not delivered is not called held, though its buffer holds others.
func TestDrainThatFailsBesideWhatIsHeld(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t)
	path := configure(t, "", e.destination(""))
	replaceInFile(t, path, "retry: {maxAttempts: 1}", "retry: {maxAttempts: 5, initial: 10m}")
	replaceInFile(t, path, "batch: {maxItems: 1}", `ordering: {}, deliverAt: "{{ .json.at }}", batch: {`+patient+"}")
	s := launch(t, ServeOptions{Config: path, Data: t.TempDir(), Grace: patience, Drain: true}, nil)
	s.accept("a")
	require.Equal(t, http.StatusAccepted, s.post(`{"k":"b","at":"2999-01-01T00:00:00Z"}`))
	e.answers <- http.StatusInternalServerError
	s.stop()
	require.ErrorContains(t, within(t, s.ended, "the end"), "the flush failed for b")
	s.client.CloseIdleConnections()
	s.log.wait(t, 0, `buffer=b items=2 groups=2 why="1 of them were not delivered; events that are held until their time has come stay"`)
}
