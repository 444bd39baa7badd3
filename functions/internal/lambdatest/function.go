package lambdatest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// MaxPayload is the most bytes that an invocation takes or answers.
const MaxPayload = 6<<20 + 100

// The types of errors that are the platform's, not the function's own.
const (
	ErrorExit     = "Runtime.ExitError"              // the process has ended amid the invocation, or before it
	ErrorTimeout  = "Sandbox.Timedout"               // the invocation took too long; its process is killed
	ErrorTooLarge = "Function.ResponseSizeTooLarge"  // the answer is over MaxPayload
	ErrorRequest  = "RequestEntityTooLargeException" // the payload is
	errorClosed   = "ResourceNotFoundException"      // the function is closed
)

// Error is what came of an invocation that has no answer.
type Error struct {
	Type    string `json:"errorType"`
	Message string `json:"errorMessage"`
}

// Error names the type, and what was said.
func (e *Error) Error() string { return e.Type + ": " + e.Message }

// Failed is the error's type if err is an [Error], or "".
func Failed(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Type
	}
	return ""
}

// Settings describe a function.
type Settings struct {
	Name        string            // such as ingest
	Bootstrap   string            // path of the executable
	Root        string            // LAMBDA_TASK_ROOT, and the process's working directory
	Env         map[string]string // beside those that Lambda itself sets
	Timeout     time.Duration     // of one invocation
	Concurrency int               // the most environments at a time

	// Services are the addresses of the AWS services that it may call, by the
	// name that AWS_ENDPOINT_URL_<NAME> has for them. Each environment reaches
	// them through a proxy of its own.
	Services map[string]string
	// Hook decides about each of these calls; nil: all pass. It is called from
	// many goroutines.
	Hook func(Call) Fate
}

// Function is a function with its environments.
type Function struct {
	Settings

	idle  chan *environment // those that wait for an invocation; a dead one may be among them
	freed chan struct{}     // an environment has ended, so that another may start
	done  chan struct{}     // closed by Close
	logs  logs

	mu     sync.Mutex
	live   map[*environment]bool
	inits  []time.Duration
	closed bool
}

// New makes a function. Its first environment starts with its first invocation.
func New(s Settings) *Function {
	s.Concurrency = max(1, s.Concurrency)
	return &Function{
		Settings: s,
		idle:     make(chan *environment, 2*s.Concurrency+1),
		freed:    make(chan struct{}, 1),
		done:     make(chan struct{}),
		live:     make(map[*environment]bool),
	}
}

// Invoke runs the function on a payload and returns its answer. What goes
// wrong in the function or with its process is an [Error].
func (f *Function) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	if len(payload) > MaxPayload {
		return nil, &Error{ErrorRequest, fmt.Sprintf("%d bytes exceed the limit of %d", len(payload), MaxPayload)}
	}
	inv := newInvocation(payload, f.Timeout)
	for {
		e, err := f.acquire(ctx)
		if err != nil {
			return nil, err
		}
		if e.begin(inv) {
			return e.finish(ctx, inv)
		}
		// it has died while it was idle; the invocation has not begun
	}
}

// acquire is an environment that waits for an invocation.
func (f *Function) acquire(ctx context.Context) (*environment, error) {
	for {
		select {
		case e := <-f.idle:
			return e, nil
		default:
		}
		started, err := f.grow(ctx)
		if err != nil {
			return nil, err
		}
		freed, dead := f.freed, (chan struct{})(nil)
		if started != nil {
			freed, dead = nil, started.dead
		}
		select {
		case e := <-f.idle:
			return e, nil
		case <-dead:
			if err := started.initError(); err != nil {
				return nil, err
			}
		case <-freed:
		case <-f.done:
			return nil, &Error{errorClosed, f.Name + " is closed"}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// grow starts another environment; nil: there are as many as there may be.
func (f *Function) grow(ctx context.Context) (*environment, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.closed:
		return nil, &Error{errorClosed, f.Name + " is closed"}
	case len(f.live) >= f.Concurrency:
		return nil, nil
	}
	e, err := start(ctx, f)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", f.Name, err)
	}
	f.live[e] = true
	return e, nil
}

// ended forgets an environment whose process has ended.
func (f *Function) ended(e *environment) {
	f.mu.Lock()
	delete(f.live, e)
	f.mu.Unlock()
	select {
	case f.freed <- struct{}{}:
	default: // one who waits is told already
	}
}

// ready notes how long an environment took to its first request for work.
func (f *Function) ready(took time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.inits = append(f.inits, took)
}

// Inits is how long each environment so far took, from the start of its process to
// its first request for work.
func (f *Function) Inits() []time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.inits)
}

// Kill ends every process at once, idle or not, and returns how many there
// were. The next invocation starts a new one.
func (f *Function) Kill() int {
	f.mu.Lock()
	var all []*environment
	for e := range f.live {
		all = append(all, e)
	}
	f.mu.Unlock()
	for _, e := range all {
		e.kill()
	}
	return len(all)
}

// Logs is what its processes have written.
func (f *Function) Logs() string { return f.logs.String() }

// Close ends every process. Invocations under way fail.
func (f *Function) Close() {
	f.mu.Lock()
	if !f.closed {
		f.closed = true
		close(f.done)
	}
	f.mu.Unlock()
	f.Kill()
}

// logs keeps what many processes write.
type logs struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
