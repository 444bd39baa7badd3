package flushtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

// start is when the fixtures' time begins, 22:14:00: a full minute.
const start core.Millis = 1_700_000_040_000

const (
	every       = time.Minute
	floor       = every - every/10
	timeout     = 15 * time.Second
	claimLease  = timeout + 15*time.Second
	turnLease   = 2 * claimLease
	concurrency = 4
)

// config has a buffer of each kind: b leaves by flushes alone, c by its
// conditions; w is of time windows, as is f, which folds.
func config() *core.Config {
	d := core.NewDestination("out")
	d.Type, d.Timeout, d.Concurrency = core.TypeStdout, timeout, concurrency
	d.Retry.Initial, d.Retry.Max = 10*time.Minute, 10*time.Minute
	c := core.NewConfig()
	c.Destinations = []core.Destination{d}
	window := core.WindowConfig{Every: time.Minute, Grace: 5 * time.Second, MaxAhead: time.Hour}
	for _, name := range []string{"b", "c", "w", "f"} {
		b := core.NewBuffer(name)
		b.From, b.To, b.GroupBy = []string{name}, "out", "{{ .json.k }}"
		b.Batch.MaxItems = 2
		if name != "c" {
			b.FlushEvery = every
		}
		if name == "w" || name == "f" {
			w := window
			b.Window = &w
		}
		if name == "f" {
			b.Fold = []core.FoldColumn{{Name: "n", Expr: "count"}}
		}
		c.Sources, c.Buffers = append(c.Sources, core.NewSource(name)), append(c.Buffers, b)
	}
	return c
}

// clock is a clock that tests set.
type clock struct{ now atomic.Int64 }

func (c *clock) Now() core.Millis { return core.Millis(c.now.Load()) }

// probe is a store under test, with any number of processes on it.
type probe struct {
	t     *testing.T
	h     *Harness
	clock *clock
	store core.Store
	turns core.Coordinator // nil: the store is one process's

	here, there *process // there: on the same store, where that is shared
	ids         atomic.Int64

	mu     sync.Mutex
	sent   []core.Batch
	answer func(*core.Batch) core.Response // nil: 200
}

// process is one process on the store.
type process struct {
	p        *probe
	ingester *core.Ingester
	flusher  *core.Flusher
	dead     atomic.Bool // what it has still to say does not count
}

func open(t *testing.T, h *Harness) *probe {
	p := &probe{t: t, h: h, clock: new(clock)}
	p.clock.now.Store(int64(start))
	p.store, p.turns = h.Open(t, p.clock)
	p.here, p.there = p.process(), p.process()
	return p
}

// process starts one more process.
func (p *probe) process() *process {
	p.t.Helper()
	catalog, err := core.NewCatalog(config(), nil)
	require.NoError(p.t, err)
	f := &process{p: p}
	ports := core.Ports{
		Store: p.store, Timer: quiet{}, Queue: quiet{}, DeadLetters: quiet{}, Coordinator: p.turns, Shared: p.turns != nil, Clock: p.clock, Rand: latest{},
		Sender: func(string) core.Sender { return sender{p} },
		IDs:    core.IDsFunc(func() string { return fmt.Sprintf("id%06d", p.ids.Add(1)) }),
		Observer: &core.Observer{Failed: func(op string, err error) {
			if !f.dead.Load() {
				p.t.Errorf("%s: %v", op, err)
			}
		}},
	}
	f.ingester, f.flusher = core.NewIngester(catalog, ports), core.NewFlusher(catalog, ports, &core.Cadence{})
	return f
}

// restart crashes every process, and starts anew.
func (p *probe) restart() {
	p.t.Helper()
	p.store, p.turns = p.h.Reopen(p.t, p.clock, p.store, p.turns)
	p.here, p.there = p.process(), p.process()
}

func (p *probe) pass(d time.Duration) { p.clock.now.Add(d.Milliseconds()) }

