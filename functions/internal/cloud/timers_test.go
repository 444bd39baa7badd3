package cloud

import (
	"context"
	"hash/fnv"
	"sync"
	"testing"
	"time"

	vendor "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/core/message"
	"sluice/core/timertest"
	"sluice/functions/internal/system"
	"sluice/infra/scheduler"
	"sluice/infra/scheduler/schedulertest"
	"sluice/infra/sqs"
	"sluice/infra/sqs/sqstest"
)

// timers are SQS and Scheduler as the functions are wired to them, with what
// Lambda does for the check function.
type timers struct {
	t         *testing.T
	messages  *sqstest.SQS
	queue     string
	schedules *schedulertest.Fake
	ladder    *sqs.Ladder
	cancel    context.CancelFunc
	polling   sync.WaitGroup
}

const timersARN = "arn:aws:sqs:us-east-1:123456789012:checks"

func newTimers(t *testing.T, fire func(context.Context, core.Hint)) *timers {
	clock := system.Clock()
	w := &timers{t: t, messages: new(sqstest.SQS)}
	w.queue = w.messages.Queue("checks")
	w.schedules = schedulertest.New(schedulertest.Options{
		// every schedule is late by up to its precision, and some come twice
		Late: func(name string) time.Duration {
			h := fnv.New32a()
			_, _ = h.Write([]byte(name))
			return time.Duration(h.Sum32()%60) * time.Second
		},
		Doubled: true,
		Fire: func(ctx context.Context, in schedulertest.Invocation) error {
			_, err := w.messages.SendMessage(ctx, &vendor.SendMessageInput{QueueUrl: &w.queue, MessageBody: &in.Input})
			return err
		},
	})
	far := scheduler.New(w.schedules, scheduler.Options{
		Group: "default", QueueARN: timersARN, RoleARN: "arn:aws:iam::123456789012:role/schedules", Clock: clock,
	})
	f := newFunction(Env{Threshold: sqs.MinThreshold}, clock, new(output))
	w.ladder = f.ladderOf(sqs.NewTimer(w.messages, w.queue, clock), far)
	ctx, cancel := context.WithCancel(context.Background())
	w.cancel = cancel
	w.polling.Go(func() { w.poll(ctx, sqs.NewArrivals(w.ladder, clock), fire) })
	return w
}

func (w *timers) poll(ctx context.Context, arrivals *sqs.Arrivals, fire func(context.Context, core.Hint)) {
	for w.messages.Await(ctx, w.queue) == nil {
		out, err := w.messages.ReceiveMessage(ctx, &vendor.ReceiveMessageInput{
			QueueUrl: &w.queue, MaxNumberOfMessages: 10, VisibilityTimeout: 600,
		})
		if err != nil || len(out.Messages) == 0 {
			continue
		}
		w.polling.Go(func() { w.handle(ctx, arrivals, out.Messages, fire) })
	}
}

func (w *timers) handle(ctx context.Context, arrivals *sqs.Arrivals, batch []types.Message, fire func(context.Context, core.Hint)) {
	hints := make([]core.Hint, len(batch))
	remove := &vendor.DeleteMessageBatchInput{QueueUrl: &w.queue}
	for i, m := range batch {
		h, err := message.DecodeHint([]byte(*m.Body))
		if err != nil {
			w.t.Errorf("a message on the check queue: %v", err)
		}
		hints[i] = h
		remove.Entries = append(remove.Entries, types.DeleteMessageBatchRequestEntry{Id: m.MessageId, ReceiptHandle: m.ReceiptHandle})
	}
	arrivals.Take(ctx, hints, func(ctx context.Context, h core.Hint) error {
		fire(context.WithoutCancel(ctx), h)
		return nil
	})
	if _, err := w.messages.DeleteMessageBatch(context.Background(), remove); err != nil {
		w.t.Errorf("delete: %v", err)
	}
}

func (w *timers) stop() {
	w.cancel()
	w.polling.Wait()
	w.schedules.Close()
}

// TestTimers holds SQS and Scheduler together to what is asked of every timer.
// However late a schedule is, no hint is: the check waits the rest out.
func TestTimers(t *testing.T) {
	t.Parallel()
	timertest.Run(t, timertest.Harness{
		Name: "sqs and scheduler",
		Start: func(t *testing.T, fire func(context.Context, core.Hint)) (core.Timer, func()) {
			w := newTimers(t, fire)
			require.NotNil(t, w.ladder)
			return w.ladder, w.stop
		},
	})
}
