package lambdatest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/stretchr/testify/require"
)

// queue hands out a list of messages once, and notes which are deleted.
type queue struct {
	mu      sync.Mutex
	left    []types.Message
	deleted []string
	changed chan struct{} // takes one
}

func (q *queue) ReceiveMessage(ctx context.Context, in *sqs.ReceiveMessageInput, _ ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	q.mu.Lock()
	n := min(len(q.left), int(in.MaxNumberOfMessages))
	out := &sqs.ReceiveMessageOutput{Messages: q.left[:n]}
	q.left = q.left[n:]
	q.mu.Unlock()
	if n == 0 {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return out, nil
}

func (q *queue) DeleteMessageBatch(_ context.Context, in *sqs.DeleteMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, e := range in.Entries {
		q.deleted = append(q.deleted, *e.Id)
	}
	q.changed <- struct{}{}
	return &sqs.DeleteMessageBatchOutput{}, nil
}

// messages are three, whose ids are 0, 1 and 2.
func messages() []types.Message {
	list := make([]types.Message, 3)
	for i := range list {
		list[i] = types.Message{MessageId: aws.String(fmt.Sprint(i)), ReceiptHandle: aws.String("r"), Body: aws.String("b")}
	}
	return list
}

func TestSucceeded(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, answer string
		want         int
	}{
		{"nothing", "", 3},
		{"null", "null", 3},
		{"empty", "{}", 3},
		{"no failures", `{"batchItemFailures":[]}`, 3},
		{"null failures", `{"batchItemFailures":null}`, 3},
		{"one", `{"batchItemFailures":[{"itemIdentifier":"1"}]}`, 2},
		{"one twice", `{"batchItemFailures":[{"itemIdentifier":"1"},{"itemIdentifier":"1"}]}`, 2},
		{"all", `{"batchItemFailures":[{"itemIdentifier":"0"},{"itemIdentifier":"1"},{"itemIdentifier":"2"}]}`, 0},
		{"an empty name", `{"batchItemFailures":[{"itemIdentifier":""}]}`, 0},
		{"no name", `{"batchItemFailures":[{}]}`, 0},
		{"an unknown name", `{"batchItemFailures":[{"itemIdentifier":"1"},{"itemIdentifier":"9"}]}`, 0},
		{"no JSON", `done`, 0},
		{"another shape", `{"batchItemFailures":"1"}`, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			require.Len(t, succeeded(messages(), []byte(tt.answer)), tt.want)
		})
	}
}

// The probe answers with what is no failure, or fails.
func TestSource(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name      string
		treatment Treatment
		served    int // invocations
		deletes   int
		lost      int
	}{
		{"plain", Plain, 1, 3, 0},
		{"doubled", Double, 2, 6, 0},
		{"lost", Lose, 0, 3, 3},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := setup(t, func(s *Settings) { s.Concurrency = 1 })
			q := &queue{changed: make(chan struct{}, 2)}
			s := &Source{Mapping: Mapping{Client: q, QueueARN: "arn", Function: f, BatchSize: 10}}
			s.Treat(tt.treatment)
			s.handle(t.Context(), messages())
			require.Len(t, q.deleted, tt.deletes)
			require.Equal(t, tt.lost, s.Lost())
			require.Equal(t, tt.served+1, invoke(t, f, "", "").Served)
		})
	}
}

func TestSourceOfAFailingFunction(t *testing.T) {
	t.Parallel()
	f := setup(t, func(s *Settings) { s.Env = map[string]string{"PROBE": "exit"} })
	q := &queue{}
	(&Source{Mapping: Mapping{Client: q, Function: f, BatchSize: 10}}).handle(t.Context(), messages())
	require.Empty(t, q.deleted, "they come again")
}

func TestConnect(t *testing.T) {
	t.Parallel()
	q := &queue{left: messages(), changed: make(chan struct{}, 3)}
	s := Connect(Mapping{Client: q, Function: setup(t, nil), BatchSize: 2, Pollers: 2})
	<-q.changed
	<-q.changed
	s.Close()
	slices.Sort(q.deleted)
	require.Equal(t, []string{"0", "1", "2"}, q.deleted)
	require.Zero(t, s.Lost())
}

// A source outlives a queue that does not answer.
func TestConnectToABrokenQueue(t *testing.T) {
	t.Parallel()
	q := &broken{asked: make(chan struct{})}
	s := Connect(Mapping{Client: q, Function: setup(t, nil), BatchSize: 1})
	<-q.asked
	<-q.asked
	s.Close()
}

type broken struct {
	queue

	asked chan struct{}
}

func (b *broken) ReceiveMessage(ctx context.Context, _ *sqs.ReceiveMessageInput, _ ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	select {
	case b.asked <- struct{}{}:
	case <-ctx.Done():
	}
	return nil, errors.New("no answer")
}

func TestSQSEvent(t *testing.T) {
	t.Parallel()
	s := Source{Mapping: Mapping{QueueARN: "arn:aws:sqs:us-east-1:123456789012:q"}}
	payload, err := json.Marshal(s.event([]types.Message{{
		MessageId: aws.String("m"), ReceiptHandle: aws.String("r"), Body: aws.String("b"), MD5OfBody: aws.String("d"),
		MD5OfMessageAttributes: aws.String("a"),
		Attributes:             map[string]string{"ApproximateReceiveCount": "2", "MessageGroupId": "g"},
		MessageAttributes: map[string]types.MessageAttributeValue{
			"x": {DataType: aws.String("String"), StringValue: aws.String("v")},
		},
	}}))
	require.NoError(t, err)
	require.JSONEq(t, `{"Records": [{
		"messageId": "m", "receiptHandle": "r", "body": "b", "md5OfBody": "d", "md5OfMessageAttributes": "a",
		"attributes": {"ApproximateReceiveCount": "2", "MessageGroupId": "g"},
		"messageAttributes": {"x": {"stringValue": "v", "stringListValues": [], "binaryListValues": [], "dataType": "String"}},
		"eventSourceARN": "arn:aws:sqs:us-east-1:123456789012:q", "eventSource": "aws:sqs", "awsRegion": "us-east-1"
	}]}`, string(payload))
}

func TestScheduled(t *testing.T) {
	t.Parallel()
	var e events.EventBridgeEvent
	require.NoError(t, json.Unmarshal(Scheduled("group/flush", time.Unix(1_700_000_000, 0)), &e))
	require.Equal(t, "aws.scheduler", e.Source)
	require.Equal(t, "Scheduled Event", e.DetailType)
	require.Equal(t, []string{"arn:aws:scheduler:us-east-1:123456789012:schedule/group/flush"}, e.Resources)
	require.True(t, e.Time.Equal(time.Unix(1_700_000_000, 0)))
	require.JSONEq(t, `"{}"`, string(e.Detail))
}
