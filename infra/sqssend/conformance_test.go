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
		s, err := sqssend.New(awstest.SQS(t, faults.Option), sqssend.Options{Queue: queue.URL, Timeout: timeout})
		require.NoError(t, err)
		r := &reader{t: t, client: client, queue: queue.URL}
		return sendertest.Destination{
			Sender: s,
			Received: func() [][]byte {
				var got [][]byte
				for _, m := range r.all() {
					got = append(got, piece(m))
				}
				return got
			},
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
			FailItems: func(ids ...string) { faults.After(failing(ids)) },
			Refuse: func() {
				_, err := client.DeleteQueue(context.Background(), &awssqs.DeleteQueueInput{QueueUrl: &queue.URL})
				require.NoError(t, err)
			},
		}
	}})
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
