package sqstest_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"sluice/infra/sqs/sqstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ctx = context.Background()

// refused checks that an error is one of SQS's codes.
func refused(t *testing.T, want string, err error) {
	t.Helper()
	var api smithy.APIError
	require.ErrorAs(t, err, &api)
	require.Equal(t, want, api.ErrorCode())
}

func send(t *testing.T, s *sqstest.SQS, url, body string, delay int32) {
	t.Helper()
	_, err := s.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &body, DelaySeconds: delay})
	require.NoError(t, err)
}

func receive(t *testing.T, s *sqstest.SQS, url string, n, wait int32) []types.Message {
	t.Helper()
	out, err := s.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &url, MaxNumberOfMessages: n, WaitTimeSeconds: wait, VisibilityTimeout: 60})
	require.NoError(t, err)
	return out.Messages
}

func bodies(messages []types.Message) []string {
	out := make([]string, len(messages))
	for i := range messages {
		out[i] = *messages[i].Body
	}
	return out
}

// TestRefusesSends tries what SQS refuses, and what it just takes.
func TestRefusesSends(t *testing.T) {
	t.Parallel()
	s := &sqstest.SQS{}
	url := s.Queue("q")
	for _, c := range []struct {
		name  string
		in    sqs.SendMessageInput
		wants string
	}{
		{"900 s", sqs.SendMessageInput{MessageBody: new("x"), DelaySeconds: 900}, ""},
		{"901 s", sqs.SendMessageInput{MessageBody: new("x"), DelaySeconds: 901}, "InvalidParameterValue"},
		{"-1 s", sqs.SendMessageInput{MessageBody: new("x"), DelaySeconds: -1}, "InvalidParameterValue"},
		{"1 MiB", sqs.SendMessageInput{MessageBody: new(strings.Repeat("x", 1<<20))}, ""},
		{"more", sqs.SendMessageInput{MessageBody: new(strings.Repeat("x", 1<<20+1))}, "InvalidParameterValue"},
		{"no body", sqs.SendMessageInput{}, "MissingParameter"},
		{"an empty body", sqs.SendMessageInput{MessageBody: new("")}, "MissingParameter"},
		{"a NUL", sqs.SendMessageInput{MessageBody: new("\x00")}, "InvalidMessageContents"},
		{"a noncharacter", sqs.SendMessageInput{MessageBody: new("\uFFFE")}, "InvalidMessageContents"},
		{"no UTF-8", sqs.SendMessageInput{MessageBody: new("\xff")}, "InvalidMessageContents"},
		{"what is allowed", sqs.SendMessageInput{MessageBody: new("\t\r\n ä\uFFFD🚰")}, ""},
		{"a group", sqs.SendMessageInput{MessageBody: new("x"), MessageGroupId: new(strings.Repeat("-", 128))}, ""},
		{"a long group", sqs.SendMessageInput{MessageBody: new("x"), MessageGroupId: new(strings.Repeat("-", 129))}, "InvalidParameterValue"},
		{"an empty group", sqs.SendMessageInput{MessageBody: new("x"), MessageGroupId: new("")}, "InvalidParameterValue"},
		{"a group with a space", sqs.SendMessageInput{MessageBody: new("x"), MessageGroupId: new("a b")}, "InvalidParameterValue"},
		{"a group beyond ASCII", sqs.SendMessageInput{MessageBody: new("x"), MessageGroupId: new("ä")}, "InvalidParameterValue"},
		{"no such queue", sqs.SendMessageInput{MessageBody: new("x"), QueueUrl: new("https://sqs.test/none")}, "QueueDoesNotExist"},
	} {
		if c.in.QueueUrl == nil {
			c.in.QueueUrl = &url
		}
		_, err := s.SendMessage(ctx, &c.in)
		if c.wants == "" {
			require.NoError(t, err, c.name)
			continue
		}
		refused(t, c.wants, err)
		if c.in.QueueUrl != &url || c.in.MessageBody == nil {
			continue
		}
		out, err := s.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: &url, Entries: []types.SendMessageBatchRequestEntry{
			{Id: new("bad"), MessageBody: c.in.MessageBody, MessageGroupId: c.in.MessageGroupId, DelaySeconds: c.in.DelaySeconds},
		}})
		if err != nil {
			refused(t, "BatchRequestTooLong", err)
			continue
		}
		require.Len(t, out.Failed, 1, c.name)
		require.Equal(t, c.wants, *out.Failed[0].Code, c.name)
		require.True(t, out.Failed[0].SenderFault)
	}
}

