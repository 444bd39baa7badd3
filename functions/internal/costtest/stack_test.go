package costtest

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"sluice/core"
	"sluice/functions/internal/cloud"
	"sluice/functions/internal/edge"
	"sluice/infra/awstest"
	"sluice/infra/scheduler/schedulertest"
	"sluice/infra/sqs/sqstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// configuration has a buffer for each way in which a group may leave.
const configuration = `
control: {tokens: [env:TOKEN]}
sources:
  full: {type: http, auth: {bearer: [env:TOKEN]}}
  slow: {type: http, auth: {bearer: [env:TOKEN]}}
  far: {type: http, auth: {bearer: [env:TOKEN]}}
destinations:
  crm: {type: http, url: DESTINATION, allowPrivate: true, secrets: [env:TOKEN]}
buffers:
  full: {from: [full], to: crm, groupBy: "{{ .json.customer_id }}"}
  slow: {from: [slow], to: crm, groupBy: "{{ .json.customer_id }}", batch: {maxItems: 1000}}
  far: {from: [far], to: crm, groupBy: "{{ .json.customer_id }}", batch: {maxItems: 1000, idleTimeoutMs: 300000, maxWaitFromFirstMs: 600000}}
`

// Buffers that only some tests have.
const (
	windowed = `  windowed: {from: [full], to: crm, window: {every: 1m}}
`
	rare = `  rare: {from: [full], to: crm, flush: {every: 5m}}
`
)

// stack is the functions of an environment, behind a wire that counts.
type stack struct {
	t        *testing.T
	wire     *wire
	deployed deployed
	mint     mint
	check    string // the queues' URLs
	deliver  string

	mu        sync.Mutex
	now       time.Time
	delivered int // events that the destination has taken
	logs      bytes.Buffer
	fired     chan struct{} // gets one for each schedule that has fired

	ingest     cloud.HTTPHandler
	receive    cloud.ReceiveHandler
	checks     cloud.QueueHandler
	deliveries cloud.QueueHandler
	flush      cloud.FlushHandler
}

// deploy makes one, whose clock stands still. Its buffers are those of the
// configuration, or instead of the one that fills, others. In the rest of the
// configuration, the second of each pair takes the place of the first.
func deploy(t *testing.T, instead string, pairs ...string) *stack {
	t.Helper()
	begin := time.Now().Truncate(time.Hour).Add(time.Hour + time.Minute) // the first minute of an hour has more to do
	s := &stack{t: t, deployed: template(t), mint: newMint(), now: begin, fired: make(chan struct{}, 16)}
	queues := &sqstest.SQS{Now: s.time}
	s.check, s.deliver = queues.Queue("check"), queues.Queue("deliver")
	schedules := schedulertest.New(schedulertest.Options{Groups: []string{"group"}, Fire: s.fire})
	t.Cleanup(schedules.Close)
	schedules.Advance(time.Until(begin))
	look := awstest.DynamoDB(t)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	s.wire = &wire{
		table: http.Client{Transport: transport}, look: look, name: awstest.Table(t, look),
		queues: queues, schedules: schedules,
	}
	p := cloud.Process{
		Env: s.variables(s.destination(), instead, pairs), Stdout: s, HTTP: s.wire,
		Clock: core.ClockFunc(func() core.Millis { return core.At(s.time()) }),
	}
	var err error
	s.ingest, err = cloud.Ingest(t.Context(), p)
	require.NoError(t, err)
	s.receive, err = cloud.Receive(t.Context(), p)
	require.NoError(t, err)
	s.checks, err = cloud.Check(t.Context(), p)
	require.NoError(t, err)
	s.deliveries, err = cloud.Deliver(t.Context(), p)
	require.NoError(t, err)
	s.flush, err = cloud.Flush(t.Context(), p)
	require.NoError(t, err)
	return s
}

// destination is the URL of a destination that takes all.
func (s *stack) destination() string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body bytes.Buffer
		_, _ = body.ReadFrom(r.Body)
		s.mu.Lock()
		s.delivered += bytes.Count(body.Bytes(), []byte("\n"))
		s.mu.Unlock()
		w.WriteHeader(http.StatusNoContent)
	}))
	s.t.Cleanup(server.Close)
	return server.URL
}

