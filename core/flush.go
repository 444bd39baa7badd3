package core

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// FlushOptions say what a flush ships.
type FlushOptions struct {
	Force  bool     // ignore the cadence and the turn
	Final  bool     // the last flush: also windows inside their grace, whatever this process's cadence says
	Only   []string // these buffers alone; nil: all
	Strict bool     // refuse the whole call when Only names a buffer that there is not
	Groups []string // these group keys alone; nil: all

	// While, when it ends, ends the flush after the sends under way; the later end of
	// the call's own context cuts those off, too. nil: the call's own.
	While context.Context //nolint:containedctx // an option of one call
}

// SkipReason is why a flush did not try a buffer.
type SkipReason string

// The reasons for which a buffer is skipped.
const (
	SkippedCadence     SkipReason = "cadence"      // it has shipped too recently, here or in another process
	SkippedNotSelected SkipReason = "not-selected" // FlushOptions.Only names others
)

// FlushReport is what came of a flush of all buffers.
type FlushReport struct {
	Took      time.Duration
	Buffers   []BufferFlush // in the configuration's order
	Unmatched []string      // what Only named and there is not, each once
}

// BufferFlush is what came of the flush of one buffer.
type BufferFlush struct {
	Buffer  string
	Buckets int // time windows handed to the destination
	Rows    int // rows or items handed to it

	Skipped        bool
	Reason         SkipReason    // when skipped
	NextEligibleIn time.Duration // when skipped on cadence

	Err        error     // why a send, a claim, or the taking of the turn failed; the first of them
	Written    *Shipped  // beside Err: what the destination took all the same
	ReleaseErr error     // a send failed, and so did giving its claim back
	AckErr     error     // rows were taken, but their claim was not settled: they come again
	Recovered  *Released // claims that were sent before anything new
	RecoverErr error     // a claim could not be taken over; the flush went on
}

// Shipped counts what a destination took.
type Shipped struct{ Buckets, Rows int }

// Released counts claims that the flush has not opened, each once: they waited, or
// their deliverer had died.
type Released struct{ Claims, Rows int }

// OK reports whether no buffer failed.
func (r *FlushReport) OK() bool { return r.Err() == nil }

// Err names every buffer that failed, or is nil.
func (r *FlushReport) Err() error {
	var failed []string
	for i := range r.Buffers {
		if b := &r.Buffers[i]; b.Err != nil {
			failed = append(failed, fmt.Sprintf("%s: %s", b.Buffer, brief(b.Err)))
		}
	}
	if failed == nil {
		return nil
	}
	return Errorf(Unavailable, "the flush failed for %s", strings.Join(failed, "; "))
}

// brief is an error for people: its detail when it has one.
func brief(err error) string {
	if d := DetailOf(err); d != "" {
		return d
	}
	return err.Error()
}

// Flusher ships what is finished, whether it is due or not:
//
//	cadence ▶ turn ▶ recover ▶ claim ▶ materialise ▶ write ▶ settle ▶ report
type Flusher struct {
	catalog   *Catalog
	ports     Ports
	deliverer *Deliverer
	cadence   *Cadence
}

// NewFlusher makes a flusher. The cadence outlives it, for a flusher with
// other settings.
func NewFlusher(c *Catalog, p Ports, cadence *Cadence) *Flusher {
	return &Flusher{catalog: c, ports: p, deliverer: NewDeliverer(c, p), cadence: cadence}
}

// Scheduled names the buffers that leave by flushes alone, and how often each
// is to be flushed.
func (f *Flusher) Scheduled() []Schedule {
	var s []Schedule
	for i := range f.catalog.config.Buffers {
		if b := &f.catalog.config.Buffers[i]; b.FlushEvery > 0 {
			s = append(s, Schedule{Buffer: b.Name, Every: b.FlushEvery})
		}
	}
	return s
}

// Schedule is how often a buffer is to be flushed.
type Schedule struct {
	Buffer string
	Every  time.Duration
}

