package cloud

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	vendor "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/stretchr/testify/require"

	"sluice/functions/internal/api"
	"sluice/functions/internal/edge"
	"sluice/functions/internal/lambdatest"
	"sluice/functions/internal/language"
	"sluice/functions/internal/report"
	"sluice/infra/awstest"
)

// patience is how long a test waits for what must happen, before it gives up.
const patience = 30 * time.Second

// stack is all six functions as their mains make them, on stand-ins.
type stack struct {
	t              *testing.T
	sqs            *vendor.Client
	checks, hands  awstest.QueueRef
	work           awstest.QueueRef // a source
	ingest         HTTPHandler
	receive        ReceiveHandler
	control        HTTPHandler
	check, deliver QueueHandler
	flush          FlushHandler
	log            *output
}

func newStack(t *testing.T, config string) *stack {
	t.Helper()
	s := &stack{t: t, sqs: awstest.SQS(t), log: new(output)}
	s.checks, s.hands, s.work = awstest.Queue(t, s.sqs, nil), awstest.Queue(t, s.sqs, nil), awstest.Queue(t, s.sqs, nil)
	vars := variables(t, config)
	maps.Copy(vars, map[string]string{
		"SLUICE_TABLE":                 awstest.Table(t, awstest.DynamoDB(t)),
		"SLUICE_CHECK_QUEUE_URL":       s.checks.URL,
		"SLUICE_CHECK_QUEUE_ARN":       s.checks.ARN,
		"SLUICE_DELIVER_QUEUE_URL":     s.hands.URL,
		"SLUICE_DEAD_LETTER_QUEUE_URL": awstest.Queue(t, s.sqs, nil).URL,
		"QUEUE_URL":                    s.work.URL,
		"AWS_REGION":                   awstest.Region,
		"AWS_ENDPOINT_URL_DYNAMODB":    awstest.DynamoDBURL(t),
		"AWS_ENDPOINT_URL_SQS":         awstest.SQSURL(t),
	})
	lambda := httptest.NewServer(lambdatest.Invocable(func(ctx context.Context, payload []byte) ([]byte, error) {
		answer, err := lambdatest.Handle(s.flush)(ctx, payload)
		if err != nil {
			return nil, err
		}
		return json.Marshal(answer)
	}))
	t.Cleanup(lambda.Close)
	vars["SLUICE_FLUSH_URL"] = lambda.URL
	p, ctx := Process{Env: lookup(vars), Stdout: s.log, HTTP: new(fresh), Language: language.JQ}, t.Context()
	var err error
	s.ingest, err = Ingest(ctx, p)
	require.NoError(t, err)
	s.receive, err = Receive(ctx, p)
	require.NoError(t, err)
	s.check, err = Check(ctx, p)
	require.NoError(t, err)
	s.deliver, err = Deliver(ctx, p)
	require.NoError(t, err)
	s.flush, err = Flush(ctx, p)
	require.NoError(t, err)
	s.control, err = Control(ctx, p)
	require.NoError(t, err)
	return s
}

// fresh is a client that keeps no connections, of which the end of a test
// would find the goroutines.
type fresh struct{}

func (*fresh) Do(r *http.Request) (*http.Response, error) {
	r.Close = true
	return http.DefaultClient.Do(r)
}

// pump gives the next message of a queue to a function, as Lambda does.
func (s *stack) pump(q awstest.QueueRef, h QueueHandler) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	for {
		out, err := s.sqs.ReceiveMessage(ctx, &vendor.ReceiveMessageInput{QueueUrl: &q.URL, WaitTimeSeconds: 5})
		require.NoError(s.t, err, "no message came")
		if len(out.Messages) == 0 {
			continue
		}
		m := &out.Messages[0]
		got, err := h(ctx, events.SQSEvent{Records: []events.SQSMessage{{
			MessageId: aws.ToString(m.MessageId), Body: aws.ToString(m.Body), EventSource: "aws:sqs", EventSourceARN: q.ARN,
		}}})
		require.Empty(s.t, failures(s.t, got, err))
		_, err = s.sqs.DeleteMessage(ctx, &vendor.DeleteMessageInput{QueueUrl: &q.URL, ReceiptHandle: m.ReceiptHandle})
		require.NoError(s.t, err)
		return
	}
}

// post sends an event to a source.
func (s *stack) post(source, body string) {
	s.t.Helper()
	answer := call(s.t, s.ingest, http.MethodPost, "/v1/sources/"+source, "orders-token", body)
	require.Equal(s.t, http.StatusAccepted, answer.StatusCode, answer.Body)
}

