package core_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/infra/memory"
)

// manual is the whole core on the memory store, driven by hand and by one
// goroutine, for what happens between two steps of one of its parts: there, a
// hook does it. The clock moves when the test says so, and the timer and the
// queue keep what they are given until then.
type manual struct {
	t       *testing.T
	now     core.Millis
	memory  *memory.Store
	store   *hookedStore
	letters *hookedLetters

	notes  sync.Mutex      // held while hints and deliveries are noted, which a sweep does side by side
	late   time.Duration   // of every hint, as one is in a real process
	hints  []core.Hint     // armed, and not come yet
	armed  []core.Hint     // all that were ever armed
	handed []core.Delivery // not worked on yet

	catalog   *core.Catalog
	ingester  *core.Ingester
	checker   *core.Checker
	deliverer *core.Deliverer
	sweeper   *core.Sweeper
	replayer  *core.Replayer

	answer func(context.Context, *core.Batch) core.Response // nil: 200
	sent   []sent
	checks int
	ids    int
	told   int // dead letters that the observer was told of
}

func newManual(t *testing.T, c *core.Config) *manual {
	t.Helper()
	store := memory.New()
	m := &manual{t: t, now: noon, memory: store,
		store: &hookedStore{Store: store}, letters: &hookedLetters{DeadLetters: store.DeadLetters()}}
	m.configure(c)
	return m
}

// configure makes it go on with a configuration; calls under way end on the old one.
func (m *manual) configure(c *core.Config) {
	m.t.Helper()
	var err error
	m.catalog, err = core.NewCatalog(c, nil)
	require.NoError(m.t, err)
	ports := core.Ports{
		Store: m.store, Timer: notedTimer{m}, Queue: notedQueue{m}, DeadLetters: m.letters,
		Clock:  core.ClockFunc(func() core.Millis { return m.now }),
		Rand:   &edge{high: true}, // every wait is as long as it may be
		Sender: func(name string) core.Sender { return manualSender{m, name} },
		IDs: core.IDsFunc(func() string {
			m.ids++
			return fmt.Sprintf("id%06d", m.ids)
		}),
		Observer: &core.Observer{DeadLetters: func(_ *core.DeadLetter, n int) { m.told += n }},
	}
	m.ingester = core.NewIngester(m.catalog, ports)
	m.checker = core.NewChecker(m.catalog, ports)
	m.deliverer = core.NewDeliverer(m.catalog, ports)
	m.sweeper = core.NewSweeper(m.catalog, ports)
	m.replayer = core.NewReplayer(m.catalog, ports, m.letters)
}

// put sends one event of each key, in one request.
func (m *manual) put(keys ...string) {
	m.t.Helper()
	require.NoError(m.t, m.tryPut(keys...))
}

func (m *manual) tryPut(keys ...string) error {
	events := make([]core.Event, len(keys))
	for i, k := range keys {
		events[i] = core.Event{Body: fmt.Appendf(nil, `{"k":%q}`, k)}
	}
	_, err := m.ingester.Ingest(context.Background(), "in", events)
	return err
}

func ref(key string) core.Ref { return core.Ref{Buffer: "b", Key: key} }

func (m *manual) group(key string) core.Group {
	m.t.Helper()
	g, err := m.memory.Group(context.Background(), ref(key))
	require.NoError(m.t, err)
	return g
}

// deliver works on a group once. What it leaves to be done at once is handed over.
func (m *manual) deliver(key string) {
	m.t.Helper()
	require.NoError(m.t, m.tryDeliver(context.Background(), ref(key)))
}

func (m *manual) tryDeliver(ctx context.Context, r core.Ref) error {
	more, err := m.deliverer.Deliver(ctx, core.Delivery{Ref: r, Destination: "out"})
	if more {
		m.handed = append(m.handed, core.Delivery{Ref: r, Destination: "out"})
	}
	return err
}

// pass moves the clock, and nothing else.
func (m *manual) pass(d time.Duration) { m.now = m.now.Add(d) }

// fire lets the hints come that are due.
func (m *manual) fire() {
	m.t.Helper()
	for h, ok := m.next(m.now); ok; h, ok = m.next(m.now) {
		m.check(h)
	}
}

func (m *manual) check(h core.Hint) {
	m.t.Helper()
	m.checks++
	require.Less(m.t, m.checks, 10_000, "checks go round in circles")
	require.NoError(m.t, m.checker.Check(context.Background(), h))
}

// next takes the hint that comes first off those armed, if it comes by end.
func (m *manual) next(end core.Millis) (core.Hint, bool) {
	first := -1
	for i, h := range m.hints {
		if h.At.Add(m.late) <= end && (first < 0 || h.At < m.hints[first].At) {
			first = i
		}
	}
	if first < 0 {
		return core.Hint{}, false
	}
	h := m.hints[first]
	m.hints = slices.Delete(m.hints, first, first+1)
	return h, true
}

