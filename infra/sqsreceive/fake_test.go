package sqsreceive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"sluice/core"
)

// shelf is a queue in the process, by the time of the bubble that it is in. A
// message group with a message in flight shows no other.
type shelf struct {
	mu       sync.Mutex
	lines    []*line
	polls    int
	down     error                  // of polls
	deletion func(id string) string // the code with which a deletion fails, or ""
	broken   func(op string) error  // of batch calls
	changed  []string               // "<body> <seconds>"
	cut      chan struct{}          // polls that were cut off
}

type line struct {
	types.Message
	received int
	visible  time.Time
	gone     bool
}

func newShelf() *shelf { return &shelf{cut: make(chan struct{}, 100)} }

// put adds messages of a group, which may be "".
func (s *shelf) put(group string, bodies ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range bodies {
		l := &line{visible: time.Now()}
		l.MessageId, l.Body, l.ReceiptHandle = new(fmt.Sprintf("m%d", len(s.lines))), &b, new(b)
		if group != "" {
			l.Attributes = map[string]string{"MessageGroupId": group}
		}
		s.lines = append(s.lines, l)
	}
}

func (s *shelf) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func (s *shelf) look() []types.Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	busy := make(map[string]bool)
	for _, l := range s.lines {
		if g := l.Attributes["MessageGroupId"]; g != "" && !l.gone && l.visible.After(now) {
			busy[g] = true
		}
	}
	var out []types.Message
	for _, l := range s.lines {
		if l.gone || l.visible.After(now) || busy[l.Attributes["MessageGroupId"]] || len(out) == 10 {
			continue
		}
		l.received++
		l.visible = now.Add(30 * time.Second)
		out = append(out, l.Message)
	}
	return out
}

// ReceiveMessage looks every tenth of a second, for 20 seconds.
func (s *shelf) ReceiveMessage(ctx context.Context, _ *sqs.ReceiveMessageInput, _ ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	var err error
	s.set(func() { s.polls++; err = s.down })
	if err != nil {
		return nil, err
	}
	for until := time.Now().Add(longPoll); ; {
		if got := s.look(); len(got) > 0 || !time.Now().Before(until) {
			return &sqs.ReceiveMessageOutput{Messages: got}, nil
		}
		if !rest(ctx, 100*time.Millisecond) {
			s.cut <- struct{}{}
			return nil, ctx.Err()
		}
	}
}

func (s *shelf) find(handle *string) *line {
	i := slices.IndexFunc(s.lines, func(l *line) bool { return *l.ReceiptHandle == *handle })
	return s.lines[i]
}

func (s *shelf) begin(ctx context.Context, op string) error {
	if s.broken != nil {
		return cmp.Or(ctx.Err(), s.broken(op))
	}
	return ctx.Err()
}

// DeleteMessageBatch deletes, unless it is to fail.
func (s *shelf) DeleteMessageBatch(ctx context.Context, in *sqs.DeleteMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.begin(ctx, "delete"); err != nil {
		return nil, err
	}
	out := &sqs.DeleteMessageBatchOutput{}
	for _, e := range in.Entries {
		l := s.find(e.ReceiptHandle)
		if s.deletion != nil {
			if code := s.deletion(*l.Body); code != "" {
				out.Failed = append(out.Failed, types.BatchResultErrorEntry{Id: e.Id, Code: &code})
				continue
			}
		}
		l.gone = true
	}
	return out, nil
}

// ChangeMessageVisibilityBatch changes what is in flight.
func (s *shelf) ChangeMessageVisibilityBatch(ctx context.Context, in *sqs.ChangeMessageVisibilityBatchInput, _ ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.begin(ctx, "change"); err != nil {
		return nil, err
	}
	out := &sqs.ChangeMessageVisibilityBatchOutput{}
	for _, e := range in.Entries {
		l := s.find(e.ReceiptHandle)
		if l.gone || !l.visible.After(time.Now()) {
			out.Failed = append(out.Failed, types.BatchResultErrorEntry{Id: e.Id, Code: new("MessageNotInflight"), SenderFault: true})
			continue
		}
		l.visible = time.Now().Add(time.Duration(e.VisibilityTimeout) * time.Second)
		s.changed = append(s.changed, fmt.Sprintf("%s %d", *l.Body, e.VisibilityTimeout))
	}
	return out, nil
}

// left are the bodies that are not deleted.
func (s *shelf) left() (bodies []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.lines {
		if !l.gone {
			bodies = append(bodies, *l.Body)
		}
	}
	return bodies
}

// polled is how often it was polled.
func (s *shelf) polled() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.polls
}

// hidden are the changes of visibility.
func (s *shelf) hidden() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.changed)
}

// most is how often a message has been received at the most.
func (s *shelf) most() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.lines {
		n = max(n, l.received)
	}
	return n
}

// basin takes events, in a way of its own: refusing some, for some there is no room.
type basin struct {
	mu    sync.Mutex
	errs  map[string]error // by body
	whole error            // of all
	got   []string
	told  []string
	stall chan struct{} // if not nil, each call waits for it, or its context
}

func (b *basin) set(change func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change()
}

// take does as core's ingester does: what is not taken holds its unit back.
func (b *basin) take(ctx context.Context, events []core.Event) (why []error) {
	why = make([]error, len(events))
	if b.stall != nil {
		select {
		case <-b.stall:
		case <-ctx.Done():
			for i := range why {
				why[i] = core.Wrap(core.Canceled, ctx.Err(), "stopped")
			}
			return why
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	stopped := make(map[string]error)
	for i := range events {
		e := &events[i]
		why[i] = cmp.Or(b.whole, stopped[e.Unit], b.errs[string(e.Body)])
		if e.Unit != "" {
			stopped[e.Unit] = why[i]
		}
		if why[i] == nil {
			b.got = append(b.got, string(e.Body))
		}
	}
	return why
}

func (b *basin) all() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.got)
}

// reports are the failures that were told of.
func (b *basin) reports() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.told)
}

func (b *basin) options() Options {
	return Options{Failed: func(op string, err error) { b.set(func() { b.told = append(b.told, op+": "+err.Error()) }) }}
}

var errFull = &core.Error{Code: core.Full, Detail: "full", RetryAfter: time.Second}

var errAway = errors.New("away")

// inBubble runs a receiver in a bubble. end ends it, and is how long that took.
func inBubble(t *testing.T, test func(t *testing.T, s *shelf, b *basin, start func() (end func() time.Duration))) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, b := newShelf(), &basin{errs: map[string]error{}}
		test(t, s, b, func() func() time.Duration {
			ctx, cancel := context.WithCancel(context.Background())
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				New(s, "https://sqs.example.com/1/q", b.take, b.options()).Run(ctx)
			}()
			return func() time.Duration {
				begun := time.Now()
				cancel()
				<-ended
				return time.Since(begun)
			}
		})
	})
}

// sleep lets the bubble's time go on.
func sleep(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}
