package cloud

import (
	"context"
	"errors"
	"time"

	"sluice/core"
	"sluice/functions/internal/edge"
)

// maintaining is room at the end of a flush, behind the sweep.
const maintaining = 15 * time.Second

// FlushReport is what came of a flush.
type FlushReport struct {
	HandedOver int  `json:"handedOver"` // groups whose hints were lost, or whose deliverers have died
	Unfinished bool `json:"unfinished"` // there was no time for all; the next flush goes on
}

// FlushHandler flushes.
type FlushHandler = func(context.Context, edge.FlushEvent) (FlushReport, error)

// maintainer is a store that has to be kept up every minute. sized are the
// buffers whose size is limited.
type maintainer interface {
	Maintain(ctx context.Context, sized []string) error
}

// Flush makes the function that finds, every minute, what lost hints and dead
// deliverers have left behind, keeps the store up, and says what waits in it.
func Flush(ctx context.Context, p Process) (FlushHandler, error) {
	f, err := setup(ctx, p, noSecrets)
	if err != nil {
		return nil, err
	}
	s := f.store()
	return f.flushing(&outside{store: s, timer: f.ladder(), queue: f.queue()}, s), nil
}

func (f *function) flushing(o *outside, m maintainer) FlushHandler {
	sweeper := core.NewSweeper(f.catalog, f.ports(o))
	var sized []string
	for i := range f.settings.config.Buffers {
		if b := &f.settings.config.Buffers[i]; b.Size > 0 {
			sized = append(sized, b.Name)
		}
	}
	return invocations(f, func(ctx context.Context, e edge.FlushEvent) (FlushReport, error) {
		var r FlushReport
		var swept error
		r.HandedOver, swept = f.sweep(ctx, sweeper)
		if errors.Is(swept, context.DeadlineExceeded) && ctx.Err() == nil {
			r.Unfinished, swept = true, nil
		}
		err := errors.Join(
			step("sweep", swept),
			step("maintain the store", m.Maintain(ctx, sized)),
			step("measure the store", f.gauge(ctx, o.store)),
		)
		f.log.Info("flushed", "caller", e.Caller(), "handedOver", r.HandedOver, "unfinished", r.Unfinished)
		return r, err
	})
}

// step names what has failed.
func step(op string, err error) error { return core.Wrap(core.CodeOf(err), err, "%s", op) }

// sweep sweeps for as long as there is room behind it.
func (f *function) sweep(ctx context.Context, s *core.Sweeper) (int, error) {
	if deadline, ok := ctx.Deadline(); ok {
		left := time.Until(deadline)
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, max(left-maintaining, left/2))
		defer cancel()
	}
	n, err := s.Sweep(ctx)
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	return n, err
}

// gauge measures what waits in the store.
func (f *function) gauge(ctx context.Context, s core.Store) error {
	stats, err := s.Stats(ctx)
	if err == nil {
		f.metrics.Gauges(stats)
	}
	return err
}
