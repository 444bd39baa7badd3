package sqs_test

import (
	"context"
	"sync"
	"testing"
	"time"

	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"sluice/core"
	"sluice/core/message"
	"sluice/infra/sqs"
	"sluice/infra/sqs/sqstest"
)

// wall is the clock of the machine, or of the bubble.
var wall = core.ClockFunc(func() core.Millis { return core.At(time.Now()) })

// poller does what Lambda does for a function on a queue: it receives, has
// each batch handled beside the others, and deletes what was not reported to
// have failed. The rest it makes visible again.
type poller struct {
	t      *testing.T
	client sqs.API
	queue  string
	cancel context.CancelFunc
	done   sync.WaitGroup
}

// poll starts one. handle returns an error for each message, in order.
func poll(t *testing.T, client sqs.API, queue string, handle func(context.Context, []types.Message) []error) *poller {
	p := &poller{t: t, client: client, queue: queue}
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	p.done.Go(func() {
		fake, _ := client.(*sqstest.SQS)
		for ctx.Err() == nil {
			if fake != nil {
				_ = fake.Await(ctx, queue)
			}
			out, err := client.ReceiveMessage(ctx, &awssqs.ReceiveMessageInput{
				QueueUrl: &queue, MaxNumberOfMessages: 10, WaitTimeSeconds: 20, VisibilityTimeout: 600,
			})
			if err == nil && len(out.Messages) > 0 {
				p.done.Go(func() { p.batch(ctx, out.Messages, handle) })
			}
		}
	})
	return p
}

func (p *poller) batch(ctx context.Context, batch []types.Message, handle func(context.Context, []types.Message) []error) {
	remove := &awssqs.DeleteMessageBatchInput{QueueUrl: &p.queue}
	again := &awssqs.ChangeMessageVisibilityBatchInput{QueueUrl: &p.queue}
	for i, err := range handle(ctx, batch) {
		if err == nil {
			remove.Entries = append(remove.Entries, types.DeleteMessageBatchRequestEntry{Id: batch[i].MessageId, ReceiptHandle: batch[i].ReceiptHandle})
		} else {
			again.Entries = append(again.Entries, types.ChangeMessageVisibilityBatchRequestEntry{Id: batch[i].MessageId, ReceiptHandle: batch[i].ReceiptHandle})
		}
	}
	if len(remove.Entries) > 0 {
		if _, err := p.client.DeleteMessageBatch(context.Background(), remove); err != nil {
			p.t.Errorf("delete: %v", err)
		}
	}
	if len(again.Entries) > 0 {
		if _, err := p.client.ChangeMessageVisibilityBatch(context.Background(), again); err != nil {
			p.t.Errorf("make visible again: %v", err)
		}
	}
}

// stop ends it, when what it handles has ended.
func (p *poller) stop() {
	p.cancel()
	p.done.Wait()
}

// arrive is a handler that takes hints to their time.
func arrive(t *testing.T, a *sqs.Arrivals, check func(context.Context, core.Hint) error) func(context.Context, []types.Message) []error {
	return func(ctx context.Context, batch []types.Message) []error {
		hints := make([]core.Hint, len(batch))
		for i := range batch {
			h, err := message.DecodeHint([]byte(*batch[i].Body))
			if err != nil {
				t.Errorf("a message on the check queue: %v", err)
			}
			hints[i] = h
		}
		return a.Take(ctx, hints, check)
	}
}

// schedules is the simplest far timer: a goroutine for each hint, which hands
// it over a minute early, and keeps its name taken for ever.
type schedules struct {
	hand func(context.Context, core.Hint) error
	stop chan struct{}
	done sync.WaitGroup

	mu    sync.Mutex
	down  error
	armed map[core.Hint]bool
}

func newSchedules(client sqs.API, queue string) *schedules {
	return &schedules{stop: make(chan struct{}), armed: map[core.Hint]bool{}, hand: func(ctx context.Context, h core.Hint) error {
		body, err := message.EncodeHint(h)
		if err != nil {
			return err
		}
		_, err = client.SendMessage(ctx, &awssqs.SendMessageInput{QueueUrl: &queue, MessageBody: &body})
		return err
	}}
}

func (s *schedules) Arm(_ context.Context, h core.Hint) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.down != nil:
		return s.down
	case s.armed[h]:
		return nil // a conflict: taken for armed
	}
	s.armed[h] = true
	left := time.NewTimer(h.At.Add(-sqs.Early).Sub(wall.Now()))
	s.done.Go(func() {
		defer left.Stop()
		select {
		case <-left.C:
			_ = s.hand(context.Background(), h)
		case <-s.stop:
		}
	})
	return nil
}

func (s *schedules) end() {
	close(s.stop)
	s.done.Wait()
}

// fail has all that is armed from now on fail; nil: no more.
func (s *schedules) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = err
}

// taken reports whether a hint has a schedule, or had one.
func (s *schedules) taken(h core.Hint) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.armed[h]
}

// rig is a ladder with its queue, its far timer, and what polls the queue.
type rig struct {
	fake   *sqstest.SQS
	queue  string
	far    *schedules
	ladder *sqs.Ladder
	poller *poller
}

// start starts one in a bubble.
func start(t *testing.T, threshold time.Duration, check func(context.Context, core.Hint) error) *rig {
	r := &rig{fake: &sqstest.SQS{}}
	r.queue = r.fake.Queue("check")
	r.far = newSchedules(r.fake, r.queue)
	r.ladder = sqs.NewLadder(sqs.NewTimer(r.fake, r.queue, wall), r.far, sqs.LadderOptions{Threshold: threshold, Clock: wall})
	r.poller = poll(t, r.fake, r.queue, arrive(t, sqs.NewArrivals(r.ladder, wall), check))
	return r
}

func (r *rig) stop() {
	r.poller.stop()
	r.far.end()
}