// The six functions, as they are deployed, take an event in, check its group,
// deliver it, bury what is refused, and replay it.
func TestStack(t *testing.T) {
	t.Parallel()
	var status atomic.Int32
	status.Store(http.StatusNoContent)
	got := make(chan string, 10)
	crm := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- r.Header.Get("Sluice-Reason") + " " + string(body)
		w.WriteHeader(int(status.Load()))
	}))
	t.Cleanup(crm.Close)
	s := newStack(t, fmt.Sprintf(`
control: {tokens: [env:CONTROL]}
sources:
  now: {type: http, auth: {bearer: [env:TOKEN]}}
  soon: {type: http, auth: {bearer: [env:TOKEN]}}
  rare: {type: http, auth: {bearer: [env:TOKEN]}}
  work: {type: sqs, queue: env:QUEUE_URL}
destinations:
  crm: {type: http, url: %q, allowPrivate: true}
buffers:
  now: {from: [now], to: crm, batch: {maxItems: 1}, size: 10}
  work: {from: [work], to: crm, batch: {maxItems: 1}, dedupe: {window: 1m}, filter: ".n", transform: "{m: .n}"}
  soon: {from: [soon], to: crm, batch: {idleTimeoutMs: 100, maxWaitFromFirstMs: 1000}}
  rare: {from: [rare], to: crm, flush: {every: 5m}}
`, crm.URL))
	require.Equal(t, http.StatusOK, call(t, s.ingest, http.MethodGet, "/readyz", "", "").StatusCode)

	// its time comes: by way of check
	s.post("soon", `{"n":1}`)
	s.pump(s.checks, s.check)
	s.pump(s.hands, s.deliver)
	require.Equal(t, `idle {"n":1}`+"\n", <-got)

	// it is full: at once; and it is refused
	status.Store(http.StatusBadRequest)
	s.post("now", `{"n":2}`)
	s.pump(s.hands, s.deliver)
	require.Equal(t, `items {"n":2}`+"\n", <-got)

	var letters api.DeadLetterList
	answer := call(t, s.control, http.MethodGet, "/v1/deadletters", "control-token", "")
	require.Equal(t, http.StatusOK, answer.StatusCode, answer.Body)
	require.NoError(t, json.Unmarshal([]byte(answer.Body), &letters))
	require.Len(t, letters.DeadLetters, 1)
	require.Equal(t, "permanent", letters.DeadLetters[0].Reason)

	status.Store(http.StatusOK)
	answer = call(t, s.control, http.MethodPost, "/v1/deadletters/replay", "control-token", "")
	require.JSONEq(t, `{"replayed":1,"failed":0,"left":0}`, answer.Body)
	require.Equal(t, `replay {"n":2}`+"\n", <-got)

	// it comes by queue, and is shaped on its way; again, it is a double
	_, err := s.sqs.SendMessage(t.Context(), &vendor.SendMessageInput{QueueUrl: &s.work.URL, MessageBody: aws.String(`{"n":5}`)})
	require.NoError(t, err)
	s.pump(s.work, func(ctx context.Context, e events.SQSEvent) (events.SQSEventResponse, error) {
		for range 2 {
			answer, err := s.receive(ctx, edge.ReceiveEvent{SQSEvent: e})
			require.Empty(t, failures(t, answer, err))
		}
		return events.SQSEventResponse{}, nil
	})
	s.pump(s.hands, s.deliver)
	require.Equal(t, `items {"m":5}`+"\n", <-got)

	// it leaves by flushes alone: of the minute, of a call, and by hand
	s.post("rare", `{"n":3}`)
	flushed, err := s.flush(t.Context(), edge.FlushEvent{Source: "aws.scheduler"})
	require.NoError(t, err)
	require.Equal(t, report.Buffers{{Name: "rare", Rows: 1}}, flushed.Buffers)
	require.Equal(t, `flush {"n":3}`+"\n", <-got)

	s.post("rare", `{"n":4}`)
	answer = call(t, s.control, http.MethodPost, "/v1/buffers/rare/flush", "control-token", "")
	require.Contains(t, answer.Body, `"reason":"cadence"`)
	answer = call(t, s.control, http.MethodPost, "/v1/flush", "control-token", `{"force":true}`)
	require.Contains(t, answer.Body, `"rare":{"buckets":0,"rows":1,"skipped":false}`)
	require.Equal(t, `flush {"n":4}`+"\n", <-got)

	// nothing is left
	flushed, err = s.flush(t.Context(), edge.FlushEvent{Flush: &edge.FlushCall{Force: true, Final: true}})
	require.NoError(t, err)
	require.True(t, flushed.OK)
	require.Empty(t, flushed.SweepError)
	require.Equal(t, []Left{}, flushed.Left)
	var buffers api.BufferList
	answer = call(t, s.control, http.MethodGet, "/v1/buffers", "control-token", "")
	require.NoError(t, json.Unmarshal([]byte(answer.Body), &buffers))
	for _, b := range buffers.Buffers {
		require.Zero(t, b.PendingItems+b.ClaimedItems, b.Name)
	}
	for _, trouble := range []string{"background failure", "a message failed", "the invocation", "panic"} {
		require.NotContains(t, s.log.String(), trouble)
	}
}
