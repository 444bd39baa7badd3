package wire

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"sync"

	"sluice/core"
	"sluice/functions/internal/api"
	"sluice/functions/internal/language"
	"sluice/functions/internal/senders"
)

// services are the core on one configuration, with its way in and its ways out.
type services struct {
	catalog   *core.Catalog
	ingester  *core.Ingester
	intakes   []intake
	checker   *core.Checker
	deliverer *core.Deliverer
	sweeper   *core.Sweeper
	flusher   *core.Flusher
	senders   *senders.Set
	handler   http.Handler

	users sync.WaitGroup // whoever works on them; see node.use
}

// retire closes the destinations when nobody works on the services any more.
func (s *services) retire() {
	s.users.Wait()
	s.senders.Close()
}

// parts is what services are built on.
type parts struct {
	ports   core.Ports // without senders
	cadence *core.Cadence
	working context.Context //nolint:containedctx // see node
	sending context.Context //nolint:containedctx // see node
	letters core.DeadLetterQueue
	resolve senders.Resolver
	stdout  io.Writer
	metrics http.Handler
	last    *api.LastAttempts
	ready   func() error
	log     *slog.Logger
}

// resolvable is what is wrong with a configuration's references, of all fields at once.
func resolvable(c *core.Config, resolve senders.Resolver) error {
	var errs []error
	for path, ref := range c.Secrets() {
		_, err := resolve(ref)
		errs = append(errs, core.Wrap(core.Invalid, err, "%s", path))
	}
	return errors.Join(errs...)
}

// newServices builds services. It changes nothing outside them, and leaves
// nothing open when it returns an error.
func newServices(c *core.Config, p parts) (*services, error) {
	catalog, err := core.NewCatalog(c, language.JQ)
	if err != nil {
		return nil, err
	}
	if err := resolvable(c, p.resolve); err != nil {
		return nil, err
	}
	queues, err := intakesOf(c, &p)
	if err != nil {
		return nil, err
	}
	open, err := senders.Open(c, openers(p.resolve, p.stdout, p.ports.Clock))
	if err != nil {
		return nil, err
	}
	ports := p.ports
	ports.Sender = open.Sender
	flusher := core.NewFlusher(catalog, ports, p.cadence)
	ingester := core.NewIngester(catalog, ports)
	handler, err := api.New(api.Backend{
		Catalog:     catalog,
		Ingester:    ingester,
		Refused:     ports.Observer.Refused,
		Replayer:    core.NewReplayer(catalog, ports, p.letters),
		Store:       ports.Store,
		DeadLetters: p.letters,
		Ready:       p.ready,
		Attempts:    p.last,
		Breaker: func(ctx context.Context, destination string) (core.Breaker, error) {
			return core.BreakerOf(ctx, ports.Coordinator, destination)
		},
		Flusher: flusher,
	}, api.Options{
		Resolve: p.resolve, Clock: ports.Clock, Metrics: p.metrics, Log: p.log, Working: p.working, Grace: p.sending,
	})
	if err != nil {
		open.Close()
		return nil, err
	}
	return &services{
		catalog:   catalog,
		ingester:  ingester,
		intakes:   queues,
		checker:   core.NewChecker(catalog, ports),
		deliverer: core.NewDeliverer(catalog, ports),
		sweeper:   core.NewSweeper(catalog, ports),
		flusher:   flusher,
		senders:   open,
		handler:   handler,
	}, nil
}
