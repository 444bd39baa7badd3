package cloud

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"sluice/core"
	"sluice/core/message"
	"sluice/functions/internal/language"
	"sluice/functions/internal/system"
	"sluice/infra/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// yaml is the configuration of most tests.
const yaml = `
control: {tokens: [env:CONTROL]}
sources:
  orders: {type: http, auth: {bearer: [env:TOKEN]}}
  other: {type: http, auth: none}
destinations:
  crm: {type: http, url: "https://crm.example.com/", timeout: 10s, concurrency: 2, retry: {maxAttempts: 2}}
buffers:
  b: {from: [orders], to: crm, groupBy: "{{ .json.k }}", batch: {maxItems: 2, idleTimeoutMs: 5000}}
`

// variables is an environment that is right. LookUp finds in it.
func variables(t testing.TB, config string) map[string]string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sluice.yaml")
	require.NoError(t, os.WriteFile(path, []byte(config), 0o600))
	return map[string]string{
		"SLUICE_CONFIG":                path,
		"SLUICE_TABLE":                 "table",
		"SLUICE_CHECK_QUEUE_URL":       "https://sqs.eu-central-1.amazonaws.com/1/checks",
		"SLUICE_CHECK_QUEUE_ARN":       "arn:aws:sqs:eu-central-1:1:checks",
		"SLUICE_DELIVER_QUEUE_URL":     "https://sqs.eu-central-1.amazonaws.com/1/deliveries",
		"SLUICE_DEAD_LETTER_QUEUE_URL": "https://sqs.eu-central-1.amazonaws.com/1/letters",
		"SLUICE_SCHEDULE_GROUP":        "group",
		"SLUICE_SCHEDULE_ROLE_ARN":     "arn:aws:iam::1:role/schedules",
		"SLUICE_FLUSH_URL":             "https://lambda.eu-central-1.amazonaws.com/2015-03-31/functions/flush/invocations",
		"SLUICE_ENVIRONMENT":           "dev",
		"AWS_REGION":                   "eu-central-1",
		"AWS_ACCESS_KEY_ID":            "key",
		"AWS_SECRET_ACCESS_KEY":        "secret",
		"TOKEN":                        "orders-token",
		"CONTROL":                      "control-token",
	}
}

func lookup(env map[string]string) Lookup {
	return func(name string) (string, bool) {
		v, ok := env[name]
		return v, ok
	}
}

// rig is functions on a memory store, and what reaches the outside.
type rig struct {
	*function

	t       *testing.T
	log     *output
	store   *memory.Store
	outside *outside
	timer   *hints
	queue   *handed
	crm     *receiver
}

// setUp makes functions by a configuration. Their clock is the system's: in a
// bubble of synctest, the bubble's.
func setUp(t *testing.T, config string) *rig {
	t.Helper()
	return setUpWith(t, variables(t, config))
}

// setUpWith makes functions in an environment.
func setUpWith(t *testing.T, vars map[string]string) *rig {
	t.Helper()
	out := new(output)
	f, err := setup(t.Context(), Process{Env: lookup(vars), Stdout: out, Language: language.JQ}, whole)
	require.NoError(t, err)
	r := &rig{function: f, t: t, log: out, store: memory.New(), timer: new(hints), queue: new(handed), crm: new(receiver)}
	r.outside = &outside{store: r.store, timer: r.timer, queue: r.queue, letters: r.store.DeadLetters(), shared: memory.NewCoordinator()}
	return r
}

// whole is the part that has all secrets.
func whole(c *core.Config) *core.Config { return c }

// sender finds the one destination's sender.
func (r *rig) sender(name string) core.Sender {
	if name == "crm" {
		return r.crm
	}
	return nil
}

// append stores events in a group, as ingest does.
func (r *rig) append(key string, n int) {
	r.t.Helper()
	var all []core.Event
	for range n {
		all = append(all, core.Event{Body: []byte(`{"k":"` + key + `"}`), JSON: true})
	}
	ports := r.ports(r.outside)
	_, err := core.NewIngester(r.catalog, ports).Ingest(r.t.Context(), "orders", all)
	require.NoError(r.t, err)
}

// pending is how many items of the buffer are not settled.
func (r *rig) pending() int64 {
	r.t.Helper()
	stats, err := r.store.Stats(r.t.Context())
	require.NoError(r.t, err)
	var n int64
	for _, s := range stats {
		n += s.Pending + s.Claimed
	}
	return n
}

// dead are the ids of the dead letters' items.
func (r *rig) dead() int {
	r.t.Helper()
	n, err := r.store.DeadLetters().Count(r.t.Context(), core.DeadLetterFilter{})
	require.NoError(r.t, err)
	return n
}

