package sqs

import (
	"context"
	"time"

	"sluice/core"
)

// Early is how long before its deadline the far timer wakes the check: the
// precision of EventBridge Scheduler.
const Early = time.Minute

// The bounds of a ladder's threshold. SQS delays nothing longer than the upper
// one; below the lower one a far timer would be late by its own precision.
const (
	MinThreshold = time.Minute
	MaxThreshold = 15 * time.Minute
)

// Ladder is the [core.Timer] of the rule by which SQS and EventBridge
// Scheduler share the deadlines:
//
//	remaining ≥ threshold, and far serves it   far: wakes the check [Early] before the deadline
//	else                                       near
//
// A far timer that does not work costs nothing but messages: the hint goes
// near then, comes early, and is armed again.
type Ladder struct {
	near, far core.Timer
	o         LadderOptions
}

// LadderOptions are the settings of a [Ladder].
type LadderOptions struct {
	Threshold time.Duration // held within [MinThreshold] and [MaxThreshold]
	Clock     core.Clock
	// Serves reports whether the far timer takes a deadline: near the lower
	// bound of the threshold it may be too close for one. nil: it takes all.
	Serves func(deadline, now core.Millis) bool
	Failed func(op string, err error) // told what the far timer did not take; may be nil
}

// NewLadder makes a ladder of a near timer, as [Timer] is one, and a far one.
func NewLadder(near, far core.Timer, o LadderOptions) *Ladder {
	o.Threshold = max(MinThreshold, min(o.Threshold, MaxThreshold))
	if o.Serves == nil {
		o.Serves = func(core.Millis, core.Millis) bool { return true }
	}
	if o.Failed == nil {
		o.Failed = func(string, error) {}
	}
	return &Ladder{near: near, far: far, o: o}
}

// Arm implements [core.Timer]. Its error is the near timer's.
func (l *Ladder) Arm(ctx context.Context, h core.Hint) error {
	now := l.o.Clock.Now()
	return l.arm(ctx, h, now, h.At.Sub(now) >= l.o.Threshold)
}

// Rearm arms a hint that has come early. The schedule that may have brought it
// may still be there under the same name, and arming it again would be taken
// for armed already, though it has fired. One fires no more than [Early] before
// the deadline, so only what has clearly more time left goes far again.
func (l *Ladder) Rearm(ctx context.Context, h core.Hint) error {
	now := l.o.Clock.Now()
	return l.arm(ctx, h, now, h.At.Sub(now) > l.o.Threshold+Early)
}

func (l *Ladder) arm(ctx context.Context, h core.Hint, now core.Millis, far bool) error {
	if far && l.o.Serves(h.At, now) {
		err := l.far.Arm(ctx, h)
		if err == nil {
			return nil
		}
		l.o.Failed("arm a far check", err)
	}
	return l.near.Arm(ctx, h)
}
