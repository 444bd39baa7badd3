package emf_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/infra/emf"
)

var update = flag.Bool("update", false, "write the golden files anew")

// clock is a clock that stands still until it is set.
type clock struct{ ms atomic.Int64 }

func (c *clock) Now() core.Millis        { return core.Millis(c.ms.Load()) }
func (c *clock) advance(d time.Duration) { c.ms.Add(d.Milliseconds()) }

func newClock() *clock {
	c := &clock{}
	c.ms.Store(1_700_000_000_000)
	return c
}

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

// flush returns what a flush writes, which is by the rules of the format.
func flush(t *testing.T, m *emf.Metrics) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, m.Flush(&b))
	read(t, schema(t), b.Bytes())
	return b.String()
}

// attempt is a first send of a batch that is put off.
func attempt() core.Attempt {
	return core.Attempt{
		Buffer: "orders", Group: "customer-4711", Batch: "01H-1", Destination: "crm", Items: 6, Bytes: 5000,
		Reason: core.ReasonWait, Number: 1, Outcome: core.Retry, Status: 503,
		Took: 40 * time.Millisecond, Lateness: 2 * time.Millisecond,
	}
}

// day is what a function reports: a batch that goes out at the second attempt,
// one that is refused, a replay, events, and failures.
func day(o *core.Observer) {
	o.Events("web", core.EventsAccepted, 7)
	o.Events("web", core.EventsAccepted, 2)
	o.Events("web", core.EventsRefused, 1)
	o.Events("web", core.EventsFiltered, 4)
	o.Events("web", core.EventsDoubled, 1)
	o.Shadow("copies", core.ShadowDelivered, 5)
	o.Shadow("copies", core.ShadowDropped, 2)
	o.Breaker("crm", true)
	o.Breaker("audit", true)
	o.Breaker("audit", false)
	first := attempt()
	o.Attempt(&first)
	second := first
	second.Number, second.Outcome, second.Status, second.Lateness = 2, core.Delivered, 202, 0
	o.Attempt(&second)
	refused := first
	refused.Batch, refused.Items, refused.Outcome, refused.Status = "01H-7", 1, core.Permanent, 400
	o.Attempt(&refused)
	o.DeadLetters(&core.DeadLetter{Buffer: "orders", Reason: core.DeadPermanent}, 1)
	replay := refused
	replay.Batch, replay.Reason, replay.Number, replay.Outcome, replay.Status = "01H-7.r1", core.ReasonReplay, 2, core.Delivered, 200
	o.Attempt(&replay)
	o.Failed("arm a check", errors.New("throttled"))
	o.Failed("arm a check", errors.New("throttled"))
}

func TestLines(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		report func(*emf.Metrics)
	}{
		{"ingest", func(m *emf.Metrics) { m.Observer().Events("web", core.EventsAccepted, 3) }},
		{"deliver", func(m *emf.Metrics) {
			a := attempt()
			a.Outcome = core.Delivered
			m.Observer().Attempt(&a)
		}},
		{"day", func(m *emf.Metrics) { day(m.Observer()) }},
		{"sweep", func(m *emf.Metrics) {
			m.Gauges([]core.BufferStats{
				{Buffer: "orders", Groups: 2, Pending: 3, Bytes: 900, Claimed: 6, Oldest: 1_699_999_998_500},
				{Buffer: "orders~held", Groups: 7, Pending: 8, Bytes: 800, Claimed: 2, Oldest: 1_699_999_940_000},
				{Buffer: "hooks", Groups: 1, Claimed: 1},
				{Buffer: "ahead", Groups: 1, Pending: 1, Bytes: 9, Oldest: 1_700_000_060_000}, // an arrival ahead of the clock has no age
			})
			m.Lost(2)
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := emf.New("sluice-dev", newClock())
			tt.report(m)
			golden(t, tt.name+".jsonl", flush(t, m))
		})
	}
}