func TestRefusesBatches(t *testing.T) {
	t.Parallel()
	s := &sqstest.SQS{}
	url := s.Queue("q")
	entries := func(size int, ids ...string) []types.SendMessageBatchRequestEntry {
		var out []types.SendMessageBatchRequestEntry
		for _, id := range ids {
			out = append(out, types.SendMessageBatchRequestEntry{Id: &id, MessageBody: new(strings.Repeat("x", size))})
		}
		return out
	}
	for _, c := range []struct {
		entries []types.SendMessageBatchRequestEntry
		want    string
	}{
		{nil, "EmptyBatchRequest"},
		{entries(1, strings.Split("0123456789a", "")...), "TooManyEntriesInBatchRequest"},
		{entries(1, "a", "b", "a"), "BatchEntryIdsNotDistinct"},
		{entries(1, "a/1"), "InvalidBatchEntryId"},
		{entries(1, ""), "InvalidBatchEntryId"},
		{entries(1, strings.Repeat("a", 81)), "InvalidBatchEntryId"},
		{entries(1<<19+1, "a", "b"), "BatchRequestTooLong"},
	} {
		_, err := s.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: &url, Entries: c.entries})
		refused(t, c.want, err)
	}
	require.Zero(t, s.Len(url))
	out, err := s.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: &url, Entries: entries(1<<19, "a", "b")})
	require.NoError(t, err)
	require.Len(t, out.Successful, 2)
	for _, in := range []sqs.ReceiveMessageInput{{MaxNumberOfMessages: 11}, {WaitTimeSeconds: 21}, {VisibilityTimeout: 43201}, {VisibilityTimeout: -1}} {
		in.QueueUrl = &url
		_, err := s.ReceiveMessage(ctx, &in)
		refused(t, "InvalidParameterValue", err)
	}
}

// TestTimes holds delays, visibility and long polls to their times.
func TestTimes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &sqstest.SQS{}
		url := s.Queue("q")
		begun := time.Now()
		send(t, s, url, "late", 3)
		require.Empty(t, receive(t, s, url, 10, 0))
		require.Equal(t, []string{"late"}, bodies(receive(t, s, url, 10, 20)))
		require.Equal(t, 3*time.Second, time.Since(begun))
		require.Empty(t, receive(t, s, url, 10, 0), "it is in flight")
		again := receive(t, s, url, 10, 20)
		require.Empty(t, again, "a long poll ends")
		require.Equal(t, 23*time.Second, time.Since(begun))
		require.NoError(t, s.Await(ctx, url))
		require.Equal(t, 63*time.Second, time.Since(begun), "it is visible again")

		waiting := make(chan *sqs.ReceiveMessageOutput)
		first := receive(t, s, url, 1, 0)
		go func() {
			out, err := s.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &url, WaitTimeSeconds: 20})
			if err != nil {
				t.Errorf("receive: %v", err)
			}
			waiting <- out
		}()
		synctest.Wait()
		send(t, s, url, "at once", 0)
		require.Equal(t, []string{"at once"}, bodies((<-waiting).Messages))
		require.Equal(t, 63*time.Second, time.Since(begun))

		cut, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		require.ErrorIs(t, s.Await(cut, url), context.DeadlineExceeded)
		_, err := s.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: &url, Entries: []types.DeleteMessageBatchRequestEntry{{Id: new("a"), ReceiptHandle: first[0].ReceiptHandle}}})
		require.NoError(t, err)
		require.Equal(t, []string{"at once"}, s.Bodies(url))
	})
}

// TestReceipts shows what an old receipt handle is good for.
func TestReceipts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &sqstest.SQS{}
		url := s.Queue("q")
		send(t, s, url, "x", 0)
		change := func(handle *string, seconds int32) string {
			out, err := s.ChangeMessageVisibilityBatch(ctx, &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &url, Entries: []types.ChangeMessageVisibilityBatchRequestEntry{
				{Id: new("a"), ReceiptHandle: handle, VisibilityTimeout: seconds},
			}})
			require.NoError(t, err)
			if len(out.Failed) == 0 {
				return ""
			}
			return *out.Failed[0].Code
		}
		old := receive(t, s, url, 1, 0)[0].ReceiptHandle
		require.Equal(t, "InvalidParameterValue", change(old, 43201))
		require.Empty(t, change(old, 120))
		<-time.After(119 * time.Second)
		require.Empty(t, receive(t, s, url, 1, 0))
		<-time.After(time.Second)
		require.Equal(t, "InvalidParameterValue", change(old, 1), "it is not in flight")
		handle := receive(t, s, url, 1, 0)[0].ReceiptHandle
		require.Equal(t, "InvalidParameterValue", change(old, 0), "it is in flight under another handle")
		require.Equal(t, "ReceiptHandleIsInvalid", change(new("none"), 0))
		remove := func(handle *string) {
			_, err := s.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: &url, Entries: []types.DeleteMessageBatchRequestEntry{{Id: new("a"), ReceiptHandle: handle}}})
			require.NoError(t, err)
		}
		remove(old)
		require.Equal(t, 1, s.Len(url), "an old handle deletes nothing")
		require.Empty(t, change(handle, 0))
		handle = receive(t, s, url, 1, 0)[0].ReceiptHandle
		remove(handle)
		remove(handle)
		require.Zero(t, s.Len(url))
	})
}

