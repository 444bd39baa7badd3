package sqs

import (
	"context"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"sluice/core"
	"sluice/core/message"
)

// The bounds of one look at the queue.
const (
	mostLooked = 5000             // messages
	longest    = 10 * time.Second // of receiving
	lookAhead  = 100              // letters seen beyond those to take, among which the oldest are taken
	// before a caller's deadline it ends so much earlier: the last receive may
	// wait a second, what was seen is made visible again, and there is an
	// answer to write.
	ending = 4 * time.Second
	// unseen is how long a message stays invisible that a look has met and
	// could not make visible again.
	unseen = 30 * time.Second
)

// sighting is a letter that a look has met, as one message or several.
type sighting struct {
	place
	sent    string           // when its first message was sent, in milliseconds, which all have as many digits
	handles []string         // of its messages
	letter  *core.DeadLetter // nil: it is not among the oldest
}

// look receives what is visible, and keeps the letters that are the oldest.
type look struct {
	d      *DeadLetters
	filter core.DeadLetterFilter
	after  *place // keeps only what is behind this place; nil: all
	limit  int    // keeps so many
	budget int64  // and of so many bytes, unless it is one; 0: no limit
	enough int    // ends when so many were seen; 0: at the end of the queue

	seen   map[string]*sighting // by id
	oldest []*sighting          // in order
	bytes  int64                // of these
	edge   *place               // of the first letter behind them that was not kept; nil: all were
	more   bool                 // there may be letters behind the oldest
	others []string             // handles of what the filter does not pick
	looked int
}

func (d *DeadLetters) look(f core.DeadLetterFilter) *look {
	return &look{d: d, filter: f, seen: map[string]*sighting{}}
}

// List implements [core.DeadLetterQueue]. A from that List never returned is Invalid.
func (d *DeadLetters) List(ctx context.Context, f core.DeadLetterFilter, from string, limit int) ([]core.DeadLetter, string, error) {
	s := d.look(f)
	s.limit, s.budget = limit, f.MaxBytes
	if from != "" {
		var err error
		if s.after, err = parsePlace(from); err != nil {
			return nil, "", err
		}
	}
	err := s.run(ctx)
	s.release(ctx, s.all())
	if err != nil {
		return nil, "", err
	}
	page := make([]core.DeadLetter, 0, len(s.oldest))
	for _, o := range s.oldest {
		page = append(page, *o.letter)
	}
	return page, s.next(), nil
}

// next is where the page behind the oldest begins; "": there is none.
func (s *look) next() string {
	switch n := len(s.oldest); {
	case !s.more:
		return ""
	case n > 0:
		return s.oldest[n-1].String()
	case s.edge != nil: // all that was before it has gone behind it
		before := *s.edge
		before.ID = ""
		return before.String()
	default:
		return ""
	}
}

// Take implements [core.DeadLetterQueue]. A lease is at most 12 hours, in whole
// seconds, rounded up.
func (d *DeadLetters) Take(ctx context.Context, f core.DeadLetterFilter, limit int, now, until core.Millis) ([]core.DeadLetter, error) {
	s := d.look(f)
	s.limit, s.enough = limit, limit+lookAhead
	err := s.run(ctx)
	if err != nil {
		s.release(ctx, s.all())
		return nil, err
	}
	var mine []string
	for _, o := range s.oldest {
		mine = append(mine, o.handles...)
	}
	if err := d.hide(ctx, "lease dead letters", mine, until.Sub(now)); err != nil {
		s.release(ctx, s.all())
		return nil, err
	}
	taken := make([]core.DeadLetter, 0, len(s.oldest))
	for _, o := range s.oldest {
		o.letter.Receipt = receipt(until, o.handles)
		taken = append(taken, *o.letter)
		o.handles = nil
	}
	s.release(ctx, s.all())
	return taken, nil
}

