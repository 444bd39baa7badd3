package core_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sluice/core"
	"sluice/infra/memory"
)

// dock is one store with its coordinator, and any number of processes on it,
// all driven by hand. Hooks make its calls fail.
type dock struct {
	t      rapid.TB
	now    atomic.Int64
	memory *memory.Store
	turns  *hookedTurns
	ids    atomic.Int64

	due, read func() error                    // before the store is read
	look      func(core.Ref) error            // before a record is read
	write     func(core.Ref) error            // before one is changed
	beforePut func([]core.DeadLetter) error   // before dead letters are put
	answer    func(*core.Batch) core.Response // nil: 200
	page      func(core.Span) core.Page       // instead of what is stored
	slot      func() error                    // before a send may be under way
	arm       func()                          // before a hint is armed

	mu       sync.Mutex
	sent     []core.Batch
	to       []string // the destination of every send there was
	busy     int
	peak     int // sends under way at a time
	late     int // events that were moved on
	observed []string
	handed   []core.Delivery
	armed    []core.Hint
	lateness []time.Duration
	sleep    func(context.Context, time.Duration) error // nil: nothing waits
}

func newDock(t rapid.TB) *dock {
	t.Helper()
	d := &dock{t: t, memory: memory.New()}
	d.turns = &hookedTurns{Coordinator: memory.NewCoordinator()}
	d.now.Store(int64(noon))
	return d
}

// ship is one process on a dock.
type ship struct {
	d         *dock
	catalog   *core.Catalog
	ingester  *core.Ingester
	checker   *core.Checker
	deliverer *core.Deliverer
	sweeper   *core.Sweeper
	flusher   *core.Flusher
}

// process starts one more process.
func (d *dock) process(c *core.Config) *ship {
	d.t.Helper()
	catalog, err := core.NewCatalog(c, toy)
	require.NoError(d.t, err)
	ports := core.Ports{
		Store: dockStore{d.memory, d}, Timer: dockTimer{d}, Queue: dockQueue{d}, DeadLetters: dockLetters{d}, Coordinator: d.turns, Shared: true,
		Clock:  core.ClockFunc(d.clock),
		Rand:   fullWait{},
		Sender: func(name string) core.Sender { return dockSender{d, name} },
		IDs:    core.IDsFunc(func() string { return fmt.Sprintf("id%06d", d.ids.Add(1)) }),
		Slot: func(context.Context, string) (func(), error) {
			return func() {}, errorOf(nil, d.slot)
		},
		Sleep: func(ctx context.Context, by time.Duration) error {
			if d.sleep == nil {
				return context.Canceled
			}
			return d.sleep(ctx, by)
		},
		Observer: &core.Observer{
			Attempt: func(a *core.Attempt) {
				d.mu.Lock()
				defer d.mu.Unlock()
				d.lateness = append(d.lateness, a.Lateness)
			},
			Late: func(_ string, n int) {
				d.mu.Lock()
				defer d.mu.Unlock()
				d.late += n
			},
			Failed: func(op string, err error) {
				d.mu.Lock()
				defer d.mu.Unlock()
				d.observed = append(d.observed, op+": "+err.Error())
			},
		},
	}
	return &ship{
		d: d, catalog: catalog, ingester: core.NewIngester(catalog, ports), checker: core.NewChecker(catalog, ports),
		deliverer: core.NewDeliverer(catalog, ports), sweeper: core.NewSweeper(catalog, ports),
		flusher: core.NewFlusher(catalog, ports, &core.Cadence{}),
	}
}

func (d *dock) clock() core.Millis { return core.Millis(d.now.Load()) }

func (d *dock) pass(by time.Duration) { d.now.Add(by.Milliseconds()) }

// put takes events of these bodies in.
func (p *ship) put(bodies ...string) {
	p.d.t.Helper()
	require.NoError(p.d.t, p.tryPut(bodies...))
}

func (p *ship) tryPut(bodies ...string) error {
	events := make([]core.Event, len(bodies))
	for i, b := range bodies {
		events[i] = core.Event{ContentType: "application/json", JSON: true, Body: []byte(b)}
	}
	_, err := p.ingester.Ingest(context.Background(), "in", events)
	return err
}

// keys takes an event of each key in.
func (p *ship) keys(keys ...string) {
	p.d.t.Helper()
	bodies := make([]string, len(keys))
	for i, k := range keys {
		bodies[i] = fmt.Sprintf(`{"k":%q}`, k)
	}
	p.put(bodies...)
}