// TestFairness has message groups take turns, and a turn given back.
func TestFairness(t *testing.T) {
	t.Parallel()
	s := &sqstest.SQS{}
	url := s.Queue("q")
	for i, group := range []string{"a", "a", "a", "a", "b", "c"} {
		_, err := s.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &url, MessageBody: new(fmt.Sprint(group, i)), MessageGroupId: &group})
		require.NoError(t, err)
	}
	got := receive(t, s, url, 10, 0)
	require.Equal(t, []string{"a0", "b4", "c5", "a1", "a2", "a3"}, bodies(got))
	var back []types.ChangeMessageVisibilityBatchRequestEntry
	for i := range got[1:] {
		back = append(back, types.ChangeMessageVisibilityBatchRequestEntry{Id: new(strconv.Itoa(i)), ReceiptHandle: got[i+1].ReceiptHandle})
	}
	_, err := s.ChangeMessageVisibilityBatch(ctx, &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &url, Entries: back})
	require.NoError(t, err)
	require.Equal(t, []string{"b4", "c5", "a1", "a2", "a3"}, bodies(receive(t, s, url, 10, 0)))
}

// TestWhims shows what a test may ask for: faults, refusals, disorder, sampling.
func TestWhims(t *testing.T) {
	t.Parallel()
	s := &sqstest.SQS{Disorder: rand.New(rand.NewPCG(1, 1)), Sampling: true}
	url := s.Queue("q")
	s.Fault = func(c sqstest.Call) sqstest.Fault {
		return map[sqstest.Call]sqstest.Fault{{Op: "SendMessage", Nth: 1}: sqstest.Unsent, {Op: "SendMessage", Nth: 2}: sqstest.Lost}[c]
	}
	for n, stored := range []int{0, 1} {
		_, err := s.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &url, MessageBody: new("x")})
		require.Error(t, err)
		require.Equal(t, stored, s.Len(url), "call %d", n+1)
	}
	for i := range 9 {
		send(t, s, url, strconv.Itoa(i), 0)
	}
	require.Equal(t, 11, s.Calls("SendMessage"))
	sample := bodies(receive(t, s, url, 10, 0))
	require.ElementsMatch(t, []string{"x", "1", "3", "5", "7"}, sample)
	require.NotEqual(t, []string{"x", "1", "3", "5", "7"}, sample, "in another order")
	require.Len(t, receive(t, s, url, 10, 1), 5)

	s.Refuse = func(op string, nth int) (string, bool) {
		return map[bool]string{true: "InternalError"}[op == "DeleteMessageBatch" && nth == 1], false
	}
	for _, refusals := range []int{1, 0} {
		out, err := s.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: &url, Entries: []types.DeleteMessageBatchRequestEntry{{Id: new("a"), ReceiptHandle: new("h")}}})
		require.NoError(t, err)
		require.Len(t, out.Failed, refusals)
	}
}

func TestCounts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &sqstest.SQS{}
		url := s.Queue("q")
		for i := range 6 {
			send(t, s, url, "x", map[bool]int32{true: 100}[i == 0])
		}
		receive(t, s, url, 2, 0)
		attributes := func(names ...types.QueueAttributeName) (*sqs.GetQueueAttributesOutput, error) {
			return s.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: names})
		}
		out, err := attributes("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible", "ApproximateNumberOfMessagesDelayed")
		require.NoError(t, err)
		require.Equal(t, map[string]string{
			"ApproximateNumberOfMessages": "3", "ApproximateNumberOfMessagesNotVisible": "2", "ApproximateNumberOfMessagesDelayed": "1",
		}, out.Attributes)
		_, err = attributes("VisibilityTimeout")
		refused(t, "InvalidAttributeName", err)
	})
}
