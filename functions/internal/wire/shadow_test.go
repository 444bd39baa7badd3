package wire

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// withShadow runs a test on a buffer that goes to a file, and a shadow beside it,
// whose destination hangs.
func withShadow(t *testing.T, batch string, test func(h *house, delivered func() string)) {
	t.Helper()
	inBubble(t, batch, func(h *house) {
		file := filepath.Join(h.o.Data, "..", "delivered")
		replaceInFile(h.t, h.o.Config, "to: out", "to: file")
		replaceInFile(h.t, h.o.Config, "buffers:", "  file: {type: file, path: "+file+"}\nbuffers:\n"+
			"  copies: {from: [in], to: out, shadow: true, groupBy: \"{{ .json.k }}\", batch: {"+batch+"}}")
		test(h, func() string {
			text, err := os.ReadFile(file)
			require.NoError(h.t, err)
			return strings.TrimSpace(string(text))
		})
	})
}

// closes lets what has been written hang until nobody waits for it any more, as
// its file can't be closed before.
func (h *house) closes(after time.Duration) {
	sleep(after + time.Millisecond)
	h.gate.let(100)
}

// Nothing waits for a copy that hangs: at a stop it has 5 s, whoever sends it.
func TestStopWithAHangingCopy(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		grace, took time.Duration
		flush       bool
	}{
		"":                   {grace, copiesGrace, false},
		"in a flush":         {grace, copiesGrace, true},
		"with a short grace": {3 * time.Second, 3 * time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			batch := "maxItems: 1"
			if tt.flush {
				batch = patient
			}
			withShadow(t, batch, func(h *house, delivered func() string) {
				h.o.Grace = tt.grace
				s := h.start()
				s.accept("a")
				if tt.flush {
					go s.call("POST", "/v1/flush", "{}") // its answer is cut off
				}
				<-h.gate.begun
				took := s.stopping()
				h.closes(tt.took)
				require.InDelta(h.t, tt.took, <-took, float64(time.Second), "the server looks at its requests ever more seldom")
				h.next()
				require.Equal(h.t, event("a"), delivered())
				require.Equal(h.t, []string{event("a"), event("a")}, h.gate.all(), "it is sent again")
			})
		})
	}
}

// A drain ships what counts first, however long that takes. What is left of the
// copies then is no failure.
func TestDrainWithAHangingCopy(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		batch string
		took  time.Duration
	}{
		"that waits":      {patient, copiesGrace},
		"under way":       {"maxItems: 1", 2 * copiesGrace},
		"and a scheduled": {"maxItems: 1}, flush: {every: 24h", copiesGrace},
	} {
		t.Run(name, func(t *testing.T) {
			withShadow(t, tt.batch, func(h *house, delivered func() string) {
				h.o.Drain = true
				s := h.start()
				sleep(time.Second)
				s.accept("a")
				took := s.stopping()
				h.closes(tt.took)
				require.InDelta(h.t, tt.took, <-took, polls)
				require.Equal(h.t, event("a"), delivered())
				s.log.wait(h.t, 0, `msg="left for the next start" buffer=copies items=1`)
			})
		})
	}
}

// A drain ships copies that are taken, too.
func TestDrainShipsCopies(t *testing.T) {
	withShadow(t, patient, func(h *house, delivered func() string) {
		h.o.Drain = true
		h.gate.let(100)
		s := h.start()
		s.accept("a", "b")
		require.Less(h.t, <-s.stopping(), time.Second)
		require.ElementsMatch(h.t, []string{event("a"), event("b")}, strings.Fields(delivered()))
		require.Equal(h.t, []string{event("a"), event("b")}, h.gate.all())
		s.log.wait(h.t, 0, "nothing is left")
	})
}
