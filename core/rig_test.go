package core_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/infra/memory"
	"sluice/infra/queue"
	"sluice/infra/timer"
)

// rig is the whole core on the memory store, the real timer and the real
// queue. It lives in a synctest bubble, so time passes only when the test says so.
type rig struct {
	t       *testing.T
	begin   time.Time
	setBack atomic.Int64 // how far the system clock was set back, as a duration
	store   rigStore
	timer   *timer.Timer
	queue   *queue.Queue

	catalog   *core.Catalog
	ingester  *core.Ingester
	checker   *core.Checker
	deliverer *core.Deliverer
	sweeper   *core.Sweeper
	replayer  *core.Replayer

	shared  *hookedTurns // the coordinator
	told    counts       // what was observed
	asked   atomic.Int64 // calls of the coordinator
	broken  atomic.Bool  // what fails in the background is expected to
	dead    atomic.Bool  // a crash is going on
	lost    atomic.Bool  // hints are lost
	failPut func() error // fails putting dead letters

	mu     sync.Mutex
	answer func(destination string, b *core.Batch) core.Response
	takes  time.Duration // how long a send takes
	sent   []sent
	peak   int // sends under way at a time, at most
	busy   int
}

// sent is one send.
type sent struct {
	at          time.Duration // since the rig began
	destination string
	core.Batch
}

// config is a configuration of one source, one destination and one buffer.
func config(change ...func(*core.Config)) *core.Config {
	c := &core.Config{
		Store:   core.NewConfig().Store,
		Sources: []core.Source{{Name: "in", Type: core.TypeHTTP, MaxEventBytes: core.MiB}},
		Destinations: []core.Destination{{
			Name: "out", Type: core.TypeStdout, Format: core.FormatNDJSON, Timeout: 15 * time.Second, Concurrency: 16,
			Retry: core.RetryPolicy{MaxAttempts: 20, Initial: time.Second, Max: 15 * time.Minute},
		}},
		Buffers: []core.Buffer{{
			Name: "b", From: []string{"in"}, To: "out", GroupBy: "{{ .json.k }}", Concurrency: 1, Shards: 1,
			Batch:    core.BatchConfig{MaxItems: 50, MaxBytes: 256 * core.KiB, IdleTimeout: 5 * time.Second, MaxWait: 15 * time.Second},
			Overflow: core.OverflowConfig{MaxBytes: core.MiB},
		}},
	}
	for _, f := range change {
		f(c)
	}
	return c
}

// batch sets the flush conditions of the first buffer.
func batch(items int, idle, wait time.Duration) func(*core.Config) {
	return func(c *core.Config) {
		c.Buffers[0].Batch.MaxItems = items
		c.Buffers[0].Batch.IdleTimeout, c.Buffers[0].Batch.MaxWait = idle, wait
	}
}

func ordered(c *core.Config) { c.Buffers[0].Ordered = true }

// run runs a test on a rig, in its own bubble.
func run(t *testing.T, c *core.Config, test func(*rig)) {
	t.Helper()
	t.Parallel()
	runAlone(t, c, test)
}

// runAlone is run while no other test runs.
func runAlone(t *testing.T, c *core.Config, test func(*rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{t: t, begin: time.Now(), store: newStore(t)}
		r.shared = &hookedTurns{Coordinator: memory.NewCoordinator(), fail: func() error {
			r.asked.Add(1)
			return nil
		}}
		r.start(c)
		defer r.stop()
		test(r)
	})
}

// start starts everything on the store as it is, as a new process does.
func (r *rig) start(c *core.Config) {
	clock := core.ClockFunc(func() core.Millis { return core.At(time.Now().Add(-time.Duration(r.setBack.Load()))) })
	r.timer = timer.New(clock)
	r.queue = queue.New(func(name string) int {
		if d := r.catalog.Destination(name); d != nil {
			return d.Concurrency
		}
		return 4 // of what is held
	})
	r.configure(c, clock)
	r.timer.Start(func(ctx context.Context, h core.Hint) { r.noError(r.checker.Check(ctx, h)) })
	r.queue.Start(func(ctx context.Context, d core.Delivery) {
		more, err := r.deliverer.Deliver(ctx, d)
		r.noError(err)
		if more {
			r.noError(r.queue.Hand(ctx, d))
		}
	})
	_, err := r.sweeper.Resume(context.Background())
	require.NoError(r.t, err)
}

func (r *rig) configure(c *core.Config, clock core.Clock) {
	var err error
	r.catalog, err = core.NewCatalog(c, toy)
	require.NoError(r.t, err)
	n := 0
	var idMu sync.Mutex
	ports := core.Ports{
		Store: r.store, Timer: hints{r}, Queue: r.queue, DeadLetters: letterQueue{r}, Coordinator: r.shared, Clock: clock, Sleep: sleep, Slot: r.queue.Hold,
		Rand:   &lockedRand{rand: rand.New(rand.NewPCG(1, 2))},
		Sender: func(name string) core.Sender { return sender{r, name} },
		IDs: core.IDsFunc(func() string {
			idMu.Lock()
			defer idMu.Unlock()
			n++
			return fmt.Sprintf("id%06d", n)
		}),
		Observer: r.told.observer(func(op string, err error) {
			if r.failPut == nil && !r.broken.Load() {
				r.t.Errorf("%s: %v", op, err)
			}
		}),
	}
	r.ingester = core.NewIngester(r.catalog, ports)
	r.checker = core.NewChecker(r.catalog, ports)
	r.deliverer = core.NewDeliverer(r.catalog, ports)
	r.sweeper = core.NewSweeper(r.catalog, ports)
	r.replayer = core.NewReplayer(r.catalog, ports, r.store.DeadLetters())
}

