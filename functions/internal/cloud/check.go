package cloud

import (
	"context"

	"github.com/aws/aws-lambda-go/events"

	"sluice/core"
	"sluice/core/message"
	"sluice/functions/internal/edge"
	"sluice/infra/sqs"
)

// QueueHandler works on the messages of an SQS queue.
type QueueHandler = func(context.Context, events.SQSEvent) (events.SQSEventResponse, error)

// Check makes the function that looks at groups at their deadlines.
func Check(ctx context.Context, p Process) (QueueHandler, error) {
	f, err := setup(ctx, p, noSecrets)
	if err != nil {
		return nil, err
	}
	ladder := f.ladder()
	return f.check(&outside{store: f.store(), timer: ladder, queue: f.queue()}, sqs.NewArrivals(ladder, f.clock)), nil
}

func (f *function) check(o *outside, arrivals *sqs.Arrivals) QueueHandler {
	checker := core.NewChecker(f.catalog, f.ports(o))
	// A check that fails has armed another in its place, so that its message
	// is not wanted again: there would be two.
	check := func(ctx context.Context, h core.Hint) error { //nolint:unparam // as Arrivals.Take wants it
		if err := checker.Check(ctx, h); err != nil {
			f.observer.Failed("check", err)
		}
		return nil
	}
	q := edge.Queue[core.Hint]{
		Decode: message.DecodeHint,
		Work: func(ctx context.Context, h core.Hint) error {
			return arrivals.Take(ctx, []core.Hint{h}, check)[0]
		},
		Log: f.log, Failed: f.failed,
	}
	return invocations(f, q.Handle)
}
