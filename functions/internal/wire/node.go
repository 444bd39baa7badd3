package wire

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"time"

	"sluice/core"
	"sluice/functions/internal/api"
	"sluice/functions/internal/observers"
	"sluice/functions/internal/system"
	"sluice/infra/attemptlog"
	"sluice/infra/config"
	"sluice/infra/embed"
	"sluice/infra/memory"
	"sluice/infra/observe"
	"sluice/infra/queue"
	"sluice/infra/timer"
)

// copiesGrace is how long copies under way may go on at a stop, if others may at
// least as long.
const copiesGrace = 5 * time.Second

// heldMoves is how many batches of one buffer's held events go on to it at a time.
const heldMoves = 4

// sweepEvery is how often the node looks for what lost hints left behind.
const sweepEvery = time.Minute

// node is one process on an embedded store.
type node struct {
	store *embed.Store
	timer *timer.Timer
	queue *queue.Queue
	sync  bool // how the store was opened
	parts parts
	log   *slog.Logger

	finish time.Duration // how long a source may go on with what it has received
	copies time.Duration // how long copies under way may go on

	working context.Context //nolint:containedctx // of the process: its end begins the stop
	endWork context.CancelFunc
	sending context.Context //nolint:containedctx // of flushes: its end cuts their sends off
	cut     context.CancelFunc
	copying context.Context //nolint:containedctx // of shadows: its end cuts their sends off
	endCopy context.CancelFunc

	mu       sync.RWMutex // held for writing while the services are replaced
	now      *services
	retiring sync.WaitGroup // old services whose work has not ended
	sweeping sync.WaitGroup
	flushing schedule
	sources  intakes
}

// use returns the present services, which stay open until done is called.
func (n *node) use() (s *services, done func()) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	n.now.users.Add(1)
	return n.now, n.now.users.Done
}

func newNode(store *embed.Store, o *ServeOptions, sync bool) *node {
	clock := system.Clock()
	n := &node{store: store, timer: timer.New(clock), sync: sync, log: o.Log, finish: max(min(lastWords, o.Grace/2), 1), copies: min(copiesGrace, o.Grace)}
	n.working, n.endWork = context.WithCancel(context.Background())
	n.sending, n.cut = context.WithCancel(context.Background())
	n.copying, n.endCopy = context.WithCancel(context.Background())
	n.queue = queue.New(n.concurrency)
	n.flushing.flush = n.flush
	n.sources.run = n.receive
	metrics := observe.NewMetrics(store.Stats, clock)
	last := new(api.LastAttempts)
	letters := store.DeadLetters()
	n.parts = parts{
		ports: core.Ports{
			Store: store, Timer: n.timer, Queue: n.queue, DeadLetters: letters,
			Coordinator: memory.NewCoordinator(), Sleep: n.sleep,
			Clock: clock, IDs: system.IDs(), Rand: system.Jitter{}, Slot: n.queue.Hold, Copies: until(n.copying),
			Observer: observers.Join(
				last.Observer(), metrics.Observer(), attemptlog.Observer(o.Log, clock),
			),
		},
		cadence: new(core.Cadence),
		working: n.working,
		sending: n.sending,
		letters: letters,
		resolve: config.NewSecrets(os.LookupEnv).Resolve,
		stdout:  o.Stdout,
		metrics: metrics.Handler(),
		last:    last,
		ready:   store.Failed,
		log:     o.Log,
	}
	return n
}

// sleep waits for d, or until ctx or the work of the process ends: whoever waits
// for the outcome of events is answered before the process stops.
func (n *node) sleep(ctx context.Context, d time.Duration) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(n.working, cancel)()
	return system.Sleep(ctx, d)
}

// until narrows contexts to ones that end with another, too.
func until(end context.Context) func(context.Context) (context.Context, context.CancelFunc) {
	return func(ctx context.Context) (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancel(ctx)
		stop := context.AfterFunc(end, cancel)
		if end.Err() != nil {
			cancel() // at once
		}
		return ctx, func() {
			stop()
			cancel()
		}
	}
}