// reconfigure makes the running rig go on with another configuration.
func (r *rig) reconfigure(c *core.Config) {
	r.stopWork()
	r.start(c)
}

func (r *rig) noError(err error) {
	if err != nil && !r.dead.Load() && !r.broken.Load() {
		r.t.Errorf("in the background: %v", err)
	}
}

func (r *rig) stopWork() {
	r.timer.Stop()
	require.NoError(r.t, r.queue.Stop(context.Background()))
}

func (r *rig) stop() {
	r.stopWork()
	require.NoError(r.t, r.store.Close())
}

// crash ends the process at once, and starts a new one.
func (r *rig) crash(c *core.Config) {
	r.dead.Store(true)
	r.store = r.store.Reopen()
	r.timer.Stop()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = r.queue.Stop(ctx) // its workers' settling fails on the closed store
	r.dead.Store(false)
	r.start(c)
}

// put sends one event of a key.
func (r *rig) put(key string) { r.post(fmt.Sprintf(`{"k":%q}`, key)) }

// post sends events in one request.
func (r *rig) post(bodies ...string) core.Receipt {
	receipt, err := r.tryPost(bodies...)
	require.NoError(r.t, err)
	return receipt
}

func (r *rig) tryPost(bodies ...string) (core.Receipt, error) {
	events := make([]core.Event, len(bodies))
	for i, b := range bodies {
		events[i] = core.Event{ContentType: "application/json", Body: []byte(b)}
	}
	return r.ingester.Ingest(context.Background(), "in", events)
}

// at waits until a time since the rig began.
func (r *rig) at(d time.Duration) {
	wait := time.NewTimer(time.Until(r.begin.Add(d)))
	<-wait.C
	synctest.Wait()
}

// sends returns what has been sent so far, in the order in which sends began.
func (r *rig) sends() []sent {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]sent(nil), r.sent...)
}

// most is how many sends were under way at a time.
func (r *rig) most() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.peak
}

// sendsTake sets how long a send takes.
func (r *rig) sendsTake(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.takes = d
}

// summary is what was sent, a line each: when, how many, why, which attempt.
func (r *rig) summary() string {
	var lines []string
	for _, s := range r.sends() {
		lines = append(lines, fmt.Sprintf("%.3f %s %d %s #%d", s.at.Seconds(), s.Group, len(s.Items), s.Reason, s.Attempt))
	}
	return strings.Join(lines, "\n")
}

func (r *rig) deadLetters() []core.DeadLetter {
	letters, _, err := r.store.DeadLetters().List(context.Background(), core.DeadLetterFilter{}, "", 10_000)
	require.NoError(r.t, err)
	return letters
}

type sender struct {
	r    *rig
	name string
}

func (s sender) Send(ctx context.Context, b *core.Batch) core.Response {
	s.r.mu.Lock()
	s.r.sent = append(s.r.sent, sent{time.Since(s.r.begin), s.name, *b})
	s.r.busy++
	s.r.peak = max(s.r.peak, s.r.busy)
	answer, takes := s.r.answer, s.r.takes
	s.r.mu.Unlock()
	defer func() {
		s.r.mu.Lock()
		s.r.busy--
		s.r.mu.Unlock()
	}()
	if takes > 0 {
		select {
		case <-time.After(takes):
		case <-ctx.Done():
			return core.Response{Err: core.Errorf(core.Canceled, "stopped")}
		}
	}
	if answer == nil {
		return core.Response{Status: 200}
	}
	return answer(s.name, b)
}

// hints is the timer, whose hints a test may lose.
type hints struct{ r *rig }

func (h hints) Arm(ctx context.Context, hint core.Hint) error {
	if h.r.lost.Load() {
		return nil
	}
	return h.r.timer.Arm(ctx, hint)
}

// letterQueue is the dead-letter queue, which a test may break.
type letterQueue struct{ r *rig }

func (q letterQueue) Put(ctx context.Context, letters []core.DeadLetter) error {
	if q.r.failPut != nil {
		if err := q.r.failPut(); err != nil {
			return err
		}
	}
	return q.r.store.DeadLetters().Put(ctx, letters)
}

type lockedRand struct {
	mu   sync.Mutex
	rand *rand.Rand
}

func (l *lockedRand) Int64N(n int64) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rand.Int64N(n)
}

func bodies(it []core.Item) []string {
	var s []string
	for i := range it {
		s = append(s, string(it[i].Body))
	}
	return s
}
