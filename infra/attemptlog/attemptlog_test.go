package attemptlog_test

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/infra/attemptlog"
)

var update = flag.Bool("update", false, "write the golden files anew")

// clock is a clock that stands still until it is set.
type clock struct{ ms atomic.Int64 }

func (c *clock) Now() core.Millis        { return core.Millis(c.ms.Load()) }
func (c *clock) advance(d time.Duration) { c.ms.Add(d.Milliseconds()) }

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(string(want), got))
}

// day is what a process reports: a batch that goes out at the second attempt,
// one that is refused, and a replay.
func day(o *core.Observer) {
	first := core.Attempt{
		Buffer: "orders", Group: "42", Batch: "01H-1", Destination: "crm", Items: 6, Bytes: 5000,
		Reason: core.ReasonWait, Number: 1, Outcome: core.Retry, Status: 503,
		Took: 40 * time.Millisecond, Lateness: 2 * time.Millisecond,
	}
	o.Attempt(&first)
	second := first
	second.Number, second.Outcome, second.Status, second.Lateness = 2, core.Delivered, 202, 0
	o.Attempt(&second)
	refused := first
	refused.Batch, refused.Items, refused.Outcome, refused.Status = "01H-7", 1, core.Permanent, 400
	o.Attempt(&refused)
	replay := refused
	replay.Batch, replay.Reason, replay.Number, replay.Outcome, replay.Status = "01H-7.r1", core.ReasonReplay, 2, core.Delivered, 200
	o.Attempt(&replay)
}

// lines logs what run reports, without times.
func lines(json bool, c *clock, run func(*core.Observer)) string {
	var b strings.Builder
	opts := &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}
	var h slog.Handler = slog.NewTextHandler(&b, opts)
	if json {
		h = slog.NewJSONHandler(&b, opts)
	}
	run(attemptlog.Observer(slog.New(h), c))
	return b.String()
}

func TestAttemptLines(t *testing.T) {
	t.Parallel()
	run := func(o *core.Observer) {
		day(o)
		o.Attempt(&core.Attempt{Buffer: "b", Destination: "d", Batch: "x", Number: 3, Outcome: core.Partial, Status: 200})
		o.Attempt(&core.Attempt{
			Buffer: "b", Group: "a\x1b[2J\nlevel=ERROR \xff", Destination: "d", Batch: "y", Number: 1,
			Outcome: core.Interrupted, Err: core.Wrap(core.Canceled, errors.New("shutting down"), "the send was stopped"),
		})
	}
	golden(t, "attempts.json", lines(true, &clock{}, run))
	golden(t, "attempts.txt", lines(false, &clock{}, run))
}

// TestDeadLetters: a line for each batch, without anything of what the items were.
func TestDeadLetters(t *testing.T) {
	t.Parallel()
	got := lines(true, &clock{}, func(o *core.Observer) {
		o.DeadLetters(&core.DeadLetter{
			ID: "01H-1/1", Batch: "01H-1", Buffer: "orders", Group: strings.Repeat("k", 300), Destination: "crm",
			Reason: core.DeadExhausted, Status: 503, Answer: "payload", Attempts: 5, LastError: "payload",
			Item: core.Item{Event: core.Event{Body: []byte("payload")}},
		}, 6)
	})
	require.Equal(t, `{"level":"ERROR","msg":"dead letters","buffer":"orders","group":"`+strings.Repeat("k", 256)+
		`","batch":"01H-1","destination":"crm","items":6,"reason":"exhausted","attempts":5,"status":503,"letter":"01H-1/1"}`+"\n", got)
}

func TestLongKeysAndErrorsAreCut(t *testing.T) {
	t.Parallel()
	got := lines(true, &clock{}, func(o *core.Observer) {
		o.Attempt(&core.Attempt{Group: strings.Repeat("ä", 1000), Err: errors.New(strings.Repeat("e", 5000))})
	})
	require.Equal(t, 128, strings.Count(got, "ä"))
	require.Equal(t, 1024, strings.Count(strings.SplitN(got, `"error":"`, 2)[1], "e"))
}

func TestFailuresDoNotFloodTheLog(t *testing.T) {
	t.Parallel()
	c := &clock{}
	got := lines(false, c, func(o *core.Observer) {
		down := core.Errorf(core.Unavailable, "the store is down")
		for range 1000 {
			o.Failed("arm a check", down)
		}
		o.Failed("hand over a delivery", down) // another operation speaks for itself
		c.advance(9_999 * time.Millisecond)
		o.Failed("arm a check", down)
		c.advance(time.Millisecond)
		o.Failed("arm a check", down)
		c.advance(-time.Hour) // a clock set back does not silence it
		o.Failed("arm a check", down)
	})
	golden(t, "failures.txt", got)
}

func TestBreakersAndShadows(t *testing.T) {
	t.Parallel()
	c := &clock{}
	got := lines(false, c, func(o *core.Observer) {
		o.Breaker("crm", true)
		o.Breaker("crm", false)
		for range 1000 {
			o.Shadow("copies", core.ShadowDelivered, 9)
			o.Shadow("copies", core.ShadowFailed, 3)
			o.Shadow("copies", core.ShadowDropped, 2)
		}
		c.advance(10 * time.Second)
		o.Shadow("copies", core.ShadowFailed, 1)
	})
	require.Equal(t, `level=WARN msg=breaker destination=crm state=open
level=INFO msg=breaker destination=crm state=closed
level=WARN msg="shadow copies lost" buffer=copies outcome=failed items=3 leftOut=0
level=WARN msg="shadow copies lost" buffer=copies outcome=dropped items=2 leftOut=0
level=WARN msg="shadow copies lost" buffer=copies outcome=failed items=1 leftOut=999
`, got)
}

func TestMadeUpOperationsShareALimit(t *testing.T) {
	t.Parallel()
	got := lines(false, &clock{}, func(o *core.Observer) {
		for i := range 500 {
			o.Failed(fmt.Sprint("op ", i), errors.New("x"))
		}
	})
	require.Equal(t, 101, strings.Count(got, "\n"))
}

func TestAQuietLogCostsNothing(t *testing.T) { //nolint:paralleltest // AllocsPerRun counts the whole process
	o := attemptlog.Observer(slog.New(slog.DiscardHandler), &clock{})
	a := core.Attempt{Buffer: "b", Destination: "d", Reason: core.ReasonItems, Number: 1}
	require.Zero(t, testing.AllocsPerRun(100, func() { o.Attempt(&a) }))
}

func BenchmarkAttempt(b *testing.B) {
	o := attemptlog.Observer(slog.New(slog.NewJSONHandler(io.Discard, nil)), &clock{}) //nolint:sloglint // what encoding costs is measured too
	a := core.Attempt{Buffer: "b", Group: "k", Destination: "d", Reason: core.ReasonItems, Number: 1, Outcome: core.Delivered, Status: 200}
	b.ReportAllocs()
	for b.Loop() {
		o.Attempt(&a)
	}
}
