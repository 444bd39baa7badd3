package wire

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"sluice/core"
	"sluice/functions/internal/api"
	"sluice/infra/config"
	"sluice/infra/embed"
	"sluice/infra/observe"
	"sluice/infra/queue"
	"sluice/infra/timer"
)

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

	now      atomic.Pointer[services]
	sweeping sync.WaitGroup
	endSweep context.CancelFunc
}

func newNode(store *embed.Store, o *ServeOptions, sync bool) *node {
	clock := SystemClock()
	n := &node{store: store, timer: timer.New(clock), sync: sync, log: o.Log}
	n.queue = queue.New(n.concurrency)
	metrics := observe.NewMetrics(store.Stats, clock)
	last := new(api.LastAttempts)
	letters := store.DeadLetters()
	n.parts = parts{
		ports: core.Ports{
			Store: store, Timer: n.timer, Queue: n.queue, DeadLetters: letters,
			Clock: clock, IDs: NewIDs(), Rand: jitter{},
			Observer: observing(metrics.Observer(o.Log), last),
		},
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

// observing also remembers each buffer's last attempt.
func observing(o *core.Observer, last *api.LastAttempts) *core.Observer {
	both := *o
	both.Attempt = func(a *core.Attempt) {
		last.Record(a)
		o.Attempt(a)
	}
	return &both
}

// concurrency is how many sends to a destination may be under way.
func (n *node) concurrency(destination string) int {
	if d := n.now.Load().catalog.Destination(destination); d != nil {
		return d.Concurrency
	}
	return 1 // it was removed, or renamed, while a delivery waited for it
}

// start begins to work on a configuration.
func (n *node) start(c *core.Config) error {
	s, err := newServices(c, n.parts)
	if err != nil {
		return err
	}
	n.now.Store(s)
	n.timer.Start(n.check)
	n.queue.Start(n.deliver)
	return n.resume()
}

// resume arms every deadline that the store holds, by the present settings.
func (n *node) resume() error {
	armed, err := n.now.Load().sweeper.Resume(context.Background())
	if err != nil {
		return err
	}
	n.log.Info("deadlines armed", "count", armed)
	ctx, cancel := context.WithCancel(context.Background())
	n.endSweep = cancel
	n.sweeping.Go(func() { n.sweep(ctx) })
	return nil
}

func (n *node) check(ctx context.Context, h core.Hint) {
	n.report("check", n.now.Load().checker.Check(ctx, h))
}

func (n *node) deliver(ctx context.Context, d core.Delivery) {
	more, err := n.now.Load().deliverer.Deliver(ctx, d)
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
			_, err := n.now.Load().sweeper.Sweep(ctx)
			n.report("sweep", err)
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
func (n *node) reconfigure(c *core.Config, grace time.Duration) error {
	s, err := newServices(c, n.parts)
	if err != nil {
		return err
	}
	old := n.now.Swap(s)
	// what the old destinations are sending goes on; their idle connections need not
	time.AfterFunc(grace, old.senders.close)
	_, err = s.sweeper.Resume(context.Background())
	return err
}

// ServeHTTP answers by the present configuration.
func (n *node) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n.now.Load().handler.ServeHTTP(w, r)
}

// stop ends all work. Sends under way may go on until ctx ends; what is
// pending stays in the store.
func (n *node) stop(ctx context.Context) {
	if n.endSweep != nil {
		n.endSweep()
	}
	n.sweeping.Wait()
	n.timer.Stop()
	if err := n.queue.Stop(ctx); err != nil {
		n.log.Warn("sends were cut off at the end of the grace; they will be made again", "error", err)
	}
	if s := n.now.Load(); s != nil {
		s.senders.close()
	}
}
