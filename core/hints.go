package core

import "context"

// Ports is what the core's services work with.
type Ports struct {
	Store       Store
	Timer       Timer
	Queue       Queue
	Sender      func(destination string) Sender // nil for an unknown one
	DeadLetters DeadLetterSink
	Clock       Clock
	IDs         IDs
	Rand        Rand
	Observer    *Observer
}

// arm arms a check of a group. A hint that can't be armed is one that was
// lost: the sweep finds the group.
func (p *Ports) arm(ctx context.Context, ref Ref, life string, at Millis) {
	if at == 0 {
		return
	}
	err := p.Timer.Arm(context.WithoutCancel(ctx), Hint{Ref: ref, Life: life, At: at})
	p.Observer.failed("arm a check", err)
}

// hand hands a delivery over; a lost one is found by the sweep.
func (p *Ports) hand(ctx context.Context, d Delivery) {
	err := p.Queue.Hand(context.WithoutCancel(ctx), d)
	p.Observer.failed("hand over a delivery", err)
}
