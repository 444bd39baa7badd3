package wire

import (
	"context"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

// A group that has more to send goes on at once, in as many batches as it takes.
func TestGroupGoesOn(t *testing.T) {
	inBubble(t, "maxItems: 1", func(h *house) {
		s := h.start()
		begin := time.Now()
		s.accept("a", "a", "a", "a", "a")
		h.gate.let(5)
		for range 5 {
			<-h.gate.begun
		}
		require.Zero(h.t, time.Since(begin))
		s.end()
	})
}

// lossy is a timer that loses every hint.
type lossy struct{}

// Arm loses a hint.
func (lossy) Arm(context.Context, core.Hint) error { return nil }

// What lost hints leave behind is swept up every minute, as long as the node
// is at work.
func TestSweepRuns(t *testing.T) {
	t.Parallel()
	path := configure(t, "", "type: stdout")
	replaceInFile(t, path, "maxItems: 1", "maxItems: 50")
	synctest.Test(t, func(t *testing.T) {
		n, attempts, _ := newTestNode(t, path, io.Discard, func(p *parts) { p.ports.Timer = lossy{} })
		begin := time.Now()
		for minutes := range 3 {
			require.Equal(t, http.StatusAccepted, take(t, n, "a"))
			require.Equal(t, core.Delivered, <-attempts)
			require.Equal(t, time.Duration(minutes+1)*time.Minute, time.Since(begin))
		}
	})
}

// What is held moves several batches at a time, though it has no destination of
// its own in the configuration; one that was removed has one.
func TestConcurrencyOfWhatIsHeld(t *testing.T) {
	t.Parallel()
	n, _, _ := newTestNode(t, configure(t, "", "type: stdout"), io.Discard)
	require.Equal(t, 4, n.concurrency(core.Holder("b")))
	require.Equal(t, 16, n.concurrency("out"))
	require.Equal(t, 1, n.concurrency("gone"))
}