// elapse lets time go on: hints come when they are due, and what is handed
// over is worked on at once. A send may call it to take its time.
func (m *manual) elapse(d time.Duration) {
	m.t.Helper()
	end := m.now.Add(d)
	for m.work(); ; m.work() {
		h, ok := m.next(end)
		if !ok {
			break
		}
		m.now = max(m.now, h.At.Add(m.late))
		m.check(h)
	}
	m.now = max(m.now, end)
}

func (m *manual) work() {
	m.t.Helper()
	for len(m.handed) > 0 {
		d := m.handed[0]
		m.handed = m.handed[1:]
		require.NoError(m.t, m.tryDeliver(context.Background(), d.Ref))
	}
}

// summary is what was sent, a line each: when, how many, why, which attempt.
func (m *manual) summary() string {
	var lines []string
	for _, b := range m.sent {
		lines = append(lines, fmt.Sprintf("%.3f %s %d %s #%d", b.at.Seconds(), b.Group, len(b.Items), b.Reason, b.Attempt))
	}
	return strings.Join(lines, "\n")
}

// deadLetters is how many there are.
func (m *manual) deadLetters() int {
	m.t.Helper()
	n, err := m.memory.DeadLetters().Count(context.Background(), core.DeadLetterFilter{})
	require.NoError(m.t, err)
	return n
}

type manualSender struct {
	m    *manual
	name string
}

func (s manualSender) Send(ctx context.Context, b *core.Batch) core.Response {
	s.m.sent = append(s.m.sent, sent{s.m.now.Sub(noon), s.name, *b})
	require.Less(s.m.t, len(s.m.sent), 10_000, "sends go round in circles")
	if s.m.answer == nil {
		return core.Response{Status: 200}
	}
	return s.m.answer(ctx, b)
}

type notedTimer struct{ m *manual }

func (n notedTimer) Arm(_ context.Context, h core.Hint) error {
	n.m.notes.Lock()
	defer n.m.notes.Unlock()
	n.m.hints = append(n.m.hints, h)
	n.m.armed = append(n.m.armed, h)
	return nil
}

type notedQueue struct{ m *manual }

func (n notedQueue) Hand(_ context.Context, d core.Delivery) error {
	n.m.notes.Lock()
	defer n.m.notes.Unlock()
	n.m.handed = append(n.m.handed, d)
	return nil
}

// hookedStore runs a test's hooks, of which each may make its call fail.
type hookedStore struct {
	core.Store
	read  func() error // when items have been read
	write func() error // before an update
}

func (h *hookedStore) Items(ctx context.Context, r core.Ref, g *core.Group, s core.Span) (core.Page, error) {
	page, err := h.Store.Items(ctx, r, g, s)
	return page, errorOf(err, h.read)
}

func (h *hookedStore) Update(ctx context.Context, r core.Ref, seen *core.Group, fn func(*core.Group) error) (core.Group, error) {
	if err := errorOf(nil, h.write); err != nil {
		return core.Group{}, err
	}
	return h.Store.Update(ctx, r, seen, fn)
}

// errorOf is err, or else what a hook says.
func errorOf(err error, hook func() error) error {
	if err != nil || hook == nil {
		return err
	}
	return hook()
}

// once is a hook that does something the first time, and lets the others be.
func once(do func() error) func() error {
	var done atomic.Bool
	return func() error {
		if done.Swap(true) {
			return nil
		}
		return do()
	}
}

// broken is what a store says that does not work just now.
func broken() error { return core.Errorf(core.Unavailable, "the disk does not answer") }

// hookedLetters are dead letters whose calls a test may make fail.
type hookedLetters struct {
	*memory.DeadLetters
	take   func() error
	settle func(done []core.DeadLetter) error
	count  func() (int, error)
}

func (h *hookedLetters) Take(ctx context.Context, f core.DeadLetterFilter, limit int, now, until core.Millis) ([]core.DeadLetter, error) {
	if err := errorOf(nil, h.take); err != nil {
		return nil, err
	}
	return h.DeadLetters.Take(ctx, f, limit, now, until)
}

func (h *hookedLetters) Settle(ctx context.Context, done, back []core.DeadLetter) error {
	if h.settle != nil {
		if err := h.settle(done); err != nil {
			return err
		}
	}
	return h.DeadLetters.Settle(ctx, done, back)
}

func (h *hookedLetters) Count(ctx context.Context, f core.DeadLetterFilter) (int, error) {
	if h.count != nil {
		return h.count()
	}
	return h.DeadLetters.Count(ctx, f)
}