// concurrency is how many sends to a destination may be under way.
func (n *node) concurrency(destination string) int {
	if _, held := core.Held(destination); held {
		return heldMoves
	}
	n.mu.RLock()
	defer n.mu.RUnlock()
	if d := n.now.catalog.Destination(destination); d != nil {
		return d.Concurrency
	}
	return 1 // it was removed, or renamed, while a delivery waited
}

// start begins to work on a configuration.
func (n *node) start(c *core.Config) error {
	s, err := newServices(c, n.parts)
	if err != nil {
		return err
	}
	n.now = s
	n.timer.Start(n.check)
	n.queue.Start(n.deliver)
	armed, err := s.sweeper.Resume(context.Background())
	if err != nil {
		return err
	}
	n.log.Info("deadlines armed", "count", armed)
	n.sweeping.Go(func() { n.sweep(n.working) })
	n.flushing.set(n.working, s.flusher.Scheduled())
	n.sources.set(n.working, s.intakes)
	return nil
}

func (n *node) check(ctx context.Context, h core.Hint) {
	s, done := n.use()
	defer done()
	n.report("check", s.checker.Check(ctx, h))
}

func (n *node) deliver(ctx context.Context, d core.Delivery) {
	s, done := n.use()
	defer done()
	more, err := s.deliverer.Deliver(ctx, d)
	n.report("deliver", err)
	if more {
		n.report("deliver", n.queue.Hand(ctx, d))
	}
}

func (n *node) sweep(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s, done := n.use()
			_, err := s.sweeper.Sweep(ctx)
			n.report("sweep", err)
			done()
		case <-ctx.Done():
			return
		}
	}
}

// report tells of a failure in the background; the sweep makes up for it.
func (n *node) report(op string, err error) {
	if err != nil && !errors.Is(err, context.Canceled) {
		n.parts.ports.Observer.Failed(op, err)
	}
}

// reconfigure goes on with another configuration. When it returns an error,
// nothing has changed.
func (n *node) reconfigure(c *core.Config) error {
	s, err := newServices(c, n.parts)
	if err != nil {
		return err
	}
	n.mu.Lock()
	old := n.now
	n.now = s
	n.mu.Unlock()
	n.retiring.Go(old.retire)
	_, err = s.sweeper.Resume(context.Background())
	n.report("arm deadlines by the new configuration", err)
	n.flushing.set(n.working, s.flusher.Scheduled())
	n.sources.set(n.working, s.intakes)
	return nil
}

// ServeHTTP answers by the present configuration.
func (n *node) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s, done := n.use()
	defer done()
	s.handler.ServeHTTP(w, r)
}

// halt ends what begins work by itself, sources first: they end with what they
// have received. Flushes begin no more sends.
func (n *node) halt() {
	n.endWork()
	n.sources.going.Wait()
	n.sweeping.Wait()
	n.timer.Stop()
}

// stop ends all work. Sends under way may go on until ctx ends, and copies for a
// while; what is pending stays in the store.
func (n *node) stop(ctx context.Context) {
	defer time.AfterFunc(n.copies, n.endCopy).Stop()
	n.halt()
	defer context.AfterFunc(ctx, n.cut)()
	if err := n.queue.Stop(ctx); err != nil {
		n.log.Warn("sends were cut off at the end of the grace; they will be made again", "error", err)
	}
	n.flushing.going.Wait()
}

// close closes the destinations, after stop and once no request is under way.
// A write that hangs is not waited for once ctx has ended, as the process ends.
func (n *node) close(ctx context.Context) {
	n.cut()
	n.endCopy()
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		n.retiring.Wait()
		if n.now != nil {
			n.now.retire()
		}
	}()
	select {
	case <-closed:
	case <-ctx.Done():
	}
}