// put takes an event of each key into a buffer.
func (p *probe) put(buffer string, keys ...string) {
	p.t.Helper()
	events := make([]core.Event, len(keys))
	for i, k := range keys {
		events[i] = core.Event{ContentType: "application/json", JSON: true, Body: fmt.Appendf(nil, `{"k":%q}`, k)}
	}
	_, err := p.here.ingester.Ingest(context.Background(), buffer, events)
	require.NoError(p.t, err)
}

// answers makes every send from now on answer so.
func (p *probe) answers(answer func(*core.Batch) core.Response) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer = answer
}

// taken is what has been sent since it was last asked.
func (p *probe) taken() []core.Batch {
	p.mu.Lock()
	defer p.mu.Unlock()
	sent := p.sent
	p.sent = nil
	return sent
}

// flush flushes one buffer.
func (f *process) flush(buffer string, o core.FlushOptions) core.BufferFlush {
	f.p.t.Helper()
	r, err := f.flusher.FlushBuffer(context.Background(), buffer, o)
	require.NoError(f.p.t, err)
	return r
}

// ships flushes a buffer, of which so many rows are to be shipped.
func (f *process) ships(buffer string, rows int) core.BufferFlush {
	f.p.t.Helper()
	r := f.flush(buffer, core.FlushOptions{})
	require.NoError(f.p.t, r.Err)
	require.False(f.p.t, r.Skipped)
	require.Equal(f.p.t, rows, r.Rows)
	return r
}

// wait is how long the process has to wait for its next flush of a buffer. To
// ask changes nothing.
func (f *process) wait(buffer string) time.Duration {
	f.p.t.Helper()
	r := f.flush(buffer, core.FlushOptions{Groups: []string{"nobody"}})
	require.NoError(f.p.t, r.Err)
	require.Zero(f.p.t, r.Rows)
	return r.NextEligibleIn
}

// dies makes a flush of a buffer end in the middle of its n-th send, as one does
// whose process dies: nothing of it goes on until the test is over. It returns
// what was being sent.
func (p *probe) dies(f *process, buffer string, n int) *core.Batch {
	p.t.Helper()
	begun, end, done := make(chan *core.Batch, 1), make(chan struct{}), make(chan struct{})
	var sends atomic.Int64
	p.answers(func(b *core.Batch) core.Response {
		switch i := int(sends.Add(1)); {
		case i < n:
			return core.Response{Status: 200}
		case i == n:
			begun <- b
		}
		<-end
		return core.Response{Err: core.Errorf(core.Canceled, "the process has died")}
	})
	go func() {
		defer close(done)
		_, _ = f.flusher.FlushBuffer(context.Background(), buffer, core.FlushOptions{})
	}()
	b := *<-begun
	f.dead.Store(true)
	p.answers(nil)
	p.taken()
	p.t.Cleanup(func() {
		close(end)
		<-done
	})
	return &b
}

// turn is a buffer's turn record, as it is.
func (p *probe) turn(buffer string) (record string) {
	p.t.Helper()
	unchanged := errors.New("only read")
	err := p.turns.Change(context.Background(), "turn/"+buffer, func(old []byte) ([]byte, error) {
		record = string(old)
		return nil, unchanged
	})
	require.ErrorIs(p.t, err, unchanged)
	return record
}

type sender struct{ p *probe }

func (s sender) Send(_ context.Context, b *core.Batch) core.Response {
	s.p.mu.Lock()
	s.p.sent = append(s.p.sent, *b)
	answer := s.p.answer
	s.p.mu.Unlock()
	if answer == nil {
		return core.Response{Status: 200}
	}
	return answer(b)
}

// quiet is a timer, a queue and a place for dead letters that do nothing: of a
// flush, nothing hangs on them.
type quiet struct{}

func (quiet) Arm(context.Context, core.Hint) error         { return nil }
func (quiet) Hand(context.Context, core.Delivery) error    { return nil }
func (quiet) Put(context.Context, []core.DeadLetter) error { return nil }

// latest makes every wait as long as it may be.
type latest struct{}

func (latest) Int64N(n int64) int64 { return n - 1 }
