package sqs

import (
	"context"
	"sync"
	"time"

	"sluice/core"
)

// MaxWait is how long before its deadline a hint is waited out in process.
const MaxWait = 2 * time.Second

// Arrivals takes the hints that come out of the check queue to their time.
type Arrivals struct {
	again func(context.Context, core.Hint) error
	clock core.Clock
}

// NewArrivals makes arrivals that re-arm early hints by a ladder.
func NewArrivals(l *Ladder, clock core.Clock) *Arrivals {
	return &Arrivals{again: l.Rearm, clock: clock}
}

// Take sees to the hints of one invocation, all side by side: it calls check
// for each whose time has come, or comes in less than [MaxWait], at its time,
// and re-arms the others. It returns when all are through, with what came of
// each, in their order; nil: it is done with. One that failed is to be given
// back to the queue. When ctx ends, what still waits fails with it.
func (a *Arrivals) Take(ctx context.Context, hints []core.Hint, check func(context.Context, core.Hint) error) []error {
	errs := make([]error, len(hints))
	var all sync.WaitGroup
	for i, h := range hints {
		all.Go(func() { errs[i] = a.one(ctx, h, check) })
	}
	all.Wait()
	return errs
}

func (a *Arrivals) one(ctx context.Context, h core.Hint, check func(context.Context, core.Hint) error) error {
	left := h.At.Sub(a.clock.Now())
	switch {
	case left >= MaxWait:
		return a.again(ctx, h)
	case left > 0:
		wait := time.NewTimer(left)
		defer wait.Stop()
		select {
		case <-wait.C:
		case <-ctx.Done():
		}
	}
	if err := ctx.Err(); err != nil {
		return core.Wrap(core.Canceled, err, "a check was cut short")
	}
	return check(ctx, h)
}
