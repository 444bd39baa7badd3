package wire

import (
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// polls is how much later than its requests have ended the server may see that
// they have: it looks every millisecond at first. What is sent then begins later.
const polls = float64(10 * time.Millisecond)

const patient = "idleTimeoutMs: 300000, maxWaitFromFirstMs: 600000"

// A drain ships what waits, in whatever buffer it is, though it takes longer
// than the grace.
func TestDrain(t *testing.T) {
	inBubble(t, patient, func(h *house) {
		h.o.Drain = true
		s := h.start()
		s.accept("a", "b", "c")
		took := s.stopping()
		for range 3 {
			<-h.gate.begun
			sleep(time.Minute)
			h.gate.let(1)
		}
		require.InDelta(h.t, 3*time.Minute, <-took, polls)
		require.Equal(h.t, []string{event("a"), event("b"), event("c")}, h.gate.all())
		s.log.wait(h.t, 0, `msg=draining itemsLeft=3`)
		s.log.wait(h.t, 0, `msg=draining itemsLeft=1`)
		s.log.wait(h.t, 0, `msg="drained; nothing is left"`)
	})
}

// Without it nothing is flushed.
func TestStopDoesNotDrain(t *testing.T) {
	inBubble(t, patient, func(h *house) {
		s := h.start()
		s.accept("a")
		require.Less(h.t, <-s.stopping(), time.Second)
		require.Empty(h.t, h.gate.begun)
	})
}

// What a request under way brings is drained, too, and so is what waits for the
// sends under way, which end first.
func TestDrainBehindWhatIsUnderWay(t *testing.T) {
	inBubble(t, "maxItems: 1", func(h *house) {
		h.o.Drain = true
		s := h.start()
		s.accept("a", "a", "b")
		<-h.gate.begun
		u := s.upload()
		took := s.stopping()
		sleep(2 * time.Second)
		u.finish("late")
		require.Equal(h.t, http.StatusAccepted, <-u.status)
		sleep(20 * time.Second)
		require.Empty(h.t, took, "no grace ends the send under way")
		h.gate.let(100)
		require.Less(h.t, <-took, 30*time.Second)
		require.Equal(h.t, []string{event("a"), event("a"), event("b"), event("late")}, h.gate.all())
	})
}

// A group may be larger than one flush of it.
func TestDrainOfManyBatches(t *testing.T) {
	inBubble(t, "maxItems: 1}, flush: {every: 24h", func(h *house) {
		const many = 250
		h.o.Drain = true
		h.gate.let(many)
		s := h.start()
		synctest.Wait()
		s.accept(slices.Repeat([]string{"a"}, many)...)
		<-s.stopping()
		require.Len(h.t, h.gate.all(), many)
		s.log.wait(h.t, 0, "nothing is left")
	})
}

// A time window that is open stays for the next process; one inside its grace
// leaves.
func TestDrainOfWindows(t *testing.T) {
	inBubble(t, "maxItems: 50}, window: {every: 1m, grace: 30s", func(h *house) {
		h.o.Drain = true
		h.gate.let(100)
		s := h.start()
		s.accept("a")
		sleep(80 * time.Second)
		s.accept("b", "c")
		<-s.stopping()
		require.Equal(h.t, []string{event("a")}, h.gate.all())
		s.log.wait(h.t, 0, `msg="left for the next start" buffer=b items=2 groups=1 why="open time windows stay"`)
		h.next()
		require.Equal(h.t, []string{event("a"), event("b") + "\n" + event("c")}, h.gate.all())
	})
}

// A drain that is cut short lets the sends under way end, for as long as the
// grace, and is no failure. What is left is there for the next process.
func TestDrainCutShort(t *testing.T) {
	for name, hangs := range map[string]bool{"in time": false, "while a send hangs": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, patient, func(h *house) {
				hurry := make(chan struct{})
				h.o.Drain, h.o.Hurry = true, hurry
				s := h.start()
				s.accept("a", "b", "c")
				took := s.stopping()
				<-h.gate.begun
				sleep(time.Minute)
				close(hurry)
				sleep(time.Second)
				require.Empty(h.t, took)
				if !hangs {
					h.gate.let(1)
					require.InDelta(h.t, time.Minute+time.Second, <-took, polls)
					s.log.wait(h.t, 0, `msg="left for the next start" buffer=b items=2`)
				} else {
					require.InDelta(h.t, time.Minute+grace, <-took, polls)
					s.log.wait(h.t, 0, `msg="left for the next start" buffer=b items=3`)
				}
				h.next()
				all := []string{event("a"), event("b"), event("c")}
				require.Equal(h.t, all, slices.Compact(h.gate.all()))
			})
		})
	}
}

// Or ends the requests under way, before anything is flushed.
func TestDrainCutShortAtOnce(t *testing.T) {
	inBubble(t, patient, func(h *house) {
		hurry := make(chan struct{})
		h.o.Drain, h.o.Hurry = true, hurry
		s := h.start()
		s.accept("a")
		u := s.upload()
		took := s.stopping()
		close(hurry)
		require.Less(h.t, <-took, time.Second)
		u.finish("too late")
		require.Zero(h.t, <-u.status)
		require.Empty(h.t, h.gate.begun)
	})
}

// A drain that cannot deliver ends all the same, and says so.
func TestDrainThatFails(t *testing.T) {
	t.Parallel()
	e := newEndpoint(t)
	path := configure(t, "", e.destination(""))
	replaceInFile(t, path, "maxItems: 1", patient)
	s := launch(t, ServeOptions{Config: path, Data: t.TempDir(), Grace: patience, Drain: true}, nil)
	s.accept("a")
	e.answers <- http.StatusInternalServerError
	s.stop()
	require.ErrorContains(t, within(t, s.ended, "the end"), "the flush failed for b")
	s.client.CloseIdleConnections()
	s.log.wait(t, 0, "level=WARN msg=flush buffer=b rows=1")
}
