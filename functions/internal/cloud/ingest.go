package cloud

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"sluice/core"
	"sluice/functions/internal/api"
	"sluice/functions/internal/edge"
)

const (
	// readyTimeout bounds the look at the store by which a function finds out
	// whether it can work.
	readyTimeout = 2 * time.Second
	// readyAge is how long the answer holds: anybody may ask, and each look is
	// paid for.
	readyAge = time.Second
)

// HTTPHandler answers the events of an HTTP API or a function URL.
type HTTPHandler = func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error)

// Ingest makes the function that takes events in: POST /v1/sources/..., and
// the probes.
func Ingest(ctx context.Context, p Process) (HTTPHandler, error) {
	f, err := setup(ctx, p, requestSecrets)
	if err != nil {
		return nil, err
	}
	s := f.store()
	return f.ingest(&outside{store: s, timer: f.ladder(), queue: f.queue(), letters: f.letters(), shared: s})
}

func (f *function) ingest(o *outside) (HTTPHandler, error) {
	h, err := api.New(api.Backend{
		Catalog:  f.catalog,
		Ready:    ready(o.store, f.clock),
		Ingester: core.NewIngester(f.catalog, f.ports(o)),
		Refused:  f.ports(o).Observer.Refused,
	}, api.Options{Resolve: f.settings.resolve, Clock: f.clock, Log: f.log})
	if err != nil {
		return nil, err
	}
	return f.http(h), nil
}

// http serves a handler.
func (f *function) http(h http.Handler) HTTPHandler {
	return invocations(f, edge.HTTP(h, api.Refuse))
}

// ready asks the store for a group that does not exist, which tells whether it
// answers. Groups are read consistently, which costs a whole read unit; so it
// asks no more than once in [readyAge].
func ready(s core.Store, clock core.Clock) func() error {
	var mu sync.Mutex
	var asked core.Millis
	var answer error
	return func() error {
		mu.Lock()
		defer mu.Unlock()
		now := clock.Now()
		if asked != 0 && asked <= now && now < asked.Add(readyAge) { // else the clock was set back
			return answer
		}
		ctx, cancel := context.WithTimeout(context.Background(), readyTimeout)
		defer cancel()
		_, answer = s.Group(ctx, core.Ref{Buffer: "readyz"})
		asked = clock.Now()
		return answer
	}
}
