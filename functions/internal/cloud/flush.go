package cloud

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"sluice/core"
	"sluice/functions/internal/edge"
	"sluice/functions/internal/report"
)

// sweeping is how long a sweep may take, so that what follows has its turn
// before the next run begins. What it does not get to is for that one.
const sweeping = 40 * time.Second

// FlushReport is what came of a run of the flush function.
type FlushReport struct {
	report.House

	HandedOver int    `json:"handedOver"`           // groups whose hints were lost, or whose deliverers have died
	Unfinished bool   `json:"unfinished"`           // there was no time to sweep all; the next run goes on
	SweepError string `json:"sweepError,omitempty"` // why the sweep beside a flush by hand failed
	Left       []Left `json:"left,omitzero"`        // after a final flush by hand: what each buffer still holds
}

// FlushHandler flushes.
type FlushHandler = func(context.Context, edge.FlushEvent) (FlushReport, error)

// maintainer is a store that has to be kept up every minute. sized are the
// buffers whose size is limited.
type maintainer interface {
	Maintain(ctx context.Context, sized []string) error
}

// Flush makes the function that finds, every minute, what lost hints and dead
// deliverers have left behind, keeps the store up, says what waits in it, and
// flushes the buffers that leave by flushes alone. By hand, it flushes any.
func Flush(ctx context.Context, p Process) (FlushHandler, error) {
	f, err := setup(ctx, p, destinationSecrets)
	if err != nil {
		return nil, err
	}
	open, err := f.senders()
	if err != nil {
		return nil, err
	}
	s := f.store()
	return f.flushing(&outside{store: s, timer: f.ladder(), queue: f.queue(), letters: f.letters(), shared: s}, open.Sender, s), nil
}

// flushes are the runs of the flush function in one process, one at a time.
type flushes struct {
	*function

	store     core.Store
	keeper    maintainer
	shared    core.Coordinator
	sweeper   *core.Sweeper
	flusher   *core.Flusher
	scheduled []string // buffers that leave by flushes alone
	sized     []string // buffers whose size is limited
	waiting   measuring
}

func (f *function) flushing(o *outside, find func(string) core.Sender, m maintainer) FlushHandler {
	ports := f.ports(o)
	ports.Sender = boundedSenders(find, settling)
	ports.Slot = newSlots(f.settings.config).hold // a fallback may take fewer sends at a time than its destination
	r := &flushes{
		function: f, store: o.store, keeper: m, shared: o.shared,
		sweeper: core.NewSweeper(f.catalog, ports), flusher: core.NewFlusher(f.catalog, ports, new(core.Cadence)),
		waiting: measuring{store: o.store, metrics: f.metrics, clock: f.clock},
	}
	for _, s := range r.flusher.Scheduled() {
		r.scheduled = append(r.scheduled, s.Buffer)
	}
	for i := range f.settings.config.Buffers {
		if b := &f.settings.config.Buffers[i]; b.Size > 0 {
			r.sized = append(r.sized, b.Name)
		}
	}
	return invocations(f, func(ctx context.Context, e edge.FlushEvent) (FlushReport, error) {
		if e.Flush != nil {
			return r.byHand(ctx, e.Flush.Options())
		}
		return r.minute(ctx, e.Caller())
	})
}

// minute does what has to be done every minute. The flush comes last: it may
// take until the function's end, while another process does the next minute's
// work, and the turn keeps the two from flushing the same buffer. Its error names
// every buffer that failed.
func (r *flushes) minute(ctx context.Context, caller string) (FlushReport, error) {
	var out FlushReport
	err := errors.Join(
		step("sweep", r.sweep(ctx, &out)),
		step("maintain the store", r.keeper.Maintain(ctx, r.sized)),
		step("measure the store", r.waiting.measure(ctx)),
		step("measure the breakers", r.breakers(ctx)),
	)
	r.function.flush() // what was measured is not to wait for the flush
	shipped, failed := core.FlushReport{}, error(nil)
	if len(r.scheduled) > 0 {
		shipped, failed = r.flusher.Flush(ctx, core.FlushOptions{Only: r.scheduled})
	}
	// The others are not flushed in any minute.
	shipped.Buffers = slices.DeleteFunc(shipped.Buffers, func(b core.BufferFlush) bool { return b.Reason == core.SkippedNotSelected })
	out.House = report.Of(&shipped)
	r.faults(&shipped)
	r.tell(ctx, caller, &out)
	return out, errors.Join(err, failed, shipped.Err())
}

// breakers measures which destinations are kept from being called. Whoever opens
// a breaker says so once; this says for how long it stays so.
func (r *flushes) breakers(ctx context.Context) error {
	var failed []error
	for i := range r.settings.config.Destinations {
		d := &r.settings.config.Destinations[i]
		if d.Breaker == nil {
			continue
		}
		b, err := core.BreakerOf(ctx, r.shared, d.Name)
		if err == nil {
			r.metrics.Observer().Breaker(d.Name, b.Until != 0)
		}
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

// byHand makes a flush that somebody asks for, and a sweep behind it. It fails
// only when it has not begun: whoever has called reads in the report what else
// did.
func (r *flushes) byHand(ctx context.Context, o core.FlushOptions) (FlushReport, error) {
	shipped, err := r.flusher.Flush(ctx, o)
	if err != nil {
		return FlushReport{}, err
	}
	out := FlushReport{House: report.Of(&shipped)}
	r.faults(&shipped)
	if err := r.sweep(ctx, &out); err != nil {
		out.SweepError = err.Error()
	}
	if o.Final {
		out.Left, err = r.left(ctx)
	}
	r.tell(ctx, "hand", &out)
	return out, step("see what is left", err)
}

// tell logs a report, in one line.
func (r *flushes) tell(ctx context.Context, caller string, out *FlushReport) {
	level := slog.LevelInfo
	if !out.OK || out.SweepError != "" {
		level = slog.LevelWarn
	}
	attrs := []slog.Attr{
		slog.String("caller", caller), slog.Int("handedOver", out.HandedOver), slog.Bool("unfinished", out.Unfinished),
		slog.Any("report", &out.House),
	}
	if out.SweepError != "" {
		attrs = append(attrs, slog.String("sweepError", out.SweepError))
	}
	if out.Left != nil {
		attrs = append(attrs, slog.Any("left", out.Left))
	}
	r.log.LogAttrs(ctx, level, "flushed", attrs...)
}

// faults logs the errors of which a report says no more than that they are ours.
func (r *flushes) faults(shipped *core.FlushReport) {
	for i := range shipped.Buffers {
		b := &shipped.Buffers[i]
		for _, err := range report.Faults(b) {
			r.log.Error("a flush failed", "buffer", b.Buffer, "error", err)
		}
	}
}

// step names what has failed.
func step(op string, err error) error { return core.Wrap(core.CodeOf(err), err, "%s", op) }

// sweep sweeps for as long as it may.
func (r *flushes) sweep(ctx context.Context, out *FlushReport) error {
	room := sweeping
	if deadline, ok := ctx.Deadline(); ok {
		room = min(room, time.Until(deadline)/2)
	}
	sweep, cancel := context.WithTimeout(ctx, room)
	defer cancel()
	var err error
	out.HandedOver, err = r.sweeper.Sweep(sweep)
	if err != nil && errors.Is(sweep.Err(), context.DeadlineExceeded) && ctx.Err() == nil {
		out.Unfinished = true
		return nil
	}
	return err
}
