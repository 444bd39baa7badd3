package observe_test

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"sluice/core"
	"sluice/infra/observe"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clock is a clock that stands still until it is set.
type clock struct{ ms atomic.Int64 }

func (c *clock) Now() core.Millis        { return core.Millis(c.ms.Load()) }
func (c *clock) advance(d time.Duration) { c.ms.Add(d.Milliseconds()) }

// store is a store of which only the sums are asked.
type store struct {
	stats []core.BufferStats
	err   error
}

func (s *store) read(context.Context) ([]core.BufferStats, error) { return s.stats, s.err }

func setup(t *testing.T) (*observe.Metrics, *store, *clock) {
	t.Helper()
	s, c := &store{}, &clock{}
	c.ms.Store(1_700_000_000_000)
	return observe.NewMetrics(s.read, c), s, c
}

// scrape returns the answer to GET /metrics.
func scrape(t *testing.T, m *observe.Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	require.Equal(t, http.StatusOK, w.Code)
	return w.Body.String()
}

// own are the lines of a scrape that are Sluice's own series.
func own(scrape string) string {
	var b strings.Builder
	for line := range strings.Lines(scrape) {
		if strings.HasPrefix(line, "sluice_") {
			b.WriteString(line)
		}
	}
	return b.String()
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

// day is what a process reports: a batch that goes out at the second attempt,
// one that is refused, a replay, and events.
func day(o *core.Observer) {
	o.Events("web", core.EventsAccepted, 7)
	o.Events("web", core.EventsAccepted, 2)
	o.Events("web", core.EventsRefused, 1)
	o.Events("web", core.EventsFiltered, 4)
	o.Events("web", core.EventsDoubled, 1)
	o.Late("minutes", 3)
	o.Shadow("copies", core.ShadowDelivered, 5)
	o.Shadow("copies", core.ShadowDropped, 2)
	o.Breaker("crm", true)
	o.Breaker("audit", true)
	o.Breaker("audit", false)
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
	o.DeadLetters(&core.DeadLetter{Buffer: "orders", Reason: core.DeadPermanent}, 1)
	replay := refused
	replay.Batch, replay.Reason, replay.Number, replay.Outcome, replay.Status = "01H-7.r1", core.ReasonReplay, 2, core.Delivered, 200
	o.Attempt(&replay)
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	m, s, c := setup(t)
	s.stats = []core.BufferStats{
		{Buffer: "orders", Groups: 2, Pending: 3, Bytes: 900, Claimed: 6, Oldest: c.Now()},
		{Buffer: "gone", Groups: 1, Claimed: 1},
		{Buffer: "orders~held", Groups: 7, Pending: 8, Bytes: 800, Claimed: 2, Oldest: c.Now() - 60_000},
	}
	c.advance(1500 * time.Millisecond)
	day(m.Observer())
	all := scrape(t, m)
	golden(t, "metrics.txt", own(all))
	for _, name := range []string{"go_goroutines ", "process_start_time_seconds ", "go_build_info{"} {
		require.Contains(t, all, "\n"+name)
	}
}

func TestNoGroupKeyIsALabel(t *testing.T) {
	t.Parallel()
	m, _, _ := setup(t)
	m.Observer().Attempt(&core.Attempt{Buffer: "b", Group: "customer-4711", Batch: "x", Destination: "d"})
	require.NotContains(t, own(scrape(t, m)), "4711")
}

func TestGaugesOfAnEmptiedBufferAreZero(t *testing.T) {
	t.Parallel()
	m, s, c := setup(t)
	s.stats = []core.BufferStats{{Buffer: "orders", Groups: 1, Pending: 3, Bytes: 9, Oldest: c.Now() + 60_000}}
	require.Contains(t, scrape(t, m), `sluice_oldest_seconds{buffer="orders"} 0`, "an arrival ahead of the clock has no age")
	s.stats = append(s.stats, core.BufferStats{Buffer: "orders~held", Pending: 4})
	require.Contains(t, scrape(t, m), `sluice_delayed_items{buffer="orders"} 4`)
	s.stats = nil
	const empty = `sluice_delayed_items{buffer="orders"} 0
sluice_groups{buffer="orders"} 0
sluice_oldest_seconds{buffer="orders"} 0
sluice_pending_bytes{buffer="orders"} 0
sluice_pending_items{buffer="orders"} 0
`
	require.Equal(t, empty, own(scrape(t, m)))
}

// What an ordered buffer holds in its groups counts as what is held beside others.
func TestWhatIsHeldInPlace(t *testing.T) {
	t.Parallel()
	m, s, _ := setup(t)
	s.stats = []core.BufferStats{{Buffer: "orders", Groups: 1, Pending: 3, Held: 2}}
	got := scrape(t, m)
	require.Contains(t, got, `sluice_delayed_items{buffer="orders"} 2`)
	require.Contains(t, got, `sluice_pending_items{buffer="orders"} 3`)
	s.stats = append(s.stats, core.BufferStats{Buffer: "orders~held", Pending: 4})
	require.Contains(t, scrape(t, m), `sluice_delayed_items{buffer="orders"} 6`)
	s.stats = []core.BufferStats{{Buffer: "orders", Groups: 1, Pending: 3}}
	require.Contains(t, scrape(t, m), `sluice_delayed_items{buffer="orders"} 0`)
}

func TestAStoreThatIsDownHidesOnlyItsGauges(t *testing.T) {
	t.Parallel()
	m, s, _ := setup(t)
	m.Observer().Events("web", core.EventsAccepted, 1)
	s.err = core.Errorf(core.Unavailable, "the disk is gone")
	got := scrape(t, m)
	require.Equal(t, "sluice_events_total{outcome=\"accepted\",source=\"web\"} 1\n", own(got))
	require.Contains(t, got, "go_goroutines ")
	require.NotContains(t, got, "the disk is gone")
}

func TestAScrapeEndsWithItsRequest(t *testing.T) {
	t.Parallel()
	var got error
	m := observe.NewMetrics(func(ctx context.Context) ([]core.BufferStats, error) {
		<-ctx.Done()
		got = ctx.Err()
		return nil, got
	}, &clock{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := httptest.NewRequest(http.MethodGet, "/metrics", nil).WithContext(ctx)
	m.Handler().ServeHTTP(httptest.NewRecorder(), r)
	require.ErrorIs(t, got, context.Canceled)
}

func TestNamesThatNobodyConfigured(t *testing.T) {
	t.Parallel()
	m, _, _ := setup(t)
	o := m.Observer()
	o.Events("\xff\xfe", core.EventsRefused, 1)
	const made = 5000
	for i := range made {
		o.Events(fmt.Sprintf("made-up-%d", i), core.EventsRefused, 1)
	}
	got := own(scrape(t, m))
	require.Contains(t, got, `source="`+"\uFFFD"+`"`)
	require.LessOrEqual(t, strings.Count(got, "sluice_events_total{"), 4097)
	require.Contains(t, got, fmt.Sprintf("source=\"other\"} %d\n", made+1-4096))
}

func TestCountsAreExactUnderConcurrency(t *testing.T) {
	t.Parallel()
	m, _, _ := setup(t)
	o := m.Observer()
	const workers, each = 32, 200
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := range each {
				o.Events("web", core.EventsAccepted, 1)
				o.Attempt(&core.Attempt{Buffer: fmt.Sprint("b", (w+i)%8), Destination: "d", Reason: core.ReasonItems, Number: 1})
			}
		})
	}
	wg.Wait()
	got := own(scrape(t, m))
	require.Contains(t, got, fmt.Sprintf("sluice_events_total{outcome=\"accepted\",source=\"web\"} %d\n", workers*each))
	for b := range 8 {
		require.Contains(t, got, fmt.Sprintf("sluice_batch_items_count{buffer=\"b%d\"} %d\n", b, workers*each/8))
	}
}

func TestHotPathDoesNotAllocate(t *testing.T) { //nolint:paralleltest // AllocsPerRun counts the whole process
	m, _, _ := setup(t)
	o := m.Observer()
	a := core.Attempt{Buffer: "b", Destination: "d", Reason: core.ReasonItems, Number: 1}
	run := func() {
		o.Events("web", core.EventsAccepted, 1)
		o.Attempt(&a)
	}
	run()
	require.Zero(t, testing.AllocsPerRun(100, run))
}

func BenchmarkEvents(b *testing.B) {
	o := observe.NewMetrics((&store{}).read, &clock{}).Observer()
	b.ReportAllocs()
	for b.Loop() {
		o.Events("web", core.EventsAccepted, 1)
	}
}

func BenchmarkAttempt(b *testing.B) {
	o := observe.NewMetrics((&store{}).read, &clock{}).Observer()
	a := core.Attempt{Buffer: "b", Group: "k", Destination: "d", Reason: core.ReasonItems, Number: 1, Outcome: core.Delivered, Status: 200}
	b.ReportAllocs()
	for b.Loop() {
		o.Attempt(&a)
	}
}