func (p *ship) flush(o core.FlushOptions) core.BufferFlush {
	p.d.t.Helper()
	return p.flushWithin(context.Background(), o)
}

func (p *ship) flushWithin(ctx context.Context, o core.FlushOptions) core.BufferFlush {
	p.d.t.Helper()
	r, err := p.flusher.FlushBuffer(ctx, "b", o)
	require.NoError(p.d.t, err)
	return r
}

// wait is how long the process has to wait for its next flush.
func (p *ship) wait() time.Duration {
	p.d.t.Helper()
	return p.flush(core.FlushOptions{Groups: []string{"nobody"}}).NextEligibleIn
}

// deliverAll delivers what is due, as a queue does.
func (p *ship) deliverAll() error {
	for h, err := range (dockStore{p.d.memory, p.d}).Due(context.Background(), p.d.clock()) {
		if err != nil {
			return err
		}
		for more := true; more; {
			if more, err = p.deliverer.Deliver(context.Background(), core.Delivery{Ref: h.Ref, Destination: "out"}); err != nil {
				return err
			}
		}
	}
	return nil
}

// work delivers what was handed over, and what is due.
func (p *ship) work() {
	p.d.t.Helper()
	require.NoError(p.d.t, p.deliverHanded())
	require.NoError(p.d.t, p.deliverAll())
}

// deliverHanded delivers what was handed over.
func (p *ship) deliverHanded() error {
	handed := p.d.handed
	p.d.handed = nil
	slices.SortFunc(handed, func(a, b core.Delivery) int {
		return cmp.Or(strings.Compare(a.Ref.Key, b.Ref.Key), cmp.Compare(a.Ref.Shard, b.Ref.Shard))
	})
	for _, del := range handed {
		for more := true; more; {
			var err error
			if more, err = p.deliverer.Deliver(context.Background(), del); err != nil {
				return err
			}
		}
	}
	return nil
}

// taken is what was sent since it was last asked.
func (d *dock) taken() []core.Batch {
	d.mu.Lock()
	defer d.mu.Unlock()
	sent := d.sent
	d.sent = nil
	return sent
}

// turn is the turn record of the buffer.
func (d *dock) turn() (r core.Turn) {
	d.t.Helper()
	_ = d.turns.Coordinator.Change(context.Background(), "turn/b", func(old []byte) ([]byte, error) {
		if old != nil {
			require.NoError(d.t, json.Unmarshal(old, &r))
		}
		return old, nil
	})
	return r
}

// busyGroups are the groups that hold anything.
func (d *dock) busyGroups() []string {
	d.t.Helper()
	groups, err := d.memory.Groups(context.Background(), "b", nil, 0)
	require.NoError(d.t, err)
	var keys []string
	for i := range groups {
		if !groups[i].Empty() && !slices.Contains(keys, groups[i].Ref.Key) {
			keys = append(keys, groups[i].Ref.Key)
		}
	}
	return keys
}

type dockSender struct {
	d  *dock
	to string
}

func (s dockSender) Send(_ context.Context, b *core.Batch) core.Response {
	d := s.d
	d.mu.Lock()
	d.sent = append(d.sent, *b)
	d.to = append(d.to, s.to)
	d.busy++
	d.peak = max(d.peak, d.busy)
	answer := d.answer
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		d.busy--
		d.mu.Unlock()
	}()
	if answer == nil {
		return core.Response{Status: 200}
	}
	return answer(b)
}

// dockStore is a process's way to the store.
type dockStore struct {
	*memory.Store

	d *dock
}

// Append makes no change of a group beside, as a store of many machines does not.
func (s dockStore) Append(ctx context.Context, now core.Millis, parts []core.Part) ([]core.Appended, error) {
	answers := make([]core.Appended, len(parts))
	var plain []core.Part
	var at []int
	for i := range parts {
		if parts[i].Change == nil {
			plain, at = append(plain, parts[i]), append(at, i)
		}
	}
	some, err := s.Store.Append(ctx, now, plain)
	for i := range some {
		answers[at[i]] = some[i]
	}
	return answers, err
}

