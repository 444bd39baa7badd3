package core

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Ports is what the core's services work with.
type Ports struct {
	Store       Store
	Timer       Timer
	Queue       Queue
	Sender      func(destination string) Sender // nil for an unknown one
	DeadLetters DeadLetterSink
	Coordinator Coordinator // nil, if not Shared: no breakers, no rate limits, and no outcome is waited for
	Shared      bool        // other processes are on the store, too, and share the coordinator
	Clock       Clock
	IDs         IDs
	Rand        Rand
	Sleep       func(ctx context.Context, d time.Duration) error // waits, unless ctx ends; nil: nothing waits, and no outcome is waited for
	Observer    *Observer

	// MaxEvent is the largest payload that the store takes of an event, in bytes;
	// 0: any. [Ingester.Ingest] refuses more.
	MaxEvent int64

	// Slot waits until one more send to a destination may be under way in this
	// process, beside those of the queue; release ends it. nil: at once.
	Slot func(ctx context.Context, destination string) (release func(), err error)

	// Copies narrows the context of what ships a shadow, which may end sooner than
	// other sends when the process stops. nil: it is as theirs.
	Copies func(ctx context.Context) (context.Context, context.CancelFunc)
}

// armCheck arms the check of a group, unless only a flush delivers it: then the
// sweep is early enough.
func (p *Ports) armCheck(ctx context.Context, policy *Policy, ref Ref, g *Group) {
	if g.CheckAt != 0 && (policy.Rest == 0 || g.Closed != 0) {
		p.arm(ctx, checkHint(ref, g))
	}
}

// armClaim arms the due time of one of a group's claims.
func (p *Ports) armClaim(ctx context.Context, ref Ref, g *Group, c *Claim) {
	p.arm(ctx, Hint{Ref: ref, Life: g.Life, At: c.Due})
}

// checkHint is the hint for a group's CheckAt. Only a transition that raises
// Rev moves CheckAt once it is set, so Rev orders such hints.
func checkHint(ref Ref, g *Group) Hint {
	return Hint{Ref: ref, Life: g.Life, At: g.CheckAt, Check: g.Rev + 1}
}

// arm arms a hint. One that can't be armed is one that was lost: the sweep
// finds the group.
func (p *Ports) arm(ctx context.Context, h Hint) {
	err := p.Timer.Arm(ctx, h)
	p.Observer.failed("arm a check", err)
}

// hand hands a delivery over; a lost one is found by the sweep.
func (p *Ports) hand(ctx context.Context, d Delivery) {
	err := p.Queue.Hand(ctx, d)
	p.Observer.failed("hand over a delivery", err)
}

const (
	// hinters is how many hints of one request are sent at a time, or records of
	// those who wait are changed.
	hinters = 16
	// fewHints are sent one after the other: that is quicker where the timer or
	// the coordinator is in the same process.
	fewHints = 8
)

// sideBySide calls fn for 0 to n-1, many of them at a time if they are many:
// each may wait for a timer, a queue or a coordinator that is far away.
func sideBySide(n int, fn func(int)) {
	if n <= fewHints {
		for i := range n {
			fn(i)
		}
		return
	}
	var next atomic.Int64
	var sending sync.WaitGroup
	for range min(hinters, n/fewHints+1) {
		sending.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				fn(i)
			}
		})
	}
	sending.Wait()
}
