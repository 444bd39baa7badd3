package wire

import (
	"context"
	"net/http"
	"sync"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"

	"sluice/core"
	"sluice/infra/sqsreceive"
	"sluice/infra/sqssend"
)

// lastWords is how long a source may go on with what it has received when it is
// to stop, if the grace allows it.
const lastWords = 5 * time.Second

// intake is a source that is read, not called: a queue.
type intake struct {
	intakeKey
	client sqsreceive.API
	close  func() // its idle connections
}

// intakeKey is what makes an intake the same as before.
type intakeKey struct{ source, queue string }

// intakesOf are the queues of a configuration's sources. It calls nobody.
func intakesOf(c *core.Config, p *parts) ([]intake, error) {
	var all []intake
	owners := make(map[string]string)
	for i := range c.Sources {
		s := &c.Sources[i]
		if s.Type != core.TypeSQS {
			continue
		}
		in, err := intakeOf(s, p)
		if err != nil {
			return nil, core.Wrap(core.CodeOf(err), err, "source %s", s.Name)
		}
		if other, ok := owners[in.queue]; ok {
			return nil, core.Errorf(core.Invalid, "sources %s and %s have the same queue", other, s.Name)
		}
		owners[in.queue] = s.Name
		all = append(all, in)
	}
	return all, nil
}

func intakeOf(s *core.Source, p *parts) (intake, error) {
	queue := string(s.Queue)
	if core.IsReference(queue) {
		var err error
		if queue, err = p.resolve(s.Queue); err != nil {
			return intake{}, err
		}
	}
	if problem := core.SourceQueueProblem(queue); problem != "" {
		return intake{}, core.Errorf(core.Invalid, "queue: what it refers to %s", problem)
	}
	c, err := sdk()
	if err != nil {
		return intake{}, err
	}
	in := intake{intakeKey: intakeKey{source: s.Name, queue: queue}, close: func() {}}
	if b, ok := c.HTTPClient.(*awshttp.BuildableClient); ok { // which keeps its connections to itself
		t := b.GetTransport()
		c.HTTPClient, in.close = &http.Client{Transport: t}, t.CloseIdleConnections
	}
	in.client, err = sqssend.NewClient(c, queue, "")
	return in, err
}

// intakes are those that run. They are used by one goroutine at a time.
type intakes struct {
	run     func(ctx context.Context, in *intake) // until ctx ends
	running map[intakeKey]context.CancelFunc
	going   sync.WaitGroup
}

// set has these run alone, until ctx ends. One that stays is left alone; one
// that is gone ends by itself, with what it has received.
func (s *intakes) set(ctx context.Context, wanted []intake) {
	gone := s.running
	s.running = make(map[intakeKey]context.CancelFunc, len(wanted))
	for _, in := range wanted {
		end, ok := gone[in.intakeKey]
		if ok {
			delete(gone, in.intakeKey)
		} else {
			end = s.begin(ctx, &in)
		}
		s.running[in.intakeKey] = end
	}
	for _, end := range gone {
		end()
	}
}

func (s *intakes) begin(ctx context.Context, in *intake) context.CancelFunc {
	ctx, end := context.WithCancel(ctx)
	s.going.Go(func() {
		defer end()
		defer in.close()
		s.run(ctx, in)
	})
	return end
}

// receive takes in what comes by an intake, by the present configuration.
func (n *node) receive(ctx context.Context, in *intake) {
	take := func(ctx context.Context, events []core.Event) []error {
		s, done := n.use()
		defer done()
		return s.ingester.Receive(ctx, in.source, events)
	}
	n.log.Info("receiving", "source", in.source)
	sqsreceive.New(in.client, in.queue, take, sqsreceive.Options{
		Finish: n.finish,
		Failed: func(op string, err error) { n.report(op+" (source "+in.source+")", err) },
	}).Run(ctx)
	n.log.Info("receiving no more", "source", in.source)
}
