package sqs_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"sluice/core"
	"sluice/core/deadlettertest"
	"sluice/core/message"
	"sluice/core/queuetest"
	"sluice/core/timertest"
	"sluice/infra/awstest"
	"sluice/infra/sqs"
	"sluice/infra/sqs/sqstest"
)

// TestTimers holds the ladder, its messages and their arrivals to what is
// asked of every timer: as each deadline is waited out, none is late at all.
func TestTimers(t *testing.T) {
	t.Parallel()
	timertest.Run(t, timertest.Harness{
		Name: "sqs",
		Start: func(t *testing.T, fire func(context.Context, core.Hint)) (core.Timer, func()) {
			r := start(t, sqs.MinThreshold, func(ctx context.Context, h core.Hint) error {
				fire(context.WithoutCancel(ctx), h)
				return nil
			})
			return r.ladder, r.stop
		},
	})
}

// TestQueues holds the deliver queue to what is asked of every queue, with
// workers that leave in the queue what has no place with them yet.
func TestQueues(t *testing.T) {
	t.Parallel()
	queuetest.Run(t, queuetest.Harness{
		Name: "sqs",
		Start: func(t *testing.T, limit func(string) int, work func(context.Context, core.Delivery)) (core.Queue, func(context.Context) error) {
			fake := &sqstest.SQS{}
			url := fake.Queue("deliver")
			w := &workers{t: t, client: fake, queue: url, limit: limit, work: work,
				known: map[string]core.Delivery{}, waiting: map[string]int{}, atWork: map[string]int{}, changed: make(chan struct{}, 1)}
			w.ctx, w.cancel = context.WithCancel(context.Background())
			w.done.Go(w.run)
			return handing{sqs.NewQueue(fake, url), w}, w.stop
		},
	})
}

// handing tells the workers of what is handed over.
type handing struct {
	*sqs.Queue
	w *workers
}

func (h handing) Hand(ctx context.Context, d core.Delivery) error {
	err := h.Queue.Hand(ctx, d)
	h.w.wait(d.Destination)
	return err
}

// workers take messages one by one, as many of a destination as it may have
// at work. Those that they cannot take yet they put back when they are through.
type workers struct {
	t      *testing.T
	client sqs.API
	queue  string
	limit  func(string) int
	work   func(context.Context, core.Delivery)

	ctx     context.Context
	cancel  context.CancelFunc
	changed chan struct{}
	busy    sync.WaitGroup // work under way
	done    sync.WaitGroup // and all else

	known map[string]core.Delivery // by message id; the looker's own

	mu      sync.Mutex
	waiting map[string]int // by destination
	atWork  map[string]int
	stopped bool
}

func (w *workers) wake() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

func (w *workers) run() {
	for {
		select {
		case <-w.ctx.Done():
			return
		case <-w.changed:
			w.look()
		}
	}
}

// look goes through the queue, as far as there is something to look for.
func (w *workers) look() {
	again := &awssqs.ChangeMessageVisibilityBatchInput{QueueUrl: &w.queue}
	var back []*awssqs.ChangeMessageVisibilityBatchInput
	for w.wanted() {
		out, err := w.client.ReceiveMessage(context.Background(), &awssqs.ReceiveMessageInput{
			QueueUrl: &w.queue, MaxNumberOfMessages: 10, VisibilityTimeout: 600,
		})
		if err != nil {
			w.t.Errorf("receive: %v", err)
			return
		}
		if len(out.Messages) == 0 {
			break
		}
		for _, m := range out.Messages {
			if w.take(m) {
				continue
			}
			if len(again.Entries) == 10 {
				back = append(back, again)
				again = &awssqs.ChangeMessageVisibilityBatchInput{QueueUrl: &w.queue}
			}
			again.Entries = append(again.Entries, types.ChangeMessageVisibilityBatchRequestEntry{Id: m.MessageId, ReceiptHandle: m.ReceiptHandle})
		}
	}
	if len(again.Entries) > 0 {
		back = append(back, again)
	}
	for _, in := range back {
		if _, err := w.client.ChangeMessageVisibilityBatch(context.Background(), in); err != nil {
			w.t.Errorf("put back: %v", err)
		}
	}
}