func (s *stack) variables(destination, instead string, pairs []string) cloud.Lookup {
	text := strings.ReplaceAll(configuration, "DESTINATION", destination)
	text = strings.NewReplacer(pairs...).Replace(text)
	if instead != "" {
		text = regexp.MustCompile(`(?m)^  full: {from.*\n`).ReplaceAllString(text, instead)
	}
	path := filepath.Join(s.t.TempDir(), "sluice.yaml")
	require.NoError(s.t, os.WriteFile(path, []byte(text), 0o600))
	env := map[string]string{
		"SLUICE_CONFIG":                path,
		"SLUICE_TABLE":                 s.wire.name,
		"SLUICE_CHECK_QUEUE_URL":       s.check,
		"SLUICE_CHECK_QUEUE_ARN":       arn("check"),
		"SLUICE_DELIVER_QUEUE_URL":     s.deliver,
		"SLUICE_DEAD_LETTER_QUEUE_URL": "https://" + sqsHost + "/000000000000/letters",
		"SLUICE_SCHEDULE_GROUP":        "group",
		"SLUICE_SCHEDULE_ROLE_ARN":     "arn:aws:iam::000000000000:role/schedules",
		"SLUICE_ENVIRONMENT":           "sluice-prod",
		"AWS_REGION":                   awstest.Region,
		"AWS_ACCESS_KEY_ID":            "key",
		"AWS_SECRET_ACCESS_KEY":        "secret",
		"AWS_ENDPOINT_URL_DYNAMODB":    awstest.DynamoDBURL(s.t),
		"AWS_ENDPOINT_URL_SQS":         "https://" + sqsHost,
		"AWS_ENDPOINT_URL_SCHEDULER":   "https://" + schedulerHost,
		"TOKEN":                        "0123456789abcdef",
	}
	return func(name string) (string, bool) {
		v, ok := env[name]
		return v, ok
	}
}

func arn(queue string) string { return "arn:aws:sqs:" + awstest.Region + ":000000000000:" + queue }

func (s *stack) time() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// pass lets time pass, for the functions, the queues and the schedules.
func (s *stack) pass(d time.Duration) {
	s.mu.Lock()
	s.now = s.now.Add(d)
	s.mu.Unlock()
	s.wire.schedules.Advance(d)
}

// Write takes a line of a log in.
func (s *stack) Write(p []byte) (int, error) {
	s.wire.count(usage{logged: float64(len(p) + logOverhead)})
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.logs.Write(p)
}

// fire does what a schedule does.
func (s *stack) fire(ctx context.Context, in schedulertest.Invocation) error {
	_, err := s.wire.queues.SendMessage(ctx, &awssqs.SendMessageInput{QueueUrl: &s.check, MessageBody: &in.Input})
	s.wire.count(usage{polled: 1}) // Scheduler sends on the account's behalf
	s.fired <- struct{}{}
	return err
}

// invoke counts an invocation that works on so many events. What it waits for
// beside its calls is spent once, not for each call.
func (s *stack) invoke(function string, events int, waits time.Duration, run func()) {
	before := s.wire.since(usage{})
	run()
	u := s.wire.since(before)
	took := ownTime + time.Duration(u.calls+u.sent+u.schedules)*callTime + time.Duration(events)*eventTime + waits
	s.wire.count(usage{invocations: 1, gbSeconds: took.Seconds() * s.deployed.memory[function] / 1024})
}

// post posts a body of so many events.
func (s *stack) post(path, body string, events int, gateway bool) {
	s.t.Helper()
	e := s.request(path, body)
	s.invoke("ingest", events, 0, func() {
		answer, err := s.ingest(s.t.Context(), e)
		require.NoError(s.t, err)
		require.Equal(s.t, http.StatusAccepted, answer.StatusCode, answer.Body)
	})
	if gateway {
		s.wire.count(usage{http: float64(len(body)/httpChunk + 1)})
	}
}

