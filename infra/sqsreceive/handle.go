package sqsreceive

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"sluice/core"
)

const (
	// margin is how much longer than it waits a message is kept hidden.
	margin = 30 * time.Second
	// maxKept is how long messages are kept hidden: SQS allows 12 hours.
	maxKept = 11 * time.Hour
)

// handle takes messages. Those for which there is no room wait aside if they
// may, so that one full group stops no other; else the poller waits with them.
func (p *pollers) handle(messages []types.Message) {
	begun := time.Now()
	again, why := p.settle(messages)
	if len(again) == 0 {
		return
	}
	select {
	case p.aside <- struct{}{}:
		p.going.Go(func() {
			defer func() { <-p.aside }()
			p.keep(again, why, begun)
		})
	default:
		p.keep(again, why, begun)
	}
}

// keep keeps messages hidden that could not be taken, and tries them again,
// until all are settled, the run ends, or they have been kept too long.
func (p *pollers) keep(messages []types.Message, why error, begun time.Time) {
	var wait pause
	for time.Since(begun) < maxKept && p.ctx.Err() == nil {
		d := wait.next(core.RetryAfterOf(why))
		p.hide(messages, d+margin)
		if !rest(p.ctx, d) {
			break
		}
		var again []types.Message
		again, why = p.settle(messages)
		if len(again) == 0 {
			return
		}
		if len(again) < len(messages) {
			wait = 0
		}
		messages = again
	}
	p.hide(messages, 0)
}

// fate is what is to become of a message.
type fate uint8

const (
	taken fate = iota // it is to be deleted
	kept              // it is to be tried again here
	left              // it is the queue's
)

// fateOf is what an error makes of a message. Kinds that are not known are for
// the queue to try again, as many times as its owner wants.
func fateOf(err error) fate {
	switch core.CodeOf(err) {
	case core.Full, core.Unavailable, core.Conflict, core.Canceled, core.NotFound:
		return kept
	default:
		return left
	}
}

// settle takes messages and deletes those that were taken. It returns those to
// be tried again, and why.
func (p *pollers) settle(messages []types.Message) (again []types.Message, why error) {
	fates, why := p.takeAll(messages)
	if why != nil {
		p.o.Failed("take messages from a queue", why)
	}
	var done []types.Message
	for i, f := range fates {
		switch f {
		case taken:
			done = append(done, messages[i])
		case kept:
			again = append(again, messages[i])
		case left:
		}
	}
	p.remove(done)
	return again, why
}

// takeAll takes messages. The error is that of one that is kept, or else of one
// that is left.
func (p *pollers) takeAll(messages []types.Message) (fates []fate, why error) {
	fates = make([]fate, len(messages))
	events := make([]core.Event, len(messages))
	for i := range messages {
		events[i] = eventOf(&messages[i])
	}
	for i, err := range p.take(p.own, events) {
		if err == nil {
			continue
		}
		fates[i] = fateOf(err)
		if why == nil || fates[i] == kept && fateOf(why) != kept {
			why = err
		}
	}
	return fates, why
}

// remove deletes messages from the queue. One that cannot be deleted comes again.
func (p *pollers) remove(messages []types.Message) {
	p.rounds("delete messages from a queue", messages, p.deletion)
}

// hide keeps messages hidden for so long from now; 0: they are visible again.
func (p *pollers) hide(messages []types.Message, d time.Duration) {
	p.rounds("keep messages of a queue hidden", messages, func(ctx context.Context, ids []string, messages []types.Message) ([]types.BatchResultErrorEntry, error) {
		return p.change(ctx, ids, messages, d)
	})
}
