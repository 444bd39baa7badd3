package wire

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/infra/awstest"
)

// settings are those by which a system finds AWS, which is at a URL. Tests that
// have them cannot run in parallel.
func settings(t *testing.T, at string) {
	t.Helper()
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL_SQS": at, "AWS_REGION": awstest.Region, "AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local",
	} {
		t.Setenv(name, value)
	}
}

// reading writes a configuration of a source that reads the queue in QUEUE_URL.
func reading(t *testing.T, queue, batch string) (path string) {
	t.Helper()
	t.Setenv("QUEUE_URL", queue)
	path = configure(t, "", "type: stdout, timeout: 5m, concurrency: 1, retry: {maxAttempts: 1}")
	replaceInFile(t, path, "in: {type: http}", "in: {type: http}\n  jobs: {type: sqs, queue: env:QUEUE_URL}")
	replaceInFile(t, path, "from: [in]", "from: [in, jobs]")
	replaceInFile(t, path, `, groupBy: "{{ .json.k }}"`, "")
	replaceInFile(t, path, "maxItems: 1", batch)
	return path
}

// sendAll sends messages of groups, which may be "".
func sendAll(t *testing.T, client *awssqs.Client, queue string, from, to int, group func(i int) string) {
	t.Helper()
	for ; from < to; from += 10 {
		in := &awssqs.SendMessageBatchInput{QueueUrl: &queue}
		for i := from; i < min(to, from+10); i++ {
			e := types.SendMessageBatchRequestEntry{Id: new(strconv.Itoa(i)), MessageBody: new(job(i, group))}
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

func noGroup(int) string { return "" }

func job(i int, group func(i int) string) string { return fmt.Sprintf(`{"k":"%s %04d"}`, group(i), i) }

func jobs(from, to int, group func(i int) string) (all []string) {
	for i := from; i < to; i++ {
		all = append(all, job(i, group))
	}
	return all
}

// eventually waits until something holds.
func eventually(t *testing.T, holds func() bool) {
	t.Helper()
	require.Eventually(t, holds, patience, 5*time.Millisecond)
}

// inQueue is how many messages a queue has, in flight or not; -1: not known.
func inQueue(client *awssqs.Client, queue string) (n int) {
	out, err := client.GetQueueAttributes(context.Background(), &awssqs.GetQueueAttributesInput{
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

// What comes from a queue is delivered once, and gone from the queue, as long as
// the configuration has the source.
func TestASourceThatIsAQueue(t *testing.T) {
	client := awstest.SQS(t)
	settings(t, awstest.SQSURL(t))
	// What a poll that was cut off has received comes again after this time.
	q := awstest.Queue(t, client, map[string]string{"VisibilityTimeout": "3"})
	path := reading(t, q.URL, "maxItems: 10, idleTimeoutMs: 100}, dedupe: {window: 1h")
	sendAll(t, client, q.URL, 0, 1000, noGroup)
	g := newGate()
	g.let(1000)
	s := launch(t, ServeOptions{Config: path, Data: t.TempDir(), Grace: patience, Stdout: g}, nil)
	eventually(t, func() bool { return len(lines(g)) >= 1000 && inQueue(client, q.URL) == 0 })
	require.Equal(t, jobs(0, 1000, noGroup), lines(g))

	replaceInFile(t, path, "maxItems: 10", "maxItems: 5")
	s.reloads("configuration reloaded")
	sendAll(t, client, q.URL, 1000, 1010, noGroup)
	eventually(t, func() bool { return len(lines(g)) >= 1010 })
	require.Equal(t, 1, strings.Count(s.log.all(), `msg=receiving source=jobs`), "it goes on")

	replaceInFile(t, path, "  jobs: {", "  #jobs: {")
	replaceInFile(t, path, "from: [in, jobs]", "from: [in]")
	s.reloads("configuration reloaded")
	s.log.wait(t, 0, `msg="receiving no more" source=jobs`)
	sendAll(t, client, q.URL, 1010, 1020, noGroup)
	replaceInFile(t, path, "  #jobs: {", "  jobs: {")
	replaceInFile(t, path, "from: [in]", "from: [in, jobs]")
	require.Equal(t, 10, inQueue(client, q.URL))
	s.reloads("configuration reloaded")
	eventually(t, func() bool { return len(lines(g)) >= 1020 && inQueue(client, q.URL) == 0 })
	require.Equal(t, jobs(0, 1020, noGroup), lines(g))
	begun := time.Now()
	s.end()
	require.Less(t, time.Since(begun), lastWords, "it does not wait for a poll")
}

// The message groups of a FIFO queue are groups of the buffer, each in order. A
// buffer that is full leaves what it has no room for in the queue; two systems,
// one after the other, deliver all of it.
func TestASourceThatIsAFIFOQueue(t *testing.T) {
	client := awstest.SQS(t)
	settings(t, awstest.SQSURL(t))
	q := awstest.Queue(t, client, map[string]string{"FifoQueue": "true", "VisibilityTimeout": "3"})
	path := reading(t, q.URL, "maxItems: 10, idleTimeoutMs: 100}, ordering: {}, dedupe: {window: 1h}, size: 60, overflow: {maxBytes: 1MiB")
	const n = 300
	group := func(i int) string { return "g" + strconv.Itoa(i%7) }
	sendAll(t, client, q.URL, 0, n, group)
	g := newGate()
	o := ServeOptions{Config: path, Data: t.TempDir(), Grace: 2 * time.Second, Stdout: g}
	s := launch(t, o, nil)
	s.log.wait(t, 0, `op="take messages from a queue (source jobs)" code=full`)
	require.GreaterOrEqual(t, inQueue(client, q.URL), n-60-10)
	status, _ := s.call(http.MethodGet, "/readyz", "")
	require.Equal(t, http.StatusOK, status)
	g.let(2)
	eventually(t, func() bool { return len(lines(g)) > 0 })
	g.let(1000)
	s.end()
	s = launch(t, o, nil)
	eventually(t, func() bool { return len(lines(g)) >= n && inQueue(client, q.URL) == 0 })
	s.end()
	require.Equal(t, slices.Sorted(slices.Values(jobs(0, n, group))), lines(g))
	inOrder := make(map[string]string)
	for _, text := range g.inTurn() {
		for line := range strings.SplitSeq(text, "\n") {
			k, _, _ := strings.Cut(line, " ")
			require.Greater(t, line, inOrder[k])
			inOrder[k] = line
		}
	}
	require.Len(t, inOrder, 7)
}

// A queue that does not answer is tried again, and all else goes on.
func TestASourceThatDoesNotAnswer(t *testing.T) {
	var calls atomic.Int32
	e := newEndpoint(t)
	e.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		w.Header().Set("X-Amzn-Errortype", "AccessDenied")
		w.WriteHeader(http.StatusForbidden)
	})
	settings(t, e.URL)
	g := newGate()
	g.let(10)
	path := reading(t, "http://127.0.0.1:4566/000000000000/hidden", "maxItems: 1")
	s := launch(t, ServeOptions{Config: path, Data: t.TempDir(), Grace: patience, Stdout: g}, nil)
	s.log.wait(t, 0, `op="receive from a queue (source jobs)" code=unavailable error="SQS answers AccessDenied"`)
	s.accept("a")
	status, _ := s.call(http.MethodGet, "/readyz", "")
	require.Equal(t, http.StatusOK, status)
	eventually(t, func() bool { return calls.Load() >= 2 && len(lines(g)) == 1 })
	s.end()
	require.NotContains(t, s.log.all(), "hidden")
}

func TestQueuesThatCannotBeUsed(t *testing.T) {
	settings(t, "http://127.0.0.1:1")
	for _, tc := range []struct{ name, queue, more, says string }{
		{"no URL", "hidden", "", "source jobs: queue: what it refers to "},
		{"a secret in it", "https://x:hidden@example.com/1/q", "", "source jobs: queue: what it refers to "},
		{"in the clear", "http://hidden.example.com/1/q", "", "is an http URL, which is for private addresses"},
		{"not set", "", "", "QUEUE_URL"},
		{"twice", "https://sqs.eu-west-1.amazonaws.com/1/hidden", "\n  two: {type: sqs, queue: env:QUEUE_AGAIN}",
			"sources jobs and two have the same queue"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := reading(t, tc.queue, "maxItems: 1")
			t.Setenv("QUEUE_AGAIN", tc.queue)
			replaceInFile(t, path, "queue: env:QUEUE_URL}", "queue: env:QUEUE_URL}"+tc.more)
			err := Serve(t.Context(), options(t, path))
			require.Equal(t, core.Invalid, core.CodeOf(err))
			require.ErrorContains(t, err, tc.says)
			require.NotContains(t, err.Error(), "hidden")
		})
	}
}

// lines are those of all writes, sorted.
func lines(g *gate) (all []string) {
	for _, text := range g.inTurn() {
		all = append(all, strings.Split(text, "\n")...)
	}
	slices.Sort(all)
	return all
}

// inTurn is what was written, in order.
func (g *gate) inTurn() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.written)
}

// all is what was logged.
func (l *logs) all() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