// request is a request as the HTTP API or a function URL hands it over.
func (s *stack) request(path, body string) events.APIGatewayV2HTTPRequest {
	e := events.APIGatewayV2HTTPRequest{Version: "2.0", RawPath: path, Body: body, Headers: map[string]string{
		"accept": "*/*", "authorization": "Bearer 0123456789abcdef", "content-type": "application/json",
		"host": "a1b2c3d4e5.execute-api.us-east-1.amazonaws.com", "user-agent": "shop/1.0",
		"x-amzn-trace-id": "Root=1-" + s.mint.hex(8) + "-" + s.mint.hex(24),
		"x-forwarded-for": "203.0.113.7", "x-forwarded-port": "443", "x-forwarded-proto": "https",
	}}
	e.RequestContext.Stage, e.RequestContext.HTTP.Method, e.RequestContext.HTTP.SourceIP = "$default", http.MethodPost, "203.0.113.7"
	return e
}

// taken is how many events the destination has.
func (s *stack) taken() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.delivered
}

// drained requires that nothing is left to be done.
func (s *stack) drained() {
	s.t.Helper()
	s.pass(time.Hour)
	require.Zero(s.t, s.checked())
	require.Zero(s.t, s.sent())
	require.Empty(s.t, s.wire.schedules.Schedules())
}

// checked has the check function work on what is in its queue, and returns how
// many messages that were.
func (s *stack) checked() int {
	s.t.Helper()
	return s.drain("check", s.check, s.checks, 0, 0)
}

// sent has the deliver function do the same. Each message is a batch.
func (s *stack) sent() int {
	s.t.Helper()
	return s.drain("deliver", s.deliver, s.deliveries, groupSize, destinationTime)
}

// drain does what Lambda does with a queue in which messages are rare: an
// invocation for each, and one request that receives and one that deletes it.
func (s *stack) drain(function, queue string, handle cloud.QueueHandler, events int, waits time.Duration) int {
	s.t.Helper()
	for n := 0; ; n++ {
		require.Less(s.t, n, 100, "messages go round and round")
		out, err := s.wire.queues.ReceiveMessage(s.t.Context(), &awssqs.ReceiveMessageInput{
			QueueUrl: &queue, MaxNumberOfMessages: 1, VisibilityTimeout: 600,
		})
		require.NoError(s.t, err)
		if len(out.Messages) == 0 {
			return n
		}
		m := out.Messages[0]
		s.invoke(function, events, waits, func() {
			answer, err := handle(s.t.Context(), message(function, m))
			require.NoError(s.t, err)
			require.Empty(s.t, answer.BatchItemFailures)
		})
		_, err = s.wire.queues.DeleteMessageBatch(s.t.Context(), &awssqs.DeleteMessageBatchInput{
			QueueUrl: &queue, Entries: []types.DeleteMessageBatchRequestEntry{{Id: m.MessageId, ReceiptHandle: m.ReceiptHandle}},
		})
		require.NoError(s.t, err)
		s.wire.count(usage{polled: 2})
	}
}

// message is an event of one message.
func message(queue string, m types.Message) events.SQSEvent {
	return events.SQSEvent{Records: []events.SQSMessage{{
		MessageId: *m.MessageId, Body: *m.Body, EventSource: "aws:sqs", EventSourceARN: arn(queue),
	}}}
}

// swept has the flush function run, with nothing to ship.
func (s *stack) swept() {
	s.t.Helper()
	require.Zero(s.t, s.flushed(0, 0))
}

// flushed has the flush function run, and returns how many events it ships. So
// many are in batches that follow one another.
func (s *stack) flushed(events, batches int) int {
	s.t.Helper()
	before := s.taken()
	s.invoke("flush", events, time.Duration(batches)*destinationTime, func() {
		_, err := s.flush(s.t.Context(), edge.FlushEvent{Source: "aws.scheduler"})
		require.NoError(s.t, err)
	})
	s.wire.count(usage{schedules: 1})
	return s.taken() - before
}
