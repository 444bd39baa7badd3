package cloud

import (
	"context"
	"log/slog"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"sluice/core"
	"sluice/functions/internal/edge"
)

// ReceiveHandler takes the messages of a queue that is a source.
type ReceiveHandler = func(context.Context, edge.ReceiveEvent) (events.SQSEventResponse, error)

// Receive makes the function that takes events in from the queues of sources of
// type sqs.
func Receive(ctx context.Context, p Process) (ReceiveHandler, error) {
	f, err := setup(ctx, p, queueSecrets)
	if err != nil {
		return nil, err
	}
	s := f.store()
	return f.receive(&outside{store: s, timer: f.ladder(), queue: f.queue(), letters: f.letters(), shared: s})
}

func (f *function) receive(o *outside) (ReceiveHandler, error) {
	sources, err := f.queues()
	if err != nil {
		return nil, err
	}
	in := core.NewIngester(f.catalog, f.ports(o))
	return invocations(f, func(ctx context.Context, e edge.ReceiveEvent) (events.SQSEventResponse, error) {
		queue, err := e.Queue()
		if err != nil {
			return events.SQSEventResponse{}, err
		}
		source, ok := sources[queue]
		if !ok {
			return events.SQSEventResponse{}, core.Errorf(core.NotFound, "no source of type sqs has the queue %s", queue)
		}
		left, why := leftOf(in.Receive(ctx, source, e.Events()))
		if why != nil {
			f.stayed(ctx, source, left.Len(), why)
		}
		return e.Answer(left), nil
	}), nil
}

// leftOf is which messages were not taken, and why one was not: if there is one,
// one of this side's failures.
func leftOf(errs []error) (left core.Bits, why error) {
	for i, err := range errs {
		if err == nil {
			continue
		}
		left = left.With(i)
		if why == nil || ours(err) && !ours(why) {
			why = err
		}
	}
	return left, why
}

// ours reports whether an error is this side's failure: a queue is where events
// may wait for room.
func ours(err error) bool {
	code := core.CodeOf(err)
	return code == core.Unavailable || code == core.Internal
}

// stayed tells of messages that were not taken.
func (f *function) stayed(ctx context.Context, source string, n int, why error) {
	f.log.LogAttrs(ctx, slog.LevelWarn, "messages stay in their queue", slog.String("source", source),
		slog.Int("messages", n), slog.String("code", core.CodeOf(why).String()), slog.Any("error", why))
	if ours(why) {
		f.failed("receive", why)
	}
}

// queues are the sources of type sqs by the names of their queues.
func (f *function) queues() (map[string]string, error) {
	named := make(map[string]string)
	for i := range f.settings.config.Sources {
		s := &f.settings.config.Sources[i]
		if s.Type != core.TypeSQS {
			continue
		}
		at := string(s.Queue)
		if core.IsReference(at) {
			var err error
			if at, err = f.settings.resolve(s.Queue); err != nil {
				return nil, err
			}
			if problem := core.SourceQueueProblem(at); problem != "" {
				return nil, core.Errorf(core.Invalid, "sources.%s: queue: what it refers to %s", s.Name, problem)
			}
		}
		queue := at[strings.LastIndexByte(at, '/')+1:]
		if other, ok := named[queue]; ok {
			return nil, core.Errorf(core.Invalid, "sources %s and %s both have the queue %s", other, s.Name, queue)
		}
		named[queue] = s.Name
	}
	return named, nil
}
