package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	"sluice/core"
	"sluice/functions/internal/api"
	"sluice/infra/config"
	"sluice/infra/memory"
)

// epoch is the time at which every test begins.
var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// worldConfig is the configuration of the system that tests talk to.
const worldConfig = `
sources:
  web: {}
  lonely: {}
  guarded: {auth: {bearer: [env:GUARD]}}
destinations:
  crm: {url: "https://crm.example.com/events"}
  console: {type: stdout}
buffers:
  orders: {from: [web, guarded], to: crm, groupBy: "{{ .json.customer }}"}
  audit: {from: [web], to: console, overflow: {maxBytes: 1MiB}}
`

// world is a running system for tests: the real API over a store in memory,
// in front of which answers can be scripted. Its clock moves when it is told.
type world struct {
	server *httptest.Server
	store  *memory.Store
	api    http.Handler

	mu       sync.Mutex
	now      time.Time
	log      []string // requests and waits
	scripted []http.HandlerFunc
	refuse   map[string]int // status by destination
	ids      int
}

func newWorld() (*world, error) {
	w := &world{store: memory.New(), now: epoch, refuse: map[string]int{}}
	r := config.Parse("world.yaml", []byte(worldConfig))
	if err := r.Err(); err != nil {
		return nil, err
	}
	catalog, err := core.NewCatalog(r.Config, nil)
	if err != nil {
		return nil, err
	}
	clock := core.ClockFunc(func() core.Millis { return core.At(w.clock()) })
	last := &api.LastAttempts{}
	letters := w.store.DeadLetters()
	ports := core.Ports{
		Store: w.store, Timer: dropping{}, Queue: dropping{}, DeadLetters: letters, Clock: clock,
		IDs:      core.IDsFunc(w.id),
		Sender:   func(name string) core.Sender { return destination{w, name} },
		Observer: last.Observer(), Rand: longest{},
	}
	w.api, err = api.New(api.Backend{
		Catalog: catalog, Ingester: core.NewIngester(catalog, ports), Replayer: core.NewReplayer(catalog, ports, letters),
		Store: w.store, DeadLetters: letters, Attempts: last, Flusher: core.NewFlusher(catalog, ports, new(core.Cadence)),
		Ready: func() error { return nil },
	}, api.Options{Clock: clock, Resolve: func(core.Secret) (string, error) { return "swordfish", nil }})
	if err != nil {
		return nil, err
	}
	w.server = httptest.NewServer(w)
	return w, nil
}

func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *world) id() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ids++
	return fmt.Sprintf("id%d", w.ids)
}

// wait is a program's wait: it takes no time but moves the clock.
func (w *world) wait(ctx context.Context, d time.Duration) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
	w.log = append(w.log, "wait "+d.String())
	return ctx.Err()
}

// script makes the next request get an answer of its own.
func (w *world) script(h http.HandlerFunc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.scripted = append(w.scripted, h)
}

// ServeHTTP logs a request and answers it.
func (w *world) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	h := w.api
	w.mu.Lock()
	line := []string{r.Method, r.URL.RequestURI()}
	for _, name := range []string{"Content-Type", "Idempotency-Key", "Authorization"} {
		if v := r.Header.Get(name); v != "" {
			line = append(line, strings.ToLower(name)+"="+v)
		}
	}
	if len(body) > 0 {
		line = append(line, fmt.Sprintf("lines=%d bytes=%d", bytes.Count(body, []byte("\n")), len(body)))
	}
	w.log = append(w.log, strings.Join(line, " "))
	if len(w.scripted) > 0 {
		h, w.scripted = w.scripted[0], w.scripted[1:]
	}
	w.mu.Unlock()
	h.ServeHTTP(rw, r)
}

// longest makes every wait as long as it may be.
type longest struct{}

func (longest) Int64N(n int64) int64 { return n - 1 }

// dropping is a timer and a queue that lose every hint.
type dropping struct{}

func (dropping) Arm(context.Context, core.Hint) error      { return nil }
func (dropping) Hand(context.Context, core.Delivery) error { return nil }

// destination is a destination that takes everything unless it is told not to.
type destination struct {
	world *world
	name  string
}

func (d destination) Send(context.Context, *core.Batch) core.Response {
	d.world.mu.Lock()
	defer d.world.mu.Unlock()
	if status := d.world.refuse[d.name]; status != 0 {
		return core.Response{Status: status, Answer: "no"}
	}
	return core.Response{Status: http.StatusOK}
}

// hostile is text that would take over a terminal.
const hostile = "a\x1b[31m\u202eb\xff"

// fill puts events, a claim that waits for a retry, and dead letters into the
// store, as of some time ago.
func (w *world) fill(ctx context.Context) error {
	policy := &core.Policy{MaxItems: 50, MaxBytes: 1 << 20, IdleTimeout: 5 * time.Second, MaxWait: 15 * time.Second, Concurrency: 1, Lease: 30 * time.Second, MaxHold: 15 * time.Minute}
	at := func(ago time.Duration) core.Millis { return core.At(epoch.Add(-ago)) }
	put := func(buffer, key string, n int, ago time.Duration) error {
		events := make([]core.Event, n)
		for i := range events {
			events[i] = core.Event{ID: w.id(), Source: "web", Body: make([]byte, 700), ReceivedAt: at(ago)}
		}
		_, err := w.store.Append(ctx, at(ago), []core.Part{{Ref: core.Ref{Buffer: buffer, Key: key}, Life: w.id(), Events: events, Policy: policy}})
		return err
	}
	err := errors.Join(
		put("orders", "7", 3, 2*time.Second), put("orders", "", 1, 90*time.Second), put("orders", hostile, 1, 26*time.Hour),
		put("retired", "x", 1200, 40*24*time.Hour),
	)
	_, e := w.store.Update(ctx, core.Ref{Buffer: "orders", Key: "7"}, nil, func(g *core.Group) error {
		c, err := g.Claim(core.Taking{From: 1, To: 2, Through: 1400, Items: 2, Reason: core.ReasonIdle}, policy, at(time.Second))
		if err != nil {
			return err
		}
		return g.Release(c.ID, c.Lease, at(-4*time.Second), "status 503 "+hostile, policy, at(time.Second))
	})
	letter := func(id, key string, status int, ago time.Duration) core.DeadLetter {
		return core.DeadLetter{
			ID: id + "/1", Batch: id, Buffer: "orders", Group: key, Destination: "crm", Reason: core.DeadPermanent, Status: status,
			Attempts: 1, FirstErrorAt: at(ago), LastErrorAt: at(ago), LastError: "status 400 " + hostile,
			Item: core.Item{Seq: 1, Event: core.Event{ID: id, Source: "web", Body: []byte(`{"n":1}`), ReceivedAt: at(ago)}},
		}
	}
	return errors.Join(err, e, w.store.DeadLetters().Put(ctx, []core.DeadLetter{
		letter("b1", "7", 400, 3*time.Hour), letter("b2", hostile, 0, 5*time.Minute),
	}))
}