func TestOneBatchIsOneLine(t *testing.T) {
	t.Parallel()
	m := emf.New("dev", newClock())
	a := attempt()
	a.Number = 2
	m.Observer().Attempt(&a)
	require.Equal(t, 1, strings.Count(flush(t, m), "\n"))
}

func TestWithoutAnEnvironment(t *testing.T) {
	t.Parallel()
	m := emf.New("", newClock())
	m.Observer().Failed("sweep", errors.New("x"))
	m.Lost(1)
	got := flush(t, m)
	require.NotContains(t, got, emf.Environment)
	require.Contains(t, got, `"Dimensions":[["op"],[]]`)
	require.Contains(t, got, `"Dimensions":[[]]`)
}

func TestNothingHappened(t *testing.T) {
	t.Parallel()
	c := newClock()
	m := emf.New("dev", c)
	require.Empty(t, flush(t, m), "no line for nothing")
	m.Gauges([]core.BufferStats{{Buffer: "orders"}})
	m.Observer().Events("web", core.EventsAccepted, 0)
	m.Lost(0)
	require.Empty(t, flush(t, m), "no line for zeros")
	m.Observer().Events("web", core.EventsAccepted, 1)
	require.NotEmpty(t, flush(t, m))
	require.Empty(t, flush(t, m), "an invocation does not repeat the one before")
}

func TestAnInvocationStartsAnew(t *testing.T) {
	t.Parallel()
	c := newClock()
	m := emf.New("dev", c)
	o := m.Observer()
	a := attempt()
	o.Attempt(&a)
	first := flush(t, m)
	c.advance(time.Minute)
	o.Attempt(&a)
	require.Equal(t, strings.ReplaceAll(first, "1700000000000", "1700000060000"), flush(t, m))
}

func TestALateGaugeWins(t *testing.T) {
	t.Parallel()
	m := emf.New("dev", newClock())
	m.Gauges([]core.BufferStats{{Buffer: "orders", Groups: 5, Pending: 9}})
	m.Gauges([]core.BufferStats{{Buffer: "orders", Groups: 4}})
	got := flush(t, m)
	require.Contains(t, got, `"sluice_groups":4`)
	require.NotContains(t, got, "sluice_pending_items")
}

// What an ordered buffer holds in its groups counts as what is held beside others.
func TestWhatIsHeldInPlace(t *testing.T) {
	t.Parallel()
	m := emf.New("dev", newClock())
	m.Gauges([]core.BufferStats{{Buffer: "orders", Groups: 1, Pending: 3, Held: 2}})
	require.Contains(t, flush(t, m), `"sluice_delayed_items":2`)
	m.Gauges([]core.BufferStats{{Buffer: "orders", Groups: 1, Pending: 3, Held: 2}, {Buffer: "orders~held", Pending: 4}})
	require.Contains(t, flush(t, m), `"sluice_delayed_items":6`)
}

func TestAPunctualSendCounts(t *testing.T) {
	t.Parallel()
	m := emf.New("dev", newClock())
	a := attempt()
	a.Took, a.Lateness = 0, 0
	m.Observer().Attempt(&a)
	got := flush(t, m)
	require.Contains(t, got, `"sluice_lateness_seconds":0`)
	require.Contains(t, got, `"sluice_delivery_seconds":0`)
}

func TestManyValuesTakeMoreLines(t *testing.T) {
	t.Parallel()
	m := emf.New("dev", newClock())
	const sends = 250
	want := 0.0
	for i := range sends {
		a := attempt()
		a.Items = i
		want += float64(i)
		m.Observer().Attempt(&a)
	}
	var b bytes.Buffer
	require.NoError(t, m.Flush(&b))
	lines := read(t, schema(t), b.Bytes())
	require.Len(t, lines, 3)
	sum, count := 0.0, 0
	for _, l := range lines {
		for _, v := range l.values(t, "sluice_batch_items") {
			sum += v
			count++
		}
	}
	require.Equal(t, sends, count)
	require.InDelta(t, want, sum, 0)
	require.Equal(t, 1, strings.Count(b.String(), `"sluice_batches_total":250`))
}