// take begins work on a message, if there is room for it.
func (w *workers) take(m types.Message) bool {
	d, ok := w.known[*m.MessageId]
	if !ok {
		var err error
		if d, err = message.DecodeDelivery([]byte(*m.Body)); err != nil {
			w.t.Errorf("a message on the deliver queue: %v", err)
			return true
		}
		w.known[*m.MessageId] = d
	}
	if !w.begin(d.Destination) {
		return false
	}
	w.done.Go(func() {
		w.work(w.ctx, d)
		_, err := w.client.DeleteMessageBatch(context.Background(), &awssqs.DeleteMessageBatchInput{
			QueueUrl: &w.queue, Entries: []types.DeleteMessageBatchRequestEntry{{Id: m.MessageId, ReceiptHandle: m.ReceiptHandle}},
		})
		if err != nil {
			w.t.Errorf("delete: %v", err)
		}
		w.end(d.Destination)
	})
	return true
}

func (w *workers) begin(destination string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped || w.atWork[destination] >= w.limit(destination) {
		return false
	}
	w.waiting[destination]--
	w.atWork[destination]++
	w.busy.Add(1)
	return true
}

// wait notes that one more message for a destination waits.
func (w *workers) wait(destination string) {
	w.mu.Lock()
	w.waiting[destination]++
	w.mu.Unlock()
	w.wake()
}

// wanted reports whether something waits for which there is room.
func (w *workers) wanted() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for destination, n := range w.waiting {
		if n > 0 && !w.stopped && w.atWork[destination] < w.limit(destination) {
			return true
		}
	}
	return false
}

func (w *workers) end(destination string) {
	w.mu.Lock()
	w.atWork[destination]--
	w.mu.Unlock()
	w.busy.Done()
	w.wake()
}

// stop begins nothing further. The work's context lasts as long as the work
// does, or ctx.
func (w *workers) stop(ctx context.Context) error {
	w.mu.Lock()
	w.stopped = true
	w.mu.Unlock()
	cut := context.AfterFunc(ctx, w.cancel)
	w.busy.Wait()
	cut()
	w.cancel()
	w.done.Wait()
	return ctx.Err()
}

// letters are dead letters with the clock of their queue.
type letters struct {
	*sqs.DeadLetters
	reopen func() *sqs.DeadLetters
	clock  deadlettertest.Clock
}

func reopen(_ testing.TB, l deadlettertest.Letters) deadlettertest.Letters {
	old := l.(letters)
	return letters{old.reopen(), old.reopen, old.clock}
}

func clockOf(l deadlettertest.Letters) deadlettertest.Clock { return l.(letters).clock }

// TestDeadLetters runs the suite on a queue that keeps no order at all.
func TestDeadLetters(t *testing.T) {
	t.Parallel()
	const seed = 3
	deadlettertest.Run(t, deadlettertest.Harness{
		Name:    "sqs fake",
		Doubles: true,
		Clock:   clockOf,
		Reopen:  reopen,
		Open: func(testing.TB) deadlettertest.Letters {
			now := wall.Now()
			clock := deadlettertest.Clock{Now: func() core.Millis { return now }, Set: func(at core.Millis) { now = at }}
			fake := &sqstest.SQS{Now: func() time.Time { return now.Time() }, Disorder: rand.New(rand.NewPCG(seed, seed))}
			url := fake.Queue("dead")
			open := func() *sqs.DeadLetters {
				return sqs.NewDeadLetters(fake, url, sqs.DeadLetterOptions{Clock: core.ClockFunc(clock.Now), ShortPolls: true})
			}
			return letters{open(), open, clock}
		},
	})
}

// TestLiveDeadLetters runs it over the network, against another's SQS.
func TestLiveDeadLetters(t *testing.T) {
	t.Parallel()
	client := awstest.SQS(t)
	deadlettertest.Run(t, deadlettertest.Harness{
		Name:    "fauxqs",
		Doubles: true,
		Clock:   clockOf,
		Reopen:  reopen,
		Open: func(t testing.TB) deadlettertest.Letters {
			url := awstest.Queue(t, client, nil).URL
			open := func() *sqs.DeadLetters {
				return sqs.NewDeadLetters(client, url, sqs.DeadLetterOptions{Clock: wall, ShortPolls: true})
			}
			return letters{open(), open, deadlettertest.Clock{Now: wall, Lease: 5000}}
		},
	})
}
