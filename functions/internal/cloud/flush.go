package cloud

import (
	"context"
	"errors"
	"sync"
	"time"

	"sluice/core"
	"sluice/functions/internal/edge"
	"sluice/infra/emf"
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
	waiting := measuring{store: o.store, metrics: f.metrics, clock: f.clock}
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
			step("measure the store", waiting.measure(ctx)),
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

// LongestRest is the longest time between two measurings of what waits. The
// alarm on its age looks back over a little more.
const LongestRest = time.Hour

const (
	// measuredAMinute is how many groups are read a minute, on average, to
	// measure what waits: with that many waiting, every run does.
	measuredAMinute = 1000
	// early is by how much a run may come early, or an earlier one be late.
	early = 30 * time.Second
)

// measuring measures what waits in a store. As that reads every group, it
// rests the longer the more there are: without that, a million groups that wait
// for a destination would cost more than all else.
type measuring struct {
	store   core.Store
	metrics *emf.Metrics
	clock   core.Clock

	mu   sync.Mutex
	next core.Millis
}

// measure measures, unless it has to rest.
func (m *measuring) measure(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.clock.Now()
	if now < m.next && m.next <= now.Add(LongestRest) { // else the clock was set back
		return nil
	}
	stats, err := m.store.Stats(ctx)
	if err != nil {
		return err
	}
	m.metrics.Gauges(stats)
	groups := 0
	for i := range stats {
		groups += stats[i].Groups
	}
	m.next = now.Add(rest(groups))
	return nil
}

// rest is how long to rest after so many groups were measured.
func rest(groups int) time.Duration {
	return max(0, min(LongestRest, time.Duration(groups)*time.Minute/measuredAMinute)-early)
}
