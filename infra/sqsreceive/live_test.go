package sqsreceive

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/infra/awstest"
)

// These tests run against another's SQS, over the network.

const (
	patience = time.Minute
	often    = 5 * time.Millisecond
)

// send sends messages of groups, which may be "", ten at a time.
func send(t *testing.T, client *sqs.Client, queue string, n int, group, body func(i int) string) {
	t.Helper()
	for from := 0; from < n; from += 10 {
		in := &sqs.SendMessageBatchInput{QueueUrl: &queue}
		for i := from; i < min(n, from+10); i++ {
			e := types.SendMessageBatchRequestEntry{Id: new(strconv.Itoa(i)), MessageBody: new(body(i))}
			if g := group(i); g != "" {
				e.MessageGroupId, e.MessageDeduplicationId = &g, new(strconv.Itoa(i))
			}
			in.Entries = append(in.Entries, e)
		}
		out, err := client.SendMessageBatch(context.Background(), in)
		require.NoError(t, err)
		require.Empty(t, out.Failed)
	}
}

// count is how many messages a queue has, in flight or not.
func count(client *sqs.Client, queue string) (n int) {
	out, err := client.GetQueueAttributes(context.Background(), &sqs.GetQueueAttributesInput{
		QueueUrl: &queue, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll},
	})
	if err != nil {
		return -1
	}
	for _, name := range []string{"", "NotVisible", "Delayed"} {
		k, err := strconv.Atoi(out.Attributes["ApproximateNumberOfMessages"+name])
		if err != nil {
			return -1
		}
		n += k
	}
	return n
}

// receiving runs a receiver until the test, or what is returned, ends it.
func receiving(t *testing.T, client API, queue string, b *basin) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var run sync.WaitGroup
	run.Go(func() { New(client, queue, b.take, b.options()).Run(ctx) })
	end = func() {
		cancel()
		run.Wait()
	}
	t.Cleanup(end)
	return end
}

func noGroup(int) string { return "" }

func numbered(i int) string { return fmt.Sprintf("%04d", i) }

func numbers(n int) (all []string) {
	for i := range n {
		all = append(all, numbered(i))
	}
	return all
}

func TestLiveStandard(t *testing.T) {
	t.Parallel()
	client := awstest.SQS(t)
	q := awstest.Queue(t, client, nil)
	const n = 1000
	send(t, client, q.URL, n, noGroup, numbered)
	b := &basin{errs: map[string]error{}}
	begun := time.Now()
	end := receiving(t, awstest.SQS(t), q.URL, b)
	require.Eventually(t, func() bool { return count(client, q.URL) == 0 }, patience, often)
	t.Logf("%d messages in %v", n, time.Since(begun).Round(time.Millisecond))
	end()
	got := b.all()
	slices.Sort(got)
	require.Equal(t, numbers(n), got)
	require.Empty(t, b.reports())
}

// A full buffer leaves all in the queue. When there is room they come, each
// having been received once, though the queue hides them for a second only.
func TestLiveFull(t *testing.T) {
	t.Parallel()
	client := awstest.SQS(t)
	dead := awstest.Queue(t, client, nil)
	q := awstest.Queue(t, client, map[string]string{
		"VisibilityTimeout": "1", "RedrivePolicy": `{"deadLetterTargetArn":"` + dead.ARN + `","maxReceiveCount":"1"}`,
	})
	const n = 100
	send(t, client, q.URL, n, noGroup, numbered)
	b := &basin{errs: map[string]error{}, whole: errFull}
	receiving(t, awstest.SQS(t), q.URL, b)
	require.Eventually(t, func() bool { return len(b.reports()) >= 30 }, patience, often) // the third of each answer, after 3 seconds
	require.Equal(t, n, count(client, q.URL))
	b.set(func() { b.whole = nil })
	require.Eventually(t, func() bool { return count(client, q.URL) == 0 }, patience, often)
	got := b.all()
	slices.Sort(got)
	require.Equal(t, numbers(n), got)
	require.Zero(t, count(client, dead.URL))
}

// A refused message goes where the queue's owner wants it, and others pass.
func TestLiveRefused(t *testing.T) {
	t.Parallel()
	client := awstest.SQS(t)
	dead := awstest.Queue(t, client, nil)
	q := awstest.Queue(t, client, map[string]string{
		"VisibilityTimeout": "1", "RedrivePolicy": `{"deadLetterTargetArn":"` + dead.ARN + `","maxReceiveCount":"2"}`,
	})
	const n = 30
	b := &basin{errs: map[string]error{numbered(7): core.Errorf(core.TooLarge, "too large")}}
	send(t, client, q.URL, n, noGroup, numbered)
	receiving(t, awstest.SQS(t), q.URL, b)
	require.Eventually(t, func() bool { return count(client, dead.URL) == 1 && count(client, q.URL) == 0 }, patience, often)
	got := b.all()
	slices.Sort(got)
	require.Equal(t, slices.DeleteFunc(numbers(n), func(s string) bool { return s == numbered(7) }), got)
}

// In a FIFO queue every group keeps its order, also behind a message that is
// refused for a while, and behind one for which there is no room.
func TestLiveFIFO(t *testing.T) {
	t.Parallel()
	client := awstest.SQS(t)
	q := awstest.Queue(t, client, map[string]string{"FifoQueue": "true", "VisibilityTimeout": "1"})
	const n, groups = 1000, 10
	group := func(i int) string { return "g" + strconv.Itoa(i%groups) }
	body := func(i int) string { return group(i) + " " + numbered(i) }
	send(t, client, q.URL, n, group, body)
	b := &basin{errs: map[string]error{body(503): core.Errorf(core.Invalid, "refused"), body(404): errFull}}
	begun := time.Now()
	end := receiving(t, awstest.SQS(t), q.URL, b)
	// All other groups pass; of these two, what is before the messages.
	require.Eventually(t, func() bool { return len(b.all()) == n-50-60 && count(client, q.URL) == 50+60 }, patience, often)
	b.set(func() { clear(b.errs) })
	require.Eventually(t, func() bool { return count(client, q.URL) == 0 }, patience, often)
	t.Logf("%d messages in %v", n, time.Since(begun).Round(time.Millisecond))
	end()
	byGroup := make(map[string][]string)
	for _, s := range b.all() {
		g, _, _ := strings.Cut(s, " ")
		byGroup[g] = append(byGroup[g], s)
	}
	require.Len(t, byGroup, groups)
	for g, got := range byGroup {
		require.Len(t, got, n/groups)
		require.True(t, slices.IsSorted(got), "%s: %v", g, got)
	}
}

// One run ends in the middle; the next takes the rest, and nothing comes twice.
func TestLiveStop(t *testing.T) {
	t.Parallel()
	client := awstest.SQS(t)
	q := awstest.Queue(t, client, map[string]string{"VisibilityTimeout": "1"})
	const n = 500
	send(t, client, q.URL, n, noGroup, numbered)
	b := &basin{errs: map[string]error{}}
	for runs := 0; count(client, q.URL) > 0; runs++ {
		require.Less(t, runs, 100)
		had := len(b.all())
		end := receiving(t, awstest.SQS(t), q.URL, b)
		require.Eventually(t, func() bool { return len(b.all()) > min(had+60, n-1) }, patience, time.Millisecond)
		end()
	}
	got := b.all()
	slices.Sort(got)
	require.Equal(t, numbers(n), got)
}
