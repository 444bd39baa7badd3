package sqssend_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/core/format"
	"sluice/core/sendertest"
	"sluice/infra/awstest"
	"sluice/infra/sqssend"
)

// TestConformance passes the suite against another's SQS, over the network.
// Answers are changed on their way for what SQS says on bad days alone.
func TestConformance(t *testing.T) {
	t.Parallel()
	client := awstest.SQS(t)
	sendertest.Run(t, sendertest.Harness{Name: "sqssend", Pieces: pieces, New: func(t *testing.T, _ format.Format, timeout time.Duration) sendertest.Destination {
		t.Helper()
		faults := &awstest.Faults{}
		queue := awstest.Queue(t, client, nil)
		d := destination(t, client, faults, queue, timeout)
		r := &reader{t: t, client: client, queue: queue.URL}
		d.Received = func() [][]byte { return piecesOf(r.all()) }
		d.FailItems = func(ids ...string) { faults.After(failing(ids)) }
		return d
	}})
}

// TestConformanceFIFO passes it with a FIFO queue, which keeps the order, drops
// what is sent again, and of which only what stands before a failure is sent.
func TestConformanceFIFO(t *testing.T) {
	t.Parallel()
	client := awstest.SQS(t)
	sendertest.Run(t, sendertest.Harness{Name: "sqssend, FIFO", Pieces: pieces, Ordered: true, Replaces: true, New: func(t *testing.T, _ format.Format, timeout time.Duration) sendertest.Destination {
		t.Helper()
		queue := awstest.Queue(t, client, map[string]string{"FifoQueue": "true"})
		d := destination(t, client, &awstest.Faults{}, queue, timeout)
		r := &reader{t: t, client: client, queue: queue.URL}
		d.Received = func() [][]byte { return piecesOf(r.fifo()) }
		return d
	}})
}

// destination is what queues of both kinds can do.
func destination(t *testing.T, client *awssqs.Client, faults *awstest.Faults, queue awstest.QueueRef, timeout time.Duration) sendertest.Destination {
	t.Helper()
	s, err := sqssend.New(awstest.SQS(t, faults.Option), sqssend.Options{Queue: queue.URL, Timeout: timeout})
	require.NoError(t, err)
	return sendertest.Destination{
		Sender: s,
		Stall: func() <-chan struct{} {
			reached := make(chan struct{}, 1)
			faults.Set(func(ctx context.Context, _ awstest.Call) awstest.Fault {
				select {
				case reached <- struct{}{}:
				default:
				}
				<-ctx.Done()
				return awstest.Lost
			})
			return reached
		},
		Throttle: func(time.Duration) (told time.Duration) {
			faults.Set(func(context.Context, awstest.Call) awstest.Fault { return awstest.Throttle })
			return 0
		},
		Refuse: func() {
			_, err := client.DeleteQueue(context.Background(), &awssqs.DeleteQueueInput{QueueUrl: &queue.URL})
			require.NoError(t, err)
		},
		TooLarge: func() {
			_, err := client.SetQueueAttributes(context.Background(), &awssqs.SetQueueAttributesInput{
				QueueUrl: &queue.URL, Attributes: map[string]string{"MaximumMessageSize": "1024"},
			})
			require.NoError(t, err)
		},
	}
}

func piecesOf(messages []types.Message) (all [][]byte) {
	for _, m := range messages {
		all = append(all, piece(m))
	}
	return all
}

// failing makes an answer say that these entries failed, by a fault of SQS: of
// those of other calls nothing, but of those that are in none.
func failing(ids []string) awstest.Hook {
	return func(_ context.Context, c awstest.Call, out any, _ error) {
		answer := out.(*awssqs.SendMessageBatchOutput)
		in := c.Input.(*awssqs.SendMessageBatchInput)
		for _, id := range ids {
			sent := func(e types.SendMessageBatchRequestEntry) bool { return *e.Id == id }
			if _, err := strconv.Atoi(id); err == nil && !slices.ContainsFunc(in.Entries, sent) {
				continue
			}
			answer.Successful = slices.DeleteFunc(answer.Successful, func(e types.SendMessageBatchResultEntry) bool { return *e.Id == id })
			answer.Failed = append(answer.Failed, types.BatchResultErrorEntry{Id: &id, Code: new("InternalError"), Message: new("on a bad day")})
		}
	}
}

// pieces are what arrives of a batch.
func pieces(b *core.Batch) [][]byte {
	var all [][]byte
	for i := range b.Items {
		all = append(all, fmt.Appendf(nil, "%s %s %s %q", b.ID, b.Items[i].ID, b.Items[i].ContentType, b.Items[i].Body))
	}
	return all
}

func piece(m types.Message) []byte {
	return fmt.Appendf(nil, "%s %s %s %q", attribute(m, "sluice-batch"), attribute(m, "id"), attribute(m, "content-type"), body(m))
}

// body is a message's payload, as a consumer reads it.
func body(m types.Message) []byte {
	switch attribute(m, "sluice-encoding") {
	case "empty":
		return []byte{}
	case "base64":
		raw, err := base64.StdEncoding.DecodeString(*m.Body)
		if err != nil {
			return []byte(err.Error())
		}
		return raw
	}
	return []byte(*m.Body)
}

func attribute(m types.Message, name string) string {
	if v, ok := m.MessageAttributes[name]; ok {
		return *v.StringValue
	}
	return ""
}

// reader reads a queue dry.
type reader struct {
	t      testing.TB
	client *awssqs.Client
	queue  string
	got    []types.Message
}

// all is every message that has arrived so far.
func (r *reader) all() []types.Message {
	r.t.Helper()
	for {
		out, err := r.client.ReceiveMessage(context.Background(), &awssqs.ReceiveMessageInput{
			QueueUrl: &r.queue, MaxNumberOfMessages: 10, VisibilityTimeout: 600,
			MessageAttributeNames:       []string{"All"},
			MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
		})
		require.NoError(r.t, err)
		if len(out.Messages) == 0 {
			return r.got
		}
		r.got = append(r.got, out.Messages...)
	}
}

// fifo is every message of a FIFO queue, which shows none behind those that
// are not yet deleted.
func (r *reader) fifo() []types.Message {
	r.t.Helper()
	for n := -1; n < len(r.got); {
		n = len(r.got)
		for _, m := range r.all()[n:] {
			_, err := r.client.DeleteMessage(context.Background(), &awssqs.DeleteMessageInput{QueueUrl: &r.queue, ReceiptHandle: m.ReceiptHandle})
			require.NoError(r.t, err)
		}
	}
	return r.got
}