// hints is a timer that keeps what is armed.
type hints struct {
	mu    sync.Mutex
	armed []core.Hint
	err   error
}

func (h *hints) Arm(_ context.Context, hint core.Hint) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.armed = append(h.armed, hint)
	return h.err
}

func (h *hints) all() []core.Hint {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]core.Hint(nil), h.armed...)
}

// handed is a queue that keeps what is handed over.
type handed struct {
	mu         sync.Mutex
	deliveries []core.Delivery
	err        error
}

func (q *handed) Hand(_ context.Context, d core.Delivery) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.deliveries = append(q.deliveries, d)
	return q.err
}

func (q *handed) all() []core.Delivery {
	q.mu.Lock()
	defer q.mu.Unlock()
	return append([]core.Delivery(nil), q.deliveries...)
}

// receiver is a destination. Without answer it takes all.
type receiver struct {
	answer func(ctx context.Context, b *core.Batch) core.Response

	mu   sync.Mutex
	sent []core.Batch
}

func (s *receiver) Send(ctx context.Context, b *core.Batch) core.Response {
	s.mu.Lock()
	s.sent = append(s.sent, *b)
	s.mu.Unlock()
	if s.answer != nil {
		return s.answer(ctx, b)
	}
	return core.Response{Status: http.StatusNoContent}
}

func (s *receiver) batches() []core.Batch {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]core.Batch(nil), s.sent...)
}

// output is what a function writes.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// line is the one line of the output that contains a text.
func (o *output) line(t *testing.T, text string) map[string]any {
	t.Helper()
	var found map[string]any
	for line := range strings.Lines(o.String()) {
		if strings.Contains(line, text) {
			require.Nil(t, found, "more than one line has %q:\n%s", text, o)
			require.NoError(t, json.Unmarshal([]byte(line), &found), line)
		}
	}
	require.NotNil(t, found, "no line has %q:\n%s", text, o)
	return found
}

// from is an event of the messages of a queue, whose ids are m0, m1, ...
func from(queue string, bodies ...string) events.SQSEvent {
	var e events.SQSEvent
	for i, body := range bodies {
		e.Records = append(e.Records, events.SQSMessage{
			MessageId: "m" + string(rune('0'+i)), Body: body,
			EventSource: "aws:sqs", EventSourceARN: "arn:aws:sqs:eu-central-1:1:" + queue,
		})
	}
	return e
}

// hint is a hint as a message.
func hint(t *testing.T, h core.Hint) string {
	t.Helper()
	body, err := message.EncodeHint(h)
	require.NoError(t, err)
	return body
}

// delivery is a delivery of a group of the buffer as a message.
func delivery(t *testing.T, key string) string {
	t.Helper()
	return deliveryOf(t, core.Delivery{Ref: core.Ref{Buffer: "b", Key: key}, Destination: "crm"})
}

func deliveryOf(t *testing.T, d core.Delivery) string {
	t.Helper()
	body, err := message.EncodeDelivery(d)
	require.NoError(t, err)
	return body
}

// failures are the ids of messages that are to be delivered again.
func failures(t *testing.T, r events.SQSEventResponse, err error) []string {
	t.Helper()
	require.NoError(t, err)
	ids := []string{}
	for _, f := range r.BatchItemFailures {
		ids = append(ids, f.ItemIdentifier)
	}
	return ids
}

// call makes a call over HTTP, and returns the answer.
func call(t *testing.T, h HTTPHandler, method, path, token, body string) events.APIGatewayV2HTTPResponse {
	t.Helper()
	return callWith(t.Context(), t, h, method, path, token, body)
}

func callWith(ctx context.Context, t *testing.T, h HTTPHandler, method, path, token, body string) events.APIGatewayV2HTTPResponse {
	t.Helper()
	e := events.APIGatewayV2HTTPRequest{Version: "2.0", RawPath: path, Body: body, Headers: map[string]string{"host": "api.example.com"}}
	if token != "" {
		e.Headers["authorization"] = "Bearer " + token
	}
	e.RequestContext.Stage, e.RequestContext.HTTP.Method, e.RequestContext.HTTP.SourceIP = "$default", method, "203.0.113.7"
	answer, err := h(ctx, e)
	require.NoError(t, err)
	return answer
}

// broken is a store that does not answer, but keeps what it has.
type broken struct{ *memory.Store }

func (broken) Group(context.Context, core.Ref) (core.Group, error) {
	return core.Group{}, core.Errorf(core.Unavailable, "the table does not answer")
}

var clock = system.Clock()
