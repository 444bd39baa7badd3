package sqsreceive

import (
	"context"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"sluice/core"
)

// API is what this package uses of [sqs.Client].
type API interface {
	ReceiveMessage(ctx context.Context, in *sqs.ReceiveMessageInput, opts ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error)
	DeleteMessageBatch(ctx context.Context, in *sqs.DeleteMessageBatchInput, opts ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error)
	ChangeMessageVisibilityBatch(ctx context.Context, in *sqs.ChangeMessageVisibilityBatchInput, opts ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error)
}

var _ API = (*sqs.Client)(nil)

const (
	maxEntries  = 10 // that SQS gives at a time
	maxAside    = 8  // answers of which some messages wait for room while their poller goes on
	longPoll    = 20 * time.Second
	callTimeout = 10 * time.Second // of a call, beside what it waits for
)

// Take stores events, and says of each why it was not stored, or nil:
// [core.Ingester.Receive] for a source.
type Take func(ctx context.Context, events []core.Event) (why []error)

// Options says how to receive.
type Options struct {
	Pollers int                        // side by side, at the most; 0: 4
	Finish  time.Duration              // how long a run may go on with what it has received; 0: 5 s
	Failed  func(op string, err error) // told of what did not work and is tried again; may be nil
}

// Receiver receives from one queue.
type Receiver struct {
	api   API
	queue string
	take  Take
	o     Options
}

// New makes a receiver from the queue of a URL. take may be called from several
// goroutines at once.
func New(api API, queue string, take Take, o Options) *Receiver {
	if o.Pollers <= 0 {
		o.Pollers = 4
	}
	if o.Finish <= 0 {
		o.Finish = 5 * time.Second
	}
	if o.Failed == nil {
		o.Failed = func(string, error) {}
	}
	return &Receiver{api: api, queue: queue, take: take, o: o}
}

// Run receives until ctx ends, whatever fails, and returns when all that it has
// received is deleted or given back, at the latest [Options].Finish later.
func (r *Receiver) Run(ctx context.Context) {
	own, done := lasting(ctx, r.o.Finish)
	defer done()
	p := &pollers{Receiver: r, ctx: ctx, own: own, room: make(chan struct{}, r.o.Pollers-1), aside: make(chan struct{}, maxAside)}
	p.going.Go(func() { p.poll(true) })
	p.going.Wait()
}

// lasting is a context that ends as long as d after ctx, or with done.
func lasting(ctx context.Context, d time.Duration) (own context.Context, done func()) {
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		rest(own, d)
		cancel()
	})
	return own, func() {
		stop()
		cancel()
	}
}

// rest waits, and reports false when ctx has ended before.
func rest(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// pollers are those of one run.
type pollers struct {
	*Receiver
	ctx   context.Context //nolint:containedctx // of the run: its end ends the polls
	own   context.Context //nolint:containedctx // of what was received: it ends later
	going sync.WaitGroup
	room  chan struct{} // for extra ones
	aside chan struct{} // for what waits beside them
}

// poll receives until the run ends, or, unless it is to stay, nothing comes.
func (p *pollers) poll(stay bool) {
	var wait pause
	for p.ctx.Err() == nil {
		messages, err := p.receive()
		if err != nil {
			if p.ctx.Err() != nil {
				return
			}
			p.o.Failed("receive from a queue", err)
			if !stay || !rest(p.ctx, wait.next(0)) {
				return
			}
			continue
		}
		wait = 0
		switch len(messages) {
		case 0:
			if !stay {
				return
			}
		case maxEntries:
			p.more()
		}
		p.handle(messages)
	}
}

// more starts an extra poller, if there may be one.
func (p *pollers) more() {
	select {
	case p.room <- struct{}{}:
		p.going.Go(func() {
			defer func() { <-p.room }()
			p.poll(false)
		})
	default:
	}
}

func (p *pollers) receive() ([]types.Message, error) {
	ctx, cancel := context.WithTimeout(p.ctx, longPoll+callTimeout)
	defer cancel()
	out, err := p.api.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
		QueueUrl: &p.queue, MaxNumberOfMessages: maxEntries, WaitTimeSeconds: int32(longPoll / time.Second),
		MessageAttributeNames:       []string{"All"},
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameMessageGroupId},
	})
	if err != nil {
		return nil, failed(err)
	}
	return out.Messages, nil
}

const (
	firstPause = time.Second
	lastPause  = 30 * time.Second
)

// pause is how long it was last waited in a row of failures; 0: there was none.
type pause time.Duration

// next is how long to wait now: twice as long as before, from 1 to 30 seconds,
// and not shorter than was asked for.
func (p *pause) next(asked time.Duration) time.Duration {
	*p = pause(min(max(2*time.Duration(*p), firstPause, asked), lastPause))
	return time.Duration(*p)
}