// run receives until the queue has no more to show, or a bound is reached. It
// receives once however little time there is, so that a caller gets on.
func (s *look) run(ctx context.Context) error {
	in := &sqs.ReceiveMessageInput{
		QueueUrl: &s.d.queue, MaxNumberOfMessages: maxEntries, VisibilityTimeout: seconds(unseen, maxVisibility),
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameSentTimestamp},
	}
	if !s.d.o.ShortPolls {
		in.WaitTimeSeconds = 1
	}
	until := s.d.o.Clock.Now().Add(timeFor(ctx))
	for s.enough == 0 || len(s.seen) < s.enough {
		out, err := s.d.client.ReceiveMessage(ctx, in)
		if err != nil {
			return failed("look at dead letters", err)
		}
		if len(out.Messages) == 0 {
			return nil
		}
		for i := range out.Messages {
			s.see(&out.Messages[i])
		}
		if s.looked >= mostLooked || s.d.o.Clock.Now() >= until {
			s.more = true // for all that is known
			return nil
		}
	}
	return nil
}

// timeFor is how long a look for a caller goes on to receive.
func timeFor(ctx context.Context) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		return min(longest, time.Until(deadline)-ending)
	}
	return longest
}

// see takes note of a message.
func (s *look) see(m *types.Message) {
	s.looked++
	handle := value(m.ReceiptHandle)
	l, err := message.DecodeLetter([]byte(value(m.Body)))
	if err != nil {
		s.d.o.Failed("read a dead letter", core.Wrap(core.CodeOf(err), err, "message %s", value(m.MessageId)))
	}
	if err != nil || !picks(s.filter, &l) {
		s.others = append(s.others, handle)
		return
	}
	sent := m.Attributes[string(types.MessageSystemAttributeNameSentTimestamp)]
	o := s.seen[l.ID]
	switch {
	case o == nil:
		o = &sighting{}
		s.seen[l.ID] = o
	case sent >= o.sent:
		o.handles = append(o.handles, handle)
		return
	default: // the first that was put of this id
		if at := slices.Index(s.oldest, o); at >= 0 {
			s.bytes -= o.letter.Size()
			s.oldest = slices.Delete(s.oldest, at, at+1)
		}
	}
	o.place, o.sent, o.handles, o.letter = placeOf(&l), sent, append(o.handles, handle), nil
	s.keep(o, &l)
}

// keep puts a sighting among the oldest if that is its place.
func (s *look) keep(o *sighting, l *core.DeadLetter) {
	switch {
	case s.after != nil && o.compare(*s.after) <= 0:
		return
	case s.edge != nil && o.compare(*s.edge) > 0:
		return
	}
	at, _ := slices.BinarySearchFunc(s.oldest, o, func(a, b *sighting) int { return a.compare(b.place) })
	o.letter = l
	s.oldest = slices.Insert(s.oldest, at, o)
	s.bytes += l.Size()
	for n := len(s.oldest); n > s.limit || n > 1 && s.budget > 0 && s.bytes > s.budget; n-- {
		last := s.oldest[n-1]
		s.bytes -= last.letter.Size()
		last.letter = nil
		s.oldest, s.edge, s.more = s.oldest[:n-1], new(last.place), true
	}
}

// all are the messages that this look still holds.
func (s *look) all() []string {
	all := s.others
	for _, o := range s.seen {
		all = append(all, o.handles...)
	}
	return all
}

// release makes messages visible again. Those for which that fails become so
// by themselves, a little later.
func (s *look) release(ctx context.Context, handles []string) {
	const op = "make dead letters visible again"
	if err := s.d.hide(context.WithoutCancel(ctx), op, handles, 0); err != nil {
		s.d.o.Failed(op, err)
	}
}

// picks reports whether f picks l.
func picks(f core.DeadLetterFilter, l *core.DeadLetter) bool {
	return (f.Buffer == "" || f.Buffer == l.Buffer) && (len(f.IDs) == 0 || slices.Contains(f.IDs, l.ID))
}
