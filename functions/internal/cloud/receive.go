package cloud

import (
	"context"
	"log/slog"
	"maps"
	"net/url"
	"slices"
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
	sources, err := f.intakes()
	if err != nil {
		return nil, err
	}
	in := core.NewIngester(f.catalog, f.ports(o))
	return invocations(f, func(ctx context.Context, e edge.ReceiveEvent) (events.SQSEventResponse, error) {
		if _, err := e.Queue(); err != nil { // of one queue, made by SQS
			return events.SQSEventResponse{}, err
		}
		source, err := sources.of(e.Records[0].EventSourceARN)
		if err != nil {
			return events.SQSEventResponse{}, err
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

// address is a queue as its ARN names it. Region and account are "" when its URL
// does not have them.
type address struct{ region, account, name string }

// addressAt is the queue of an ARN: arn:aws:sqs:REGION:ACCOUNT:NAME.
func addressAt(arn string) address {
	parts := strings.Split(arn, ":")
	if len(parts) != 6 {
		return address{name: parts[len(parts)-1]}
	}
	return address{parts[3], parts[4], parts[5]}
}

// addressOf is the queue of a URL. Those of AWS are
// https://sqs.REGION.amazonaws.com/ACCOUNT/NAME.
func addressOf(queue string) address {
	u, err := url.Parse(queue)
	if err != nil {
		return address{name: queue}
	}
	path := strings.Split(strings.Trim(u.Path, "/"), "/")
	a := address{name: path[len(path)-1]}
	host := strings.Split(strings.ToLower(u.Hostname()), ".")
	if len(path) == 2 && len(host) >= 4 && host[0] == "sqs" && host[2] == "amazonaws" {
		a.region, a.account = host[1], path[0]
	}
	return a
}

// intakes are the names of the sources of type sqs by their queues.
type intakes map[address]string

// of is the source of a queue. NotFound: there is none.
func (in intakes) of(arn string) (string, error) {
	at := addressAt(arn)
	for _, at := range []address{at, {name: at.name}} {
		if source, ok := in[at]; ok {
			return source, nil
		}
	}
	if len(in) == 0 {
		return "", core.Errorf(core.NotFound, "there is no source of type sqs for the messages of this queue")
	}
	names := slices.Sorted(maps.Values(in))
	return "", core.Errorf(core.NotFound, "these messages are from the queue of none of the sources %s", strings.Join(names, ", "))
}

// intakes finds the queues of the sources. What a reference leads to is not shown.
func (f *function) intakes() (intakes, error) {
	all := make(intakes)
	for i := range f.settings.config.Sources {
		s := &f.settings.config.Sources[i]
		if s.Type != core.TypeSQS {
			continue
		}
		queue := string(s.Queue)
		if core.IsReference(queue) {
			var err error
			if queue, err = f.settings.resolve(s.Queue); err != nil {
				return nil, err
			}
			if problem := core.SourceQueueProblem(queue); problem != "" {
				return nil, core.Errorf(core.Invalid, "sources.%s: queue: what it refers to %s", s.Name, problem)
			}
		}
		at := addressOf(queue)
		if other, ok := all[at]; ok {
			return nil, core.Errorf(core.Invalid, "sources %s and %s have the same queue", other, s.Name)
		}
		all[at] = s.Name
	}
	return all, nil
}
