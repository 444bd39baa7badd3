package lambdatest

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// Treatment is what a source does to its messages.
type Treatment int32

// The treatments.
const (
	Plain  Treatment = iota
	Double           // every batch reaches the function twice, at the same time
	Lose             // no message reaches it
)

// Queue is the part of an SQS client that a source uses.
type Queue interface {
	ReceiveMessage(ctx context.Context, in *sqs.ReceiveMessageInput, options ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error)
	DeleteMessageBatch(ctx context.Context, in *sqs.DeleteMessageBatchInput, options ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error)
}

// Mapping describes an event source mapping of a queue to a function.
type Mapping struct {
	Client    Queue
	QueueURL  string
	QueueARN  string
	Function  *Function
	BatchSize int // 1 to 10
	Pollers   int // batches at a time, as MaximumConcurrency has it
}

// Source is an event source mapping at work. It reads the function's answer as
// ReportBatchItemFailures says: messages that it names stay in the queue until
// their visibility timeout has passed, the others are deleted; a function that
// fails, or names one that it was not given, fails the whole batch.
type Source struct {
	Mapping

	treatment atomic.Int32
	lost      atomic.Int64
	stop      context.CancelFunc
	pollers   sync.WaitGroup
}

// Connect starts a mapping.
func Connect(m Mapping) *Source {
	ctx, stop := context.WithCancel(context.Background())
	s := &Source{Mapping: m, stop: stop}
	for range max(1, m.Pollers) {
		s.pollers.Go(func() { s.poll(ctx) })
	}
	return s
}

// Treat sets what becomes of the messages from now on.
func (s *Source) Treat(t Treatment) { s.treatment.Store(int32(t)) }

// Lost is how many messages have been lost on purpose so far.
func (s *Source) Lost() int { return int(s.lost.Load()) }

// Close ends the mapping. Invocations under way end first.
func (s *Source) Close() {
	s.stop()
	s.pollers.Wait()
}

func (s *Source) poll(ctx context.Context) {
	for ctx.Err() == nil {
		out, err := s.Client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
			QueueUrl:                    aws.String(s.QueueURL),
			MaxNumberOfMessages:         int32(s.BatchSize),
			WaitTimeSeconds:             1,
			MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
			MessageAttributeNames:       []string{"All"},
		})
		if err == nil && len(out.Messages) > 0 {
			s.handle(context.WithoutCancel(ctx), out.Messages)
		}
	}
}

// handle has the function take one batch of messages.
func (s *Source) handle(ctx context.Context, messages []types.Message) {
	times := 1
	switch Treatment(s.treatment.Load()) {
	case Plain:
	case Lose:
		s.lost.Add(int64(len(messages)))
		s.remove(ctx, messages)
		return
	case Double:
		times = 2
	}
	payload, err := json.Marshal(s.event(messages))
	if err != nil {
		return // the message comes again
	}
	var calls sync.WaitGroup
	for range times {
		calls.Go(func() {
			answer, err := s.Function.Invoke(ctx, payload)
			if err == nil {
				s.remove(ctx, succeeded(messages, answer))
			}
		})
	}
	calls.Wait()
}

// succeeded are the messages that a function's answer does not name as failed.
func succeeded(messages []types.Message, answer []byte) []types.Message {
	if len(answer) == 0 {
		return messages
	}
	var r events.SQSEventResponse
	if err := json.Unmarshal(answer, &r); err != nil {
		return nil
	}
	failed := make(map[string]bool, len(r.BatchItemFailures))
	for _, f := range r.BatchItemFailures {
		failed[f.ItemIdentifier] = true
	}
	var done []types.Message
	for _, m := range messages {
		if !failed[aws.ToString(m.MessageId)] {
			done = append(done, m)
		}
		delete(failed, aws.ToString(m.MessageId))
	}
	if len(failed) > 0 {
		return nil // it names one that it was not given
	}
	return done
}

// remove deletes messages; one that it can't delete comes again.
func (s *Source) remove(ctx context.Context, messages []types.Message) {
	if len(messages) == 0 {
		return
	}
	entries := make([]types.DeleteMessageBatchRequestEntry, len(messages))
	for i, m := range messages {
		entries[i] = types.DeleteMessageBatchRequestEntry{Id: m.MessageId, ReceiptHandle: m.ReceiptHandle}
	}
	_, _ = s.Client.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: aws.String(s.QueueURL), Entries: entries})
}

// event is the event that carries messages.
func (s *Source) event(messages []types.Message) events.SQSEvent {
	var e events.SQSEvent
	for _, m := range messages {
		attributes := make(map[string]events.SQSMessageAttribute, len(m.MessageAttributes))
		for name, a := range m.MessageAttributes {
			attributes[name] = events.SQSMessageAttribute{
				StringValue: a.StringValue, BinaryValue: a.BinaryValue, DataType: aws.ToString(a.DataType),
				StringListValues: []string{}, BinaryListValues: [][]byte{},
			}
		}
		e.Records = append(e.Records, events.SQSMessage{
			MessageId:              aws.ToString(m.MessageId),
			ReceiptHandle:          aws.ToString(m.ReceiptHandle),
			Body:                   aws.ToString(m.Body),
			Md5OfBody:              aws.ToString(m.MD5OfBody),
			Md5OfMessageAttributes: aws.ToString(m.MD5OfMessageAttributes),
			Attributes:             m.Attributes,
			MessageAttributes:      attributes,
			EventSourceARN:         s.QueueARN,
			EventSource:            "aws:sqs",
			AWSRegion:              region,
		})
	}
	return e
}
