package sqs

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"sluice/core"
	"sluice/core/message"
)

// DeadLetters is a [core.DeadLetterSink] and [core.DeadLetterQueue] on a
// standard queue, one letter a message, for as long as the queue keeps
// messages (14 days at most). It is safe for concurrent use.
//
// What such a queue cannot promise:
//
//   - A letter that is put again is there twice. One call shows it once, and
//     takes or removes all of it that it has met.
//   - To look is to receive: a letter that one call looks at is, for a moment,
//     not there for another.
//   - A call looks at no more than 5,000 messages, for no longer than ten
//     seconds, and until four seconds before its ctx has its deadline. Among
//     those the order is exact; in a longer queue it is SQS's, and a list may
//     end, or a filter find nothing, before all was seen.
//   - The count of all letters is SQS's own approximation.
//
// A message that is no dead letter is reported and left where it is.
type DeadLetters struct {
	client API
	queue  string
	o      DeadLetterOptions
}

// DeadLetterOptions are the settings of [DeadLetters].
type DeadLetterOptions struct {
	Clock core.Clock
	// Failed is told of messages that are no dead letters, and of those that
	// could not be made visible again at once; may be nil. The op is one of a
	// few, so that it can be counted by.
	Failed func(op string, err error)
	// ShortPolls ends a look at the queue at the first empty answer instead of
	// waiting a second for more. SQS may answer so while there are messages;
	// it is for stand-ins, which do not.
	ShortPolls bool
}

var (
	_ core.DeadLetterSink  = (*DeadLetters)(nil)
	_ core.DeadLetterQueue = (*DeadLetters)(nil)
)

// NewDeadLetters makes dead letters of the queue at a URL.
func NewDeadLetters(client API, queueURL string, o DeadLetterOptions) *DeadLetters {
	if o.Failed == nil {
		o.Failed = func(string, error) {}
	}
	return &DeadLetters{client: client, queue: queueURL, o: o}
}

// Put implements [core.DeadLetterSink]. It holds at most 17 MiB of messages at
// a time. After an error some of the letters may have been put, whichever.
// TooLarge: one is over [message.MaxLetter].
func (d *DeadLetters) Put(ctx context.Context, letters []core.DeadLetter) error {
	f := newFlight()
	var bodies []string
	size := 0
	flush := func() bool {
		batch := bodies
		bodies, size = nil, 0
		return len(batch) == 0 || f.add(func() error {
			return inRounds("put dead letters", span(0, len(batch)), d.send(ctx, batch))
		})
	}
	put := make(map[string]bool, len(letters))
	for i := range letters {
		if put[letters[i].ID] {
			continue
		}
		put[letters[i].ID] = true
		body, err := message.EncodeLetter(&letters[i])
		if err != nil {
			f.fail(err)
			return f.end()
		}
		if full := len(bodies) == maxEntries || size+len(body) > maxBatchBytes; full && !flush() {
			return f.end()
		}
		bodies, size = append(bodies, body), size+len(body)
	}
	flush()
	return f.end()
}

func (d *DeadLetters) send(ctx context.Context, bodies []string) chunk {
	return func(numbers []int) ([]types.BatchResultErrorEntry, error) {
		in := &sqs.SendMessageBatchInput{QueueUrl: &d.queue}
		for _, n := range numbers {
			in.Entries = append(in.Entries, types.SendMessageBatchRequestEntry{Id: entryID(n), MessageBody: &bodies[n]})
		}
		out, err := d.client.SendMessageBatch(ctx, in)
		if err != nil {
			return nil, err
		}
		return out.Failed, nil
	}
}

// Count implements [core.DeadLetterQueue]. For all letters it is SQS's
// approximation, with the taken ones; else it counts what it sees, which are
// not the taken ones.
func (d *DeadLetters) Count(ctx context.Context, f core.DeadLetterFilter) (int, error) {
	if f.Buffer != "" || len(f.IDs) > 0 {
		s := d.look(f)
		err := s.run(ctx)
		s.release(ctx, s.all())
		return len(s.seen), err
	}
	const op = "count dead letters"
	out, err := d.client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl: &d.queue,
		AttributeNames: []types.QueueAttributeName{
			types.QueueAttributeNameApproximateNumberOfMessages,
			types.QueueAttributeNameApproximateNumberOfMessagesNotVisible,
		},
	})
	if err != nil {
		return 0, failed(op, err)
	}
	n := 0
	for name, v := range out.Attributes {
		part, err := strconv.Atoi(v)
		if err != nil {
			return 0, core.Wrap(core.Internal, err, "%s: %s is %q", op, name, v)
		}
		n += part
	}
	return n, nil
}

// Settle implements [core.DeadLetterQueue]. A letter whose lease has ended is
// free without being given back, and if it is done SQS may keep it all the same.
func (d *DeadLetters) Settle(ctx context.Context, done, back []core.DeadLetter) error {
	gone, err := handles(done, 0)
	if err != nil {
		return err
	}
	free, err := handles(back, d.o.Clock.Now())
	if err != nil {
		return err
	}
	err = inBatches("remove dead letters", len(gone), func(numbers []int) ([]types.BatchResultErrorEntry, error) {
		in := &sqs.DeleteMessageBatchInput{QueueUrl: &d.queue}
		for _, n := range numbers {
			in.Entries = append(in.Entries, types.DeleteMessageBatchRequestEntry{Id: entryID(n), ReceiptHandle: &gone[n]})
		}
		out, err := d.client.DeleteMessageBatch(ctx, in)
		if err != nil {
			return nil, err
		}
		return standing(out.Failed), nil
	})
	if err != nil {
		return err
	}
	return d.hide(ctx, "give dead letters back", free, 0)
}

// hide makes messages invisible for so long from now; 0 makes them visible.
func (d *DeadLetters) hide(ctx context.Context, op string, handles []string, lease time.Duration) error {
	return inBatches(op, len(handles), func(numbers []int) ([]types.BatchResultErrorEntry, error) {
		in := &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &d.queue}
		for _, n := range numbers {
			in.Entries = append(in.Entries, types.ChangeMessageVisibilityBatchRequestEntry{
				Id: entryID(n), ReceiptHandle: &handles[n], VisibilityTimeout: seconds(lease, maxVisibility),
			})
		}
		out, err := d.client.ChangeMessageVisibilityBatch(ctx, in)
		if err != nil {
			return nil, err
		}
		return standing(out.Failed), nil
	})
}

// receipt is a letter's lease: its end, and the messages that it is of.
func receipt(until core.Millis, handles []string) string {
	return strconv.FormatInt(int64(until), 10) + " " + strings.Join(handles, " ")
}

// handles are the messages of letters whose lease has not ended by now.
func handles(letters []core.DeadLetter, now core.Millis) ([]string, error) {
	var all []string
	for i := range letters {
		end, of, ok := strings.Cut(letters[i].Receipt, " ")
		until, err := strconv.ParseInt(end, 10, 64)
		if !ok || err != nil {
			return nil, core.Errorf(core.Invalid, "dead letter %s was not taken: its receipt is %q", letters[i].ID, letters[i].Receipt)
		}
		if core.Millis(until) > now {
			all = append(all, strings.Split(of, " ")...)
		}
	}
	return all, nil
}
