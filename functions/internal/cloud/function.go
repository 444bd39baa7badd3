package cloud

import (
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/aws/aws-sdk-go-v2/aws"

	"sluice/core"
	"sluice/functions/internal/observers"
	"sluice/functions/internal/system"
	"sluice/infra/attemptlog"
	"sluice/infra/emf"
)

// flushMargin is how long before the end of its time what an invocation has
// measured is written: Lambda then ends the process without a word.
const flushMargin = 250 * time.Millisecond

// Process is the process that a function runs in.
type Process struct {
	Env     Lookup
	Stdout  io.Writer // each line of the log is one Write
	Secrets Secrets   // nil: the function needs none but those of the environment
	// Language compiles filters and transforms; nil: the function runs none, and
	// is smaller without what would.
	Language core.Language
	// HTTP is what AWS is called with; nil: a client that keeps its connections
	// for as long as the process lives.
	HTTP  aws.HTTPClient
	Clock core.Clock // nil: the system's
}

// function is what all functions have.
type function struct {
	env      Env
	settings *settings
	catalog  *core.Catalog
	clients  clients
	clock    core.Clock
	log      *slog.Logger
	metrics  *emf.Metrics
	observer *core.Observer

	stdout  io.Writer
	request atomic.Pointer[string] // the id of the present invocation
}

// Of the memory that a function has, some is not Go's: the collector works
// harder before the rest is used up, as Lambda ends a process that wants more.
const (
	memoryShare = 85
	percent     = 100
)

// settleIn makes the process at home in its surroundings.
func settleIn(e *Env) {
	if e.Memory > 0 {
		debug.SetMemoryLimit(e.Memory / percent * memoryShare)
	}
	log.SetFlags(0) // the runtime logs errors as JSON, which a date in front would spoil
}

// setup reads environment, configuration and the secrets of a part of it.
func setup(ctx context.Context, p Process, needed part) (*function, error) {
	env, err := ReadEnv(p.Env)
	if err != nil {
		return nil, err
	}
	s, err := loadSettings(ctx, &env, p, needed)
	if err != nil {
		return nil, err
	}
	compile := p.Language
	if compile == nil {
		compile = unread
	}
	catalog, err := core.NewCatalog(s.config, compile)
	if err != nil {
		return nil, err
	}
	settleIn(&env)
	clock := p.Clock
	if clock == nil {
		clock = system.Clock()
	}
	f := newFunction(env, clock, p.Stdout)
	f.settings, f.catalog, f.clients = s, catalog, newClients(&env, p.HTTP)
	for _, w := range s.idle {
		f.log.Warn("the configuration says what has no effect here", "warning", w.String())
	}
	for _, w := range s.hurts {
		f.log.Debug("the configuration works but may hurt", "warning", w.String())
	}
	return f, nil
}

// unread is the language of a function that runs no program.
func unread(string) (core.Program, error) { return nil, nil }

// newFunction is a function that can log and measure.
func newFunction(env Env, clock core.Clock, stdout io.Writer) *function {
	f := &function{env: env, clock: clock, stdout: &lines{w: stdout}}
	f.log = slog.New(&handler{slog.NewJSONHandler(f.stdout, &slog.HandlerOptions{Level: env.LogLevel}), f})
	f.metrics = emf.New(env.Environment, clock)
	f.observer = observers.Join(f.metrics.Observer(), attemptlog.Observer(f.log, clock))
	return f
}

// failed counts what did not work in the background, and is logged elsewhere.
func (f *function) failed(op string, err error) { f.metrics.Observer().Failed(op, err) }

// flush writes what has been measured.
func (f *function) flush() {
	if err := f.metrics.Flush(f.stdout); err != nil {
		f.log.Error("metrics were lost", "error", err)
	}
}

// invocations makes a handler one that can be started: what an invocation
// measures is written at its end, whatever that is, and what fails is logged.
//
// An error, or a panic, is logged and goes on to the runtime, which prints it
// once more. That is the one exception to "logged or returned": Lambda has to
// be told, or it would take the invocation for good; and the runtime's line,
// which nothing but muting all its lines would keep out, has no level to find it
// by, no code, and not the id of the invocation.
func invocations[In, Out any](f *function, handle func(context.Context, In) (Out, error)) func(context.Context, In) (Out, error) {
	return func(ctx context.Context, in In) (Out, error) {
		if l, ok := lambdacontext.FromContext(ctx); ok {
			f.request.Store(&l.AwsRequestID)
		}
		if deadline, ok := ctx.Deadline(); ok {
			late := time.AfterFunc(time.Until(deadline)-flushMargin, func() {
				f.log.Error("the invocation is about to run out of time")
				f.flush()
			})
			defer late.Stop()
		}
		defer f.flush()
		defer func() {
			if v := recover(); v != nil {
				f.log.Error("the invocation panics", "panic", fmt.Sprint(v))
				panic(v)
			}
		}()
		out, err := handle(ctx, in)
		if err != nil {
			f.log.Error("the invocation failed", "code", core.CodeOf(err).String(), "error", err)
		}
		return out, err
	}
}

// Fail reports in one line why a function cannot start, and returns the exit
// code that says so.
func Fail(p Process, err error) int {
	name, _ := p.Env("AWS_LAMBDA_FUNCTION_NAME")
	slog.New(slog.NewJSONHandler(p.Stdout, nil)).Error("the function cannot start",
		"function", name, "code", core.CodeOf(err).String(), "error", err.Error())
	return 1
}

// handler adds the id of the present invocation to lines that tell of trouble.
type handler struct {
	slog.Handler

	f *function
}

// Handle adds to a record.
func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	if id := h.f.request.Load(); id != nil && r.Level >= slog.LevelWarn {
		r.AddAttrs(slog.String("requestId", *id))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs keeps the addition.
func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &handler{h.Handler.WithAttrs(attrs), h.f}
}

// WithGroup keeps the addition, in the group.
func (h *handler) WithGroup(name string) slog.Handler {
	return &handler{h.Handler.WithGroup(name), h.f}
}

// lines keeps the lines of the log and of the metrics apart.
type lines struct {
	mu sync.Mutex
	w  io.Writer
}

// Write writes a line.
func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}
