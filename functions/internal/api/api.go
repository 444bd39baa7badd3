package api

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"sluice/core"
)

// Backend is what the API works on, all for one configuration. A process that
// takes no events leaves out the Ingester, and one that takes no control calls
// leaves out the Store and what stands below it. What is left out is not
// there for callers either, and the secrets that guard it are not resolved.
type Backend struct {
	Catalog  *core.Catalog
	Ready    func() error // why the process can't work now; nil: it can
	Ingester Ingester
	Refused  func(source string, n int) // events were refused before the Ingester saw them; may be nil

	Store       Store
	Replayer    Replayer
	DeadLetters DeadLetters
	Attempts    Attempts
	Breaker     func(ctx context.Context, destination string) (core.Breaker, error) // nil: they are not known here
	Flusher     Flusher                                                             // nil: nothing is flushed from here
}

// Ingester takes events in; see [core.Ingester].
type Ingester interface {
	Ingest(ctx context.Context, source string, events []core.Event, mayWait ...func() bool) (core.Receipt, error)
}

// Replayer sends dead letters again; see [core.Replayer].
type Replayer interface {
	Replay(ctx context.Context, q core.ReplayRequest) (core.ReplayReport, error)
}

// Flusher ships what is finished; see [core.Flusher].
type Flusher interface {
	Flush(ctx context.Context, o core.FlushOptions) (core.FlushReport, error)
	FlushBuffer(ctx context.Context, buffer string, o core.FlushOptions) (core.BufferFlush, error)
}

// Store is what the API reads of a [core.Store].
type Store interface {
	Group(ctx context.Context, ref core.Ref) (core.Group, error)
	Groups(ctx context.Context, buffer string, after *string, limit int) ([]core.NamedGroup, error)
	Stats(ctx context.Context) ([]core.BufferStats, error)
}

// DeadLetters is what the API reads of a [core.DeadLetterQueue].
type DeadLetters interface {
	List(ctx context.Context, f core.DeadLetterFilter, from string, limit int) ([]core.DeadLetter, string, error)
}

// Options are the handler's other parts.
type Options struct {
	// Resolve returns the secret that a reference stands for. It is called in
	// New alone.
	Resolve func(core.Secret) (string, error)
	Clock   core.Clock
	Metrics http.Handler // nil: /metrics is not there
	Log     *slog.Logger // nil: no logs
	// MaxBatchBytes bounds the body of a batch after decoding; 0: 32 MiB.
	MaxBatchBytes int64
	// MaxBodyBytes bounds the memory of all bodies that are being taken in at
	// a time; 0: 128 MiB. Each may need three times as much again on its way.
	MaxBodyBytes int64
	// MaxWaiting bounds how many callers wait at a time for what becomes of their
	// events, which others do not: more are answered pending; 0: 4,096.
	MaxWaiting int64
	// Working ends when the process stops: flushes under way begin no more sends.
	// Grace ends when those sends are cut off, too. nil: they do not end.
	Working, Grace context.Context //nolint:containedctx // of the process, not of a call
	// MaxListBytes is how many bytes of dead letters, by their Size, a list has
	// at most, unless it is of one that is larger; 0: 4 MiB.
	MaxListBytes int64
}

// handler is the API over one configuration. It does not change.
type handler struct {
	Backend
	Options

	sources   map[string]*source
	control   gate
	inflaters sync.Pool    // of *gzip.Reader
	memory    atomic.Int64 // left for bodies, in bytes
	seats     atomic.Int64 // left for callers that wait
}

// source is a source with who may send to it.
type source struct {
	*core.Source

	gate  gate
	limit limit // of one event
}

// New makes the API's handler. It fails, naming each of them, when secrets
// that it needs can't be resolved or used.
func New(b Backend, o Options) (http.Handler, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Working == nil {
		o.Working = context.Background()
	}
	if o.Grace == nil {
		o.Grace = context.Background()
	}
	if o.MaxBatchBytes == 0 {
		o.MaxBatchBytes = 32 * core.MiB
	}
	if o.MaxBodyBytes == 0 {
		o.MaxBodyBytes = 128 * core.MiB
	}
	h := &handler{Backend: b, Options: o, sources: make(map[string]*source)}
	h.memory.Store(o.MaxBodyBytes)
	h.seats.Store(cmp.Or(o.MaxWaiting, 4096))
	k := keyring{resolve: o.Resolve}
	c := b.Catalog.Config()
	if b.Store != nil {
		h.control = k.control(&c.Control)
	}
	for i := range c.Sources {
		if b.Ingester == nil {
			break
		}
		s := &c.Sources[i]
		h.sources[s.Name] = &source{Source: s, gate: k.source(s),
			limit: limit{s.MaxEventBytes, "that source " + s.Name + " takes for an event (maxEventBytes)"}}
	}
	if err := errors.Join(k.errs...); err != nil {
		return nil, err
	}
	return h, nil
}

// ServeHTTP answers one request.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer func() {
		if v := recover(); v != nil {
			h.rescue(w, r, v)
		}
	}()
	if r.Method == http.MethodHead {
		h.answer(headWriter{w}, r)
	} else {
		h.answer(w, r)
	}
}

func (h *handler) answer(w http.ResponseWriter, r *http.Request) {
	if err := h.serve(w, r); err != nil {
		h.fail(w, r, err)
	}
}

func (h *handler) serve(w http.ResponseWriter, r *http.Request) error {
	e, name := find(r.URL)
	switch {
	case e == nil || !h.has(e.part):
		return core.Errorf(core.NotFound, "there is nothing at this path; the API is below /v1/")
	case !e.allows(r.Method):
		return methodNotAllowed(e.methods)
	case e.part == control:
		if err := h.control.admit(r); err != nil {
			return err
		}
	}
	return e.serve(h, w, r, name)
}

// has reports whether this process has a part of the API.
func (h *handler) has(p part) bool {
	switch p {
	case intake:
		return h.Ingester != nil
	case control:
		return h.Store != nil
	default:
		return true
	}
}

// fail answers with the problem that err is. What it says of a fault of ours
// goes to the log alone.
func (h *handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	p := problemOf(err)
	if p.Status == http.StatusInternalServerError {
		h.Log.ErrorContext(r.Context(), "request failed", slog.String("method", r.Method), slog.String("path", r.URL.Path), slog.Any("err", err))
	}
	p.write(w)
}

// rescue turns a panic into a 500: one request's fault must not end the
// others.
func (h *handler) rescue(w http.ResponseWriter, r *http.Request, v any) {
	if v == http.ErrAbortHandler { //nolint:errorlint,err113 // net/http compares it so
		panic(v)
	}
	h.Log.ErrorContext(r.Context(), "panic", slog.String("method", r.Method), slog.String("path", r.URL.Path),
		slog.Any("panic", v), slog.String("stack", string(debug.Stack())))
	problemOf(nil).write(w)
}

// headWriter answers a HEAD: everything but the body.
type headWriter struct{ http.ResponseWriter }

// Write drops p.
func (headWriter) Write(p []byte) (int, error) { return len(p), nil }
