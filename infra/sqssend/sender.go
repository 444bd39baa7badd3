package sqssend

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"sluice/core"
)

// API is what this package uses of [sqs.Client].
type API interface {
	SendMessageBatch(ctx context.Context, in *sqs.SendMessageBatchInput, opts ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error)
}

var _ API = (*sqs.Client)(nil)

// What SQS allows.
const (
	maxEntries = 10      // of a call
	maxBytes   = 1 << 20 // of a message, attributes and all, and of a call
)

// SideBySide is how many calls of one batch to a standard queue are made at a
// time.
const SideBySide = 8

// Options is what a sender needs to know of its destination.
type Options struct {
	Queue   string        // its URL
	Timeout time.Duration // of one send, all its calls together; above 0
}

// Sender sends to one queue. It is safe for concurrent use.
type Sender struct {
	api     API
	queue   string
	fifo    bool
	timeout time.Duration
}

var _ core.Sender = (*Sender)(nil)

// New makes a sender. What is wrong with o is core.Invalid.
func New(api API, o Options) (*Sender, error) {
	if o.Queue == "" || o.Timeout <= 0 {
		return nil, core.Errorf(core.Invalid, "a sender needs a queue and a timeout above 0")
	}
	queue := strings.TrimRight(o.Queue, "/") // as one may write a URL
	return &Sender{api: api, queue: queue, fifo: strings.HasSuffix(queue, ".fifo"), timeout: o.Timeout}, nil
}

// Send sends the batch and reports what came of its items.
func (s *Sender) Send(ctx context.Context, b *core.Batch) core.Response {
	if err := ctx.Err(); err != nil {
		return core.Response{Err: stopped(err)}
	}
	sending, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	t := &tally{sender: s, ctx: ctx, batch: b}
	if s.fifo {
		s.inTurn(sending, t)
	} else {
		s.atOnce(sending, t)
	}
	return t.response()
}

// inTurn sends to a FIFO queue, up to the first message that fails.
func (s *Sender) inTurn(ctx context.Context, t *tally) {
	for c := range s.calls(t) {
		if ctx.Err() != nil || t.failing() {
			t.skip(c)
			continue
		}
		s.call(ctx, t, c)
	}
}

// atOnce sends to a standard queue.
func (s *Sender) atOnce(ctx context.Context, t *tally) {
	var calls sync.WaitGroup
	defer calls.Wait()
	free := make(chan struct{}, SideBySide)
	for c := range s.calls(t) {
		select {
		case free <- struct{}{}:
			calls.Go(func() {
				s.call(ctx, t, c)
				<-free
			})
		case <-ctx.Done():
			t.skip(c)
		}
	}
}

// calls goes through the batch's calls: all its messages, in order. An item
// that fits into none is refused.
func (s *Sender) calls(t *tally) func(yield func([]message) bool) {
	most := maxEntries
	if s.fifo {
		most = 1
	}
	return func(yield func([]message) bool) {
		var call []message
		size := 0
		for i := range t.batch.Items {
			m := newMessage(t.batch, i)
			if m.size > maxBytes {
				t.refuse(i, "a message has more than 1 MiB, the most that a queue takes")
				continue
			}
			if len(call) == most || size+m.size > maxBytes {
				if !yield(call) {
					return
				}
				call, size = nil, 0
			}
			call, size = append(call, m), size+m.size
		}
		if len(call) > 0 {
			yield(call)
		}
	}
}

// call makes one call.
func (s *Sender) call(ctx context.Context, t *tally, messages []message) {
	in := &sqs.SendMessageBatchInput{QueueUrl: &s.queue}
	for i := range messages {
		in.Entries = append(in.Entries, s.entry(t.batch, &messages[i]))
	}
	out, err := s.api.SendMessageBatch(ctx, in)
	if err != nil {
		t.fail(messages, s.failure(t.ctx, err))
		return
	}
	t.count(messages, out)
}
