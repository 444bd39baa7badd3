package fault

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"sluice/core"
)

// Options say which faults there are, and how often.
type Options struct {
	Fail  float64       // the share of sends that fail with a 503 before the call; 0 to 1
	Drop  float64       // the share of calls whose answer is lost; 0 to 1
	Delay time.Duration // before every send
	Rand  core.Rand     // decides
	Sleep func(ctx context.Context, d time.Duration) error
}

// Sender is a [core.Sender] around another. It is safe for concurrent use.
type Sender struct {
	to core.Sender
	o  Options

	failed, dropped atomic.Int64
}

var _ core.Sender = (*Sender)(nil)

// NewSender puts faults into the sends of another sender.
func NewSender(to core.Sender, o Options) *Sender { return &Sender{to: to, o: o} }

// Failed is how many sends have failed without a call.
func (s *Sender) Failed() int { return int(s.failed.Load()) }

// Dropped is how many answers have been lost.
func (s *Sender) Dropped() int { return int(s.dropped.Load()) }

// Send sends a batch, unless a fault comes first.
func (s *Sender) Send(ctx context.Context, b *core.Batch) core.Response {
	if s.o.Delay > 0 {
		if err := s.o.Sleep(ctx, s.o.Delay); err != nil {
			return core.Response{Err: core.Wrap(core.Canceled, err, "the send was stopped")}
		}
	}
	if s.happens(s.o.Fail) {
		s.failed.Add(1)
		return core.Response{Status: http.StatusServiceUnavailable, Answer: "a fault that was put in"}
	}
	r := s.to.Send(ctx, b)
	if s.happens(s.o.Drop) {
		s.dropped.Add(1)
		return core.Response{Err: core.Errorf(core.Unavailable, "the answer was lost, a fault that was put in")}
	}
	return r
}

// happens decides about a fault of which so large a share is to happen.
func (s *Sender) happens(share float64) bool {
	const whole = 1 << 53
	return share > 0 && float64(s.o.Rand.Int64N(whole)) < share*whole
}