func TestNoGroupKeyIsWritten(t *testing.T) {
	t.Parallel()
	m := emf.New("dev", newClock())
	a := attempt()
	m.Observer().Attempt(&a)
	got := flush(t, m)
	require.NotContains(t, got, "4711")
	require.NotContains(t, got, "01H-1")
}

func TestNamesThatNobodyConfigured(t *testing.T) {
	t.Parallel()
	m := emf.New("dev", newClock())
	const made = 3000
	for i := range made {
		m.Observer().Events(fmt.Sprint("made-up-", i), core.EventsRefused, 1)
	}
	got := flush(t, m)
	require.Contains(t, got, `"outcome":"other","sluice_events_total":2000,"source":"other"`)
	require.Equal(t, 1001, strings.Count(got, "\n"))
	m.Observer().Events("one-more", core.EventsRefused, 1)
	require.Contains(t, flush(t, m), `"source":"other"`, "the bound is the process's, not an invocation's")
}

func TestCountsAreExactUnderConcurrency(t *testing.T) {
	t.Parallel()
	m := emf.New("dev", newClock())
	o := m.Observer()
	const workers, each = 16, 200
	out := make([]bytes.Buffer, workers)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := range each {
				a := attempt()
				a.Buffer = fmt.Sprint("b", (w+i)%8)
				o.Attempt(&a)
				if i%20 == 19 { // an invocation of its own ends in between
					_ = m.Flush(&out[w])
				}
			}
		})
	}
	wg.Wait()
	rules, batches, items := schema(t), 0.0, 0
	for w := range out {
		for _, l := range read(t, rules, out[w].Bytes()) {
			if _, ok := l.root["sluice_batches_total"]; ok {
				batches += l.values(t, "sluice_batches_total")[0]
			}
			if _, ok := l.root["sluice_batch_items"]; ok {
				items += len(l.values(t, "sluice_batch_items"))
			}
		}
	}
	require.InDelta(t, workers*each, batches, 0)
	require.Equal(t, workers*each, items)
}

// broken is a writer that fails.
type broken struct{ err error }

func (b broken) Write([]byte) (int, error) { return 0, b.err }

func TestAWriterThatFails(t *testing.T) {
	t.Parallel()
	m := emf.New("dev", newClock())
	m.Lost(1)
	err := m.Flush(broken{io.ErrClosedPipe})
	require.ErrorIs(t, err, io.ErrClosedPipe)
	require.Equal(t, core.Unavailable, core.CodeOf(err))
}

// writes counts writes.
type writes struct{ n int }

func (w *writes) Write(p []byte) (int, error) {
	w.n++
	return len(p), nil
}

func TestALineIsOneWrite(t *testing.T) {
	t.Parallel()
	m := emf.New("dev", newClock())
	o := m.Observer()
	o.Events("web", core.EventsAccepted, 1)
	o.Events("hooks", core.EventsAccepted, 1)
	var w writes
	require.NoError(t, m.Flush(&w))
	require.Equal(t, 2, w.n)
}

func BenchmarkIngest(b *testing.B) {
	m := emf.New("sluice-dev", newClock())
	o := m.Observer()
	b.ReportAllocs()
	for b.Loop() {
		o.Events("web", core.EventsAccepted, 1)
		_ = m.Flush(io.Discard)
	}
}

func BenchmarkDeliver(b *testing.B) {
	m := emf.New("sluice-dev", newClock())
	o := m.Observer()
	a := attempt()
	b.ReportAllocs()
	for b.Loop() {
		for range 10 {
			o.Attempt(&a)
		}
		_ = m.Flush(io.Discard)
	}
}
