package cloud

import (
	"context"
	"time"

	"sluice/core"
	"sluice/functions/internal/system"
)

// outside is what the functions reach on AWS. Each uses but a part of it, and
// a binary links but what its function uses.
type outside struct {
	store   core.Store
	timer   core.Timer
	queue   core.Queue
	letters letters
	shared  core.Coordinator // what all functions share: turns, breakers, rates, who waits; nil: this one needs none
}

// letters are the dead letters, put and looked at.
type letters interface {
	core.DeadLetterSink
	core.DeadLetterQueue
}

// ports are the core's, without senders.
func (f *function) ports(o *outside) core.Ports {
	return core.Ports{
		Store: o.store, Timer: o.timer, Queue: o.queue, DeadLetters: o.letters, Coordinator: o.shared, Shared: true,
		Clock: f.clock, IDs: system.IDs(), Rand: system.Jitter{}, Sleep: system.Sleep, Observer: f.observer,
		MaxEvent: core.MaxEventBytesAWS,
	}
}

// settling is room at the end of an invocation in which a batch that was sent
// is settled, or its items become dead letters.
const settling = 15 * time.Second

// bounded is a sender whose sends end while their invocation still has time
// to say what came of them. A send that is cut so has failed like one that
// timed out: it counts as an attempt, and is made again later.
type bounded struct {
	core.Sender

	settling time.Duration
}

// boundedSenders bounds the senders of destinations.
func boundedSenders(find func(string) core.Sender, settling time.Duration) func(string) core.Sender {
	return func(name string) core.Sender {
		s := find(name)
		if s == nil {
			return nil
		}
		return bounded{s, settling}
	}
}

// Send sends a batch. Where there is less time than the settling needs, it takes
// half of it.
func (b bounded) Send(ctx context.Context, batch *core.Batch) core.Response {
	if deadline, ok := ctx.Deadline(); ok {
		left := time.Until(deadline)
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, max(left-b.settling, left/2))
		defer cancel()
	}
	return b.Sender.Send(ctx, batch)
}
