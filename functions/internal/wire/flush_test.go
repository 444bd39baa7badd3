package wire

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

// byFlush is a buffer that leaves by flushes alone.
const byFlush = "maxItems: 50}, flush: {every: 10s"

// A buffer that leaves by flushes alone is flushed by the node, from its start
// on and every so often.
func TestNodeFlushes(t *testing.T) {
	inBubble(t, byFlush, func(h *house) {
		h.gate.let(100)
		begin := time.Now()
		s := h.start()
		sleep(time.Second)
		s.accept("a", "a")
		<-h.gate.begun
		require.Equal(h.t, 10*time.Second, time.Since(begin))
		synctest.Wait()
		require.Equal(h.t, []string{event("a") + "\n" + event("a")}, h.gate.all())
		s.log.wait(h.t, 0, `msg=flush buffer=b rows=2 windows=0`)
		s.accept("b")
		s.end()

		sleep(10 * time.Second)
		s = h.start() // the first flush of a process always goes
		<-h.gate.begun
		require.Equal(h.t, 20*time.Second, time.Since(begin).Truncate(time.Second))
		synctest.Wait()
		s.end()
	})
}

// A reload changes how often a buffer is flushed, and whether it is.
func TestReloadChangesTheFlushes(t *testing.T) {
	inBubble(t, "maxItems: 50}, flush: {every: 1h", func(h *house) {
		h.gate.let(100)
		begin := time.Now()
		s := h.start()
		s.accept("a")
		sleep(time.Second)
		replaceInFile(h.t, h.o.Config, "every: 1h", "every: 5s")
		s.reloads("configuration reloaded")
		<-h.gate.begun
		require.Equal(h.t, 5*time.Second, time.Since(begin))
		s.accept("b")
		synctest.Wait()
		replaceInFile(h.t, h.o.Config, ", flush: {every: 5s}", "")
		s.reloads("configuration reloaded")
		<-h.gate.begun
		require.Equal(h.t, 10*time.Second, time.Since(begin), "by the conditions, which are idle for 5 s")
		synctest.Wait()
		replaceInFile(h.t, h.o.Config, "maxItems: 50", "maxItems: 50}, flush: {every: 1m")
		s.reloads("configuration reloaded")
		s.accept("c")
		<-h.gate.begun
		require.Equal(h.t, 59*time.Second, time.Since(begin), "as soon as it may after what was shipped at 5 s")
		synctest.Wait()
		s.end()
	})
}

// A stop lets the sends of a flush end, and begins no more of them.
func TestStopDuringAFlush(t *testing.T) {
	inBubble(t, byFlush, func(h *house) {
		s := h.start()
		synctest.Wait()
		s.accept("a", "b", "c")
		<-h.gate.begun
		took := s.stopping()
		sleep(2 * time.Second)
		require.Empty(h.t, took)
		h.gate.let(100)
		require.Less(h.t, <-took, 5*time.Second)
		require.Len(h.t, h.gate.all(), 1)
		require.Empty(h.t, h.gate.begun)
		require.NotContains(h.t, s.log.text.String(), "level=WARN")
		h.next()
		require.Equal(h.t, []string{event("a"), event("b"), event("c")}, h.gate.all())
	})
}

// A send of a flush that hangs has the grace, and is then made again by the
// next process.
func TestStopDuringAFlushThatHangs(t *testing.T) {
	inBubble(t, byFlush, func(h *house) {
		s := h.start()
		synctest.Wait()
		s.accept("hangs")
		<-h.gate.begun
		require.Equal(h.t, grace, <-s.stopping())
		h.next()
		require.Equal(h.t, []string{event("hangs"), event("hangs")}, h.gate.all())
	})
}

// A flush sends within what its destination takes at a time, by turns with what
// is due, and ends when the process stops, though its caller waits on.
func TestFlushByACall(t *testing.T) {
	inBubble(t, "idleTimeoutMs: 300000, maxWaitFromFirstMs: 600000", func(h *house) {
		s := h.start()
		s.accept("a", "b", "c")
		answer := make(chan string, 1)
		go func() {
			_, text := s.call(http.MethodPost, "/v1/flush", `{"force": true}`)
			answer <- text
		}()
		<-h.gate.begun
		synctest.Wait()
		require.Empty(h.t, h.gate.begun, "the destination takes one at a time")
		h.gate.let(1)
		<-h.gate.begun
		took := s.stopping()
		require.Empty(h.t, took)
		h.gate.let(1)
		require.Contains(h.t, <-answer, `"ok":false`)
		require.Less(h.t, <-took, time.Second)
		require.Len(h.t, h.gate.all(), 2)
		h.next()
		require.Equal(h.t, []string{event("a"), event("b"), event("c")}, h.gate.all())
	})
}

func TestTellFlush(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		report core.BufferFlush
		ended  bool
		want   string
	}{
		{"empty", core.BufferFlush{}, false, "level=DEBUG msg=flush buffer=b rows=0 windows=0"},
		{"skipped", core.BufferFlush{Skipped: true, Reason: core.SkippedCadence, NextEligibleIn: 1500 * time.Millisecond}, false,
			"level=DEBUG msg=flush buffer=b skipped=cadence nextEligibleInMs=1500"},
		{"shipped", core.BufferFlush{Rows: 3, Buckets: 2}, false, "level=INFO msg=flush buffer=b rows=3 windows=2"},
		{"failed", core.BufferFlush{Rows: 3, Err: errors.New("down"), Written: &core.Shipped{Rows: 1}, ReleaseErr: errors.New("lost")}, false,
			"level=WARN msg=flush buffer=b rows=3 windows=0 writtenRows=1 writtenWindows=0 error=down releaseError=lost"},
		{"recovered", core.BufferFlush{Rows: 3, Recovered: &core.Released{Claims: 1, Rows: 2}, AckErr: errors.New("late"), RecoverErr: errors.New("odd")}, false,
			"level=WARN msg=flush buffer=b rows=3 windows=0 recoveredClaims=1 recoveredRows=2 ackError=late recoverError=odd"},
		{"ended", core.BufferFlush{Err: errors.New("the time was over")}, true,
			`level=INFO msg=flush buffer=b rows=0 windows=0 error="the time was over"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			tc.report.Buffer = "b"
			tellFlush(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})), &tc.report, tc.ended)
			_, got, _ := bytes.Cut(out.Bytes(), []byte(" "))
			require.Equal(t, tc.want+"\n", string(got))
		})
	}
}
