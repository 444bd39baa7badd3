package cloud

import (
	"context"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"sluice/core"
	"sluice/core/message"
	"sluice/functions/internal/edge"
	"sluice/functions/internal/senders"
)

// claiming is room for what comes before a send.
const claiming = 5 * time.Second

// Deliver makes the function that sends batches, and the dead letters that a
// redrive of the console has put on their way back.
func Deliver(ctx context.Context, p Process) (QueueHandler, error) {
	f, err := setup(ctx, p, destinationSecrets)
	if err != nil {
		return nil, err
	}
	open, err := f.senders()
	if err != nil {
		return nil, err
	}
	s := f.store()
	return f.deliver(&outside{store: s, timer: f.ladder(), queue: f.queue(), letters: f.letters(), shared: s}, open.Sender), nil
}

// senders opens every destination.
func (f *function) senders() (*senders.Set, error) {
	resolve, at := f.settings.resolve, f.env.Endpoints
	return senders.Open(f.settings.config, map[string]senders.Opener{
		core.TypeHTTP: senders.HTTP(resolve, f.clock),
		core.TypeSQS:  senders.SQS(f.clients.destinations(at.SQS), resolve),
		core.TypeS3:   senders.S3(f.clients.destinations(at.S3), resolve, f.clock),
	})
}

func (f *function) deliver(o *outside, find func(string) core.Sender) QueueHandler {
	ports := f.ports(o)
	ports.Sender = boundedSenders(find, settling)
	d := deliveries{catalog: f.catalog, queue: o.queue, slots: newSlots(f.settings.config), failed: f.observer.Failed}
	ports.Slot = d.slots.hold
	d.deliverer = core.NewDeliverer(f.catalog, ports)
	r := redrive{catalog: f.catalog, ports: ports, deliveries: &d}
	handOver := edge.Queue[core.Delivery]{Decode: message.DecodeDelivery, Work: d.work, Log: f.log, Failed: f.failed}
	comeBack := edge.Queue[core.DeadLetter]{Decode: message.DecodeLetter, Work: r.work, Keep: true, Log: f.log, Failed: f.failed}

	own := f.env.DeliverQueueURL[strings.LastIndexByte(f.env.DeliverQueueURL, '/')+1:]
	return invocations(f, func(ctx context.Context, e events.SQSEvent) (events.SQSEventResponse, error) {
		// All messages of an event are from one queue.
		if len(e.Records) > 0 && !strings.HasSuffix(e.Records[0].EventSourceARN, ":"+own) {
			return comeBack.Handle(ctx, e)
		}
		return handOver.Handle(ctx, e)
	})
}

// deliveries works on the messages of the deliver queue.
type deliveries struct {
	catalog   *core.Catalog
	deliverer *core.Deliverer
	queue     core.Queue
	slots     slots
	failed    func(op string, err error)
}

// work sends a group's batches for as long as there are more and the
// invocation has time for another; what it does not get to it hands back. Its
// error is that of handing back: a delivery that fails has armed a check in its
// place, or left that to the sweep, so that its message is not wanted again.
// There would be two chains for the group, for ever.
func (d *deliveries) work(ctx context.Context, del core.Delivery) error {
	sub := d.catalog.Buffer(del.Ref.Buffer)
	if sub == nil {
		return nil // its items wait for the buffer's return
	}
	begin, stop := latest(ctx, sub.Longest())
	defer stop()
	for {
		more, late, err := d.one(ctx, begin, sub.Destination.Name, del)
		switch {
		case late:
			return d.queue.Hand(ctx, core.Delivery{Ref: del.Ref, Destination: sub.Destination.Name})
		case err != nil:
			d.failed("deliver", err)
			return nil
		case !more:
			return nil
		}
		del.Seen = nil // it has changed since
	}
}

// one sends one batch, unless it gets too late before there is a slot for it.
func (d *deliveries) one(ctx, begin context.Context, destination string, del core.Delivery) (more, late bool, err error) {
	free, ok := d.slots.take(begin, destination)
	if !ok {
		return false, true, nil
	}
	defer free()
	more, err = d.deliverer.Deliver(ctx, del)
	return more, false, err
}

// latest is a context that ends when it is too late in an invocation to begin
// a send of so long at most and settle it. A send that may take longer than the
// invocation gets what that has: it is cut, and counts.
func latest(ctx context.Context, send time.Duration) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	left := time.Until(deadline)
	return context.WithTimeout(ctx, max(left-claiming-send-settling, left/8))
}