// Flush flushes the selected buffers, one after the other. It fails only when
// it is strict and a name is unknown (Invalid), before anything is flushed; all
// else is in the report.
func (f *Flusher) Flush(ctx context.Context, o FlushOptions) (FlushReport, error) {
	begin := f.ports.Clock.Now()
	r := FlushReport{Unmatched: f.unmatched(o.Only)}
	if o.Strict && len(r.Unmatched) > 0 {
		return FlushReport{}, f.unknown(r.Unmatched)
	}
	for i := range f.catalog.config.Buffers {
		name := f.catalog.config.Buffers[i].Name
		if o.Only != nil && !slices.Contains(o.Only, name) {
			r.Buffers = append(r.Buffers, BufferFlush{Buffer: name, Skipped: true, Reason: SkippedNotSelected})
			continue
		}
		r.Buffers = append(r.Buffers, f.buffer(ctx, f.catalog.Buffer(name), &o))
	}
	r.Took = f.ports.Clock.Now().Sub(begin)
	return r, nil
}

// FlushBuffer flushes one buffer; Only and Strict have no meaning. NotFound:
// there is no such buffer.
func (f *Flusher) FlushBuffer(ctx context.Context, buffer string, o FlushOptions) (BufferFlush, error) {
	sub := f.named(buffer)
	if sub == nil {
		return BufferFlush{}, Errorf(NotFound, "there is no buffer %q", buffer)
	}
	return f.buffer(ctx, sub, &o), nil
}

// FlushHeld moves the events of a buffer that were held, and are not any more, on
// to it. NotFound: there is no such buffer.
func (f *Flusher) FlushHeld(ctx context.Context, buffer string, o FlushOptions) (BufferFlush, error) {
	sub := f.catalog.Buffer(Holder(buffer))
	if sub == nil {
		return BufferFlush{}, Errorf(NotFound, "there is no buffer %q", buffer)
	}
	return f.buffer(ctx, sub, &o), nil
}

// named is a buffer of the configuration, or nil: those that hold events are no
// buffers to a caller.
func (f *Flusher) named(name string) *Subscription {
	if _, held := Held(name); held {
		return nil
	}
	return f.catalog.Buffer(name)
}

func (f *Flusher) unmatched(only []string) []string {
	var unmatched []string
	for _, name := range only {
		if f.named(name) == nil && !slices.Contains(unmatched, name) {
			unmatched = append(unmatched, name)
		}
	}
	return unmatched
}

func (f *Flusher) unknown(names []string) error {
	known := "there is none"
	if all := f.catalog.config.Buffers; len(all) > 0 {
		there := make([]string, len(all))
		for i := range all {
			there[i] = all[i].Name
		}
		known = "there are " + strings.Join(there, ", ")
	}
	quotes := make([]string, len(names))
	for i, n := range names {
		quotes[i] = shown(n)
	}
	return Errorf(Invalid, "only names %s, which is no buffer; %s", strings.Join(quotes, ", "), known)
}

// buffer flushes a buffer, if its cadence and its turn allow.
func (f *Flusher) buffer(ctx context.Context, sub *Subscription, o *FlushOptions) BufferFlush {
	r := BufferFlush{Buffer: sub.Buffer.Name}
	begin := f.ports.Clock.Now()
	wait := f.cadence.begin(r.Buffer, sub.floor(), o.Force || o.Final, begin)
	if wait > 0 {
		r.skip(wait)
		return r
	}
	shipped := false
	defer func() { f.cadence.end(r.Buffer, begin, shipped, f.ports.Clock.Now()) }()
	t, wait, err := f.take(ctx, sub, o, begin)
	switch {
	case err != nil:
		r.Err = err
		return r
	case wait > 0:
		r.skip(wait)
		return r
	}
	r.Written = &Shipped{}
	all := f.ship(ctx, sub, o, t, &r)
	shipped = all && r.Written.Rows > 0
	t.end(ctx, shipped)
	if r.Err == nil || r.Written.Rows == 0 {
		r.Written = nil
	}
	return r
}

func (r *BufferFlush) skip(wait time.Duration) {
	r.Skipped, r.Reason, r.NextEligibleIn = true, SkippedCadence, wait
}