func (s dockStore) Due(ctx context.Context, before core.Millis) iter.Seq2[core.Hint, error] {
	if err := errorOf(nil, s.d.due); err != nil {
		return func(yield func(core.Hint, error) bool) { yield(core.Hint{}, err) }
	}
	var due []core.Hint
	for h, err := range s.Store.Due(ctx, before) {
		if err != nil {
			return func(yield func(core.Hint, error) bool) { yield(core.Hint{}, err) }
		}
		due = append(due, h)
	}
	slices.SortFunc(due, func(a, b core.Hint) int { // so that a test is the same each time
		return cmp.Or(strings.Compare(a.Ref.Key, b.Ref.Key), cmp.Compare(a.Ref.Shard, b.Ref.Shard), cmp.Compare(a.At, b.At))
	})
	return func(yield func(core.Hint, error) bool) {
		for i := range due {
			if !yield(due[i], nil) {
				return
			}
		}
	}
}

func (s dockStore) Group(ctx context.Context, ref core.Ref) (core.Group, error) {
	if s.d.look != nil {
		if err := s.d.look(ref); err != nil {
			return core.Group{}, err
		}
	}
	return s.Store.Group(ctx, ref)
}

func (s dockStore) Items(ctx context.Context, ref core.Ref, g *core.Group, span core.Span) (core.Page, error) {
	if err := errorOf(nil, s.d.read); err != nil {
		return core.Page{}, err
	}
	if s.d.page != nil {
		return s.d.page(span), nil
	}
	return s.Store.Items(ctx, ref, g, span)
}

func (s dockStore) Update(ctx context.Context, ref core.Ref, seen *core.Group, fn func(*core.Group) error) (core.Group, error) {
	if s.d.write != nil {
		if err := s.d.write(ref); err != nil {
			return core.Group{}, err
		}
	}
	return s.Store.Update(ctx, ref, seen, fn)
}

type dockQueue struct{ d *dock }

func (q dockQueue) Hand(_ context.Context, del core.Delivery) error {
	q.d.mu.Lock()
	defer q.d.mu.Unlock()
	q.d.handed = append(q.d.handed, del)
	return nil
}

type dockLetters struct{ d *dock }

func (l dockLetters) Put(ctx context.Context, letters []core.DeadLetter) error {
	if l.d.beforePut != nil {
		if err := l.d.beforePut(letters); err != nil {
			return err
		}
	}
	return l.d.memory.DeadLetters().Put(ctx, letters)
}

// hookedTurns is a coordinator whose calls a test may make fail.
type hookedTurns struct {
	core.Coordinator

	fail func() error
}

func (h *hookedTurns) Change(ctx context.Context, name string, fn func([]byte) ([]byte, error)) error {
	if err := errorOf(nil, h.fail); err != nil {
		return err
	}
	return h.Coordinator.Change(ctx, name, fn)
}

// silent is a timer that keeps nothing.
type silent struct{}

func (silent) Arm(context.Context, core.Hint) error { return nil }

// dockTimer keeps what is armed.
type dockTimer struct{ d *dock }

func (t dockTimer) Arm(_ context.Context, h core.Hint) error {
	if t.d.arm != nil {
		t.d.arm()
	}
	t.d.mu.Lock()
	defer t.d.mu.Unlock()
	t.d.armed = append(t.d.armed, h)
	return nil
}

// fullWait makes every wait as long as it may be.
type fullWait struct{}

func (fullWait) Int64N(n int64) int64 { return n - 1 }

// docked is a configuration of one buffer that leaves by flushes alone, once a
// minute, in batches of two.
func docked(change ...func(*core.Buffer)) *core.Config {
	d := core.NewDestination("out")
	d.Type, d.Concurrency = core.TypeStdout, 4
	d.Retry.Initial, d.Retry.Max = 10*time.Minute, 10*time.Minute
	b := core.NewBuffer("b")
	b.From, b.To, b.GroupBy = []string{"in"}, "out", "{{ .json.k }}"
	b.Batch.MaxItems = 2
	b.FlushEvery = time.Minute
	for _, f := range change {
		f(&b)
	}
	c := core.NewConfig()
	c.Sources, c.Destinations, c.Buffers = []core.Source{core.NewSource("in")}, []core.Destination{d}, []core.Buffer{b}
	return c
}

// windowed makes a buffer one of windows of a minute.
func windowed(b *core.Buffer) {
	b.FlushEvery = 0
	b.Window = &core.WindowConfig{Every: time.Minute, Grace: 5 * time.Second, MaxAhead: time.Hour, Time: "{{ .json.ts }}"}
}
