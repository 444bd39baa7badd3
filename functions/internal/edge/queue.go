package edge

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"

	"github.com/aws/aws-lambda-go/events"

	"sluice/core"
)

// sqsSource is what SQS calls itself in its events.
const sqsSource = "aws:sqs"

// Queue is how a function works on the messages of an SQS queue.
type Queue[T any] struct {
	Decode func(body []byte) (T, error)
	// Work is called for each message, for all of an invocation side by side.
	// A message for which it returns an error is delivered again.
	Work func(ctx context.Context, v T) error
	// Keep has malformed messages delivered again, for a queue that does not
	// drop them in the end. Else they are dropped here.
	Keep bool
	Log  *slog.Logger
	// Failed is told of messages that could not be read or worked on; may be nil.
	Failed func(op string, err error)
}

// Handle works on an event's messages. A malformed one is logged and, unless
// it is to be kept, dropped: it stays malformed however often it is delivered, and
// what a hint was for is found by the sweep. It fails on events that SQS has
// not made.
func (q *Queue[T]) Handle(ctx context.Context, e events.SQSEvent) (events.SQSEventResponse, error) {
	if err := fromSQS(e); err != nil {
		return events.SQSEventResponse{}, err
	}
	errs := make([]error, len(e.Records))
	var working sync.WaitGroup
	for i := range e.Records {
		working.Go(func() { errs[i] = q.one(ctx, &e.Records[i]) })
	}
	working.Wait()
	failures := []events.SQSBatchItemFailure{}
	for i, err := range errs {
		// An empty identifier would have the whole batch delivered again.
		if id := e.Records[i].MessageId; err != nil && id != "" {
			failures = append(failures, events.SQSBatchItemFailure{ItemIdentifier: id})
		}
	}
	return events.SQSEventResponse{BatchItemFailures: failures}, nil
}

// fromSQS refuses an event that SQS has not made.
func fromSQS(e events.SQSEvent) error {
	if len(e.Records) == 0 {
		return core.Errorf(core.Invalid, "not an event of SQS: it has no records")
	}
	for i := range e.Records {
		if s := e.Records[i].EventSource; s != sqsSource {
			return core.Errorf(core.Invalid, "not an event of SQS: record %d is from %q", i, s)
		}
	}
	return nil
}

// one works on one message, and says whether it is to be delivered again. One
// message's fault must not end the others.
func (q *Queue[T]) one(ctx context.Context, m *events.SQSMessage) (err error) {
	v, err := q.Decode([]byte(m.Body))
	if err != nil {
		q.failed(ctx, m, "read a queue message", err)
		if q.Keep {
			return err
		}
		return nil
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
			q.failed(ctx, m, "work on a queue message", fmt.Errorf("%w\n%s", err, debug.Stack()))
		}
	}()
	if err = q.Work(ctx, v); err != nil {
		q.failed(ctx, m, "work on a queue message", err)
	}
	return err
}

func (q *Queue[T]) failed(ctx context.Context, m *events.SQSMessage, op string, err error) {
	q.Log.ErrorContext(ctx, "a message failed", slog.String("op", op), slog.String("messageId", m.MessageId),
		slog.String("queue", m.EventSourceARN), slog.String("code", core.CodeOf(err).String()), slog.Any("error", err))
	if q.Failed != nil {
		q.Failed(op, err)
	}
}
