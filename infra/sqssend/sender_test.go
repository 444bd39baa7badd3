package sqssend_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sluice/core"
	"sluice/infra/awstest"
	"sluice/infra/sqssend"
)

const (
	standard = "https://sqs.eu-west-1.amazonaws.com/123456789012/orders"
	fifo     = standard + ".fifo"
)

func batchOf(bodies ...string) *core.Batch {
	b := &core.Batch{ID: "b-1", Buffer: "orders", Group: "customer 7", Reason: core.ReasonItems, Attempt: 2}
	for i, body := range bodies {
		b.Items = append(b.Items, core.Item{Seq: uint64(i + 1), Event: core.Event{
			ID: fmt.Sprintf("ev-%d", i), Source: "shop", ContentType: "application/json", Body: []byte(body),
		}})
	}
	return b
}

func numbered(n int) *core.Batch {
	bodies := make([]string, n)
	for i := range bodies {
		bodies[i] = strconv.Itoa(i)
	}
	return batchOf(bodies...)
}

func bits(n ...int) core.Bits {
	var b core.Bits
	for _, i := range n {
		b = b.With(i)
	}
	return b
}

// fake is an SQS that answers as a test says, and takes whatever it says nothing of.
type fake struct {
	mu     sync.Mutex
	calls  []*awssqs.SendMessageBatchInput
	answer func(body string) *types.BatchResultErrorEntry // nil: taken
	err    func(call int) error                           // by the number of the call, from 1
}

func (f *fake) SendMessageBatch(_ context.Context, in *awssqs.SendMessageBatchInput, _ ...func(*awssqs.Options)) (*awssqs.SendMessageBatchOutput, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, in)
	if f.err != nil {
		if err := f.err(len(f.calls)); err != nil {
			return nil, err
		}
	}
	out := &awssqs.SendMessageBatchOutput{}
	for i := range in.Entries {
		e := &in.Entries[i]
		if f.answer != nil {
			if failed := f.answer(*e.MessageBody); failed != nil {
				if *failed.Code == silence {
					continue
				}
				failed.Id = e.Id
				out.Failed = append(out.Failed, *failed)
				continue
			}
		}
		out.Successful = append(out.Successful, types.SendMessageBatchResultEntry{Id: e.Id})
	}
	return out, nil
}

// silence is the code of a message of which an answer says nothing.
const silence = ""

func (f *fake) bodies() []string {
	var all []string
	for _, c := range f.calls {
		for i := range c.Entries {
			all = append(all, *c.Entries[i].MessageBody)
		}
	}
	return all
}

func send(t testing.TB, api sqssend.API, queue string, b *core.Batch) core.Response {
	t.Helper()
	s, err := sqssend.New(api, sqssend.Options{Queue: queue, Timeout: time.Minute})
	require.NoError(t, err)
	return s.Send(t.Context(), b)
}

func entryFailure(code string, sender bool) *types.BatchResultErrorEntry {
	return &types.BatchResultErrorEntry{Code: &code, Message: new("no reason"), SenderFault: sender}
}

func callFailure(status int, code string) error {
	answer := &http.Response{StatusCode: status, Body: http.NoBody}
	return &smithyhttp.ResponseError{
		Response: &smithyhttp.Response{Response: answer},
		Err:      &smithy.GenericAPIError{Code: code, Message: "no reason"},
	}
}

// TestOutcomes goes from what SQS says to what comes of the batch's items.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	of := func(failures map[string]*types.BatchResultErrorEntry) func(string) *types.BatchResultErrorEntry {
		return func(body string) *types.BatchResultErrorEntry {
			if e := failures[body]; e != nil {
				return new(*e)
			}
			return nil
		}
	}
	always := func(err error) func(int) error { return func(int) error { return err } }
	for _, tt := range []struct {
		name            string
		answer          func(string) *types.BatchResultErrorEntry
		err             func(int) error
		want            core.Outcome
		failed, refused core.Bits
	}{
		{"all taken", nil, nil, core.Delivered, nil, nil},
		{"one failed", of(map[string]*types.BatchResultErrorEntry{"11": entryFailure("InternalError", false)}), nil, core.Partial, bits(11), nil},
		{"one throttled, though the sender's fault", of(map[string]*types.BatchResultErrorEntry{"3": entryFailure("RequestThrottled", true)}), nil, core.Partial, bits(3), nil},
		{"one refused, one failed", of(map[string]*types.BatchResultErrorEntry{
			"0": entryFailure("InvalidMessageContents", true), "1": entryFailure("ServiceUnavailable", false),
		}), nil, core.Partial, bits(0, 1), bits(0)},
		{"silence about two", of(map[string]*types.BatchResultErrorEntry{"7": entryFailure(silence, false), "24": entryFailure(silence, true)}), nil,
			core.Partial, bits(7, 24), nil},
		{"a call of three failed", nil, func(n int) error {
			if n == 2 {
				return errors.New("connection reset")
			}
			return nil
		}, core.Partial, nil, nil},
		{"no answer", nil, always(errors.New("connection reset")), core.Retry, nil, nil},
		{"throttled", nil, always(callFailure(400, "RequestThrottled")), core.Retry, nil, nil},
		{"throttled otherwise", nil, always(callFailure(400, "ThrottlingException")), core.Retry, nil, nil},
		{"keys throttled", nil, always(callFailure(400, "AWS.SimpleQueueService.KmsThrottled")), core.Retry, nil, nil},
		{"SQS in trouble", nil, always(callFailure(500, "InternalFailure")), core.Retry, nil, nil},
		{"an unknown trouble", nil, always(callFailure(503, "Strange")), core.Retry, nil, nil},
		{"old credentials", nil, always(callFailure(403, "ExpiredToken")), core.Retry, nil, nil},
		{"no permission", nil, always(callFailure(403, "AccessDenied")), core.Permanent, nil, nil},
		{"no queue", nil, always(callFailure(400, "AWS.SimpleQueueService.NonExistentQueue")), core.Permanent, nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			api := &fake{answer: tt.answer, err: tt.err}
			r := send(t, api, standard, numbered(25))
			require.Equal(t, tt.want, core.Classify(&r, nil), "%+v", r)
			if tt.failed != nil {
				require.Equal(t, tt.failed.Len(), r.Failed.Len())
				require.Equal(t, r.Failed.Len(), r.Failed.And(tt.failed).Len())
			}
			require.Equal(t, tt.refused.Len(), r.Refused.And(tt.refused).Len())
			require.Equal(t, tt.refused.Len(), r.Refused.Len())
			if tt.want == core.Permanent {
				require.Contains(t, r.Answer, ": no reason")
			}
			require.Len(t, api.calls, 3)
		})
	}
}

// TestChunks: however the sizes fall, every call keeps to SQS's limits, and
// every item is sent once.
func TestChunks(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOfN(rapid.SampledFrom([]int{0, 1, 1000, 100_000, 300_000, 700_000, 1_048_000, 1 << 20}), 1, 25).Draw(t, "sizes")
		b := batchOf(make([]string, len(sizes))...)
		large := 0
		for i, n := range sizes {
			b.Items[i].Body = []byte(strings.Repeat(rapid.SampledFrom([]string{"x", "\x01"}).Draw(t, "byte"), n))
		}
		api := &fake{}
		s, err := sqssend.New(api, sqssend.Options{Queue: rapid.SampledFrom([]string{standard, fifo}).Draw(t, "queue"), Timeout: time.Minute})
		require.NoError(t, err)
		r := s.Send(context.Background(), b)
		sent := map[string]bool{}
		for _, c := range api.calls {
			require.LessOrEqual(t, len(c.Entries), 10)
			total := 0
			for i := range c.Entries {
				total += size(&c.Entries[i])
				require.False(t, sent[*c.Entries[i].Id])
				sent[*c.Entries[i].Id] = true
			}
			require.LessOrEqual(t, total, 1<<20)
		}
		for i := range sizes {
			if !sent[strconv.Itoa(i)] {
				large++
				require.True(t, r.Refused.Has(i) && r.Failed.Has(i))
				require.Greater(t, len(b.Items[i].Body), 700_000-1)
			}
		}
		require.Equal(t, large, r.Failed.Len())
	})
}

// size is what SQS counts a message as.
func size(e *types.SendMessageBatchRequestEntry) int {
	n := len(*e.MessageBody)
	for name, a := range e.MessageAttributes {
		n += len(name) + len(*a.DataType) + len(*a.StringValue)
	}
	return n
}

// TestFIFOKeepsOrder: nothing is sent behind a message that is to be sent
// again; what will never be taken holds nothing up.
func TestFIFOKeepsOrder(t *testing.T) {
	t.Parallel()
	at := func(body string, e *types.BatchResultErrorEntry) func(string) *types.BatchResultErrorEntry {
		return func(b string) *types.BatchResultErrorEntry {
			if b == body {
				return e
			}
			return nil
		}
	}
	api := &fake{answer: at("2", entryFailure("InternalError", false))}
	r := send(t, api, fifo, numbered(13))
	require.Equal(t, []string{"0", "1", "2"}, api.bodies())
	require.Equal(t, bits(2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12), r.Failed)
	require.Zero(t, r.Refused.Len())

	api = &fake{err: func(call int) error {
		if call == 2 {
			return errors.New("the answer was lost")
		}
		return nil
	}}
	r = send(t, api, fifo, numbered(3))
	require.Len(t, api.calls, 2)
	require.Equal(t, bits(1, 2), r.Failed, "the second may have been taken: it has an id by which SQS drops it")

	api = &fake{answer: at("1", entryFailure("InvalidParameterValue", true))}
	r = send(t, api, fifo, numbered(3))
	require.Equal(t, []string{"0", "1", "2"}, api.bodies())
	require.Equal(t, bits(1), r.Failed)
	require.Equal(t, bits(1), r.Refused)
	require.Equal(t, "InvalidParameterValue: no reason", r.Answer)
}

func TestMessageGroups(t *testing.T) {
	t.Parallel()
	for group, want := range map[string]string{
		"":                       "orders",
		"customer-7":             "customer-7",
		"a/b:c~!":                "a/b:c~!",
		"customer 7":             "a hash",
		"kä":                     "a hash",
		strings.Repeat("x", 128): strings.Repeat("x", 128),
		strings.Repeat("x", 129): "a hash",
	} {
		api := &fake{}
		b := numbered(1)
		b.Group = group
		send(t, api, fifo, b)
		got := *api.calls[0].Entries[0].MessageGroupId
		if want == "a hash" {
			require.Regexp(t, "^[0-9a-f]{64}$", got)
		} else {
			require.Equal(t, want, got)
		}
	}
}

// A slash behind a queue's name is none of it.
func TestSlash(t *testing.T) {
	t.Parallel()
	api := &fake{}
	send(t, api, fifo+"/", numbered(1))
	require.Equal(t, fifo, *api.calls[0].QueueUrl)
	require.NotNil(t, api.calls[0].Entries[0].MessageGroupId)
}

// TestEntries: whatever a batch holds, its messages are what SQS takes by its
// documentation. The stand-in checks bodies alone.
func TestEntries(t *testing.T) {
	t.Parallel()
	taken := regexp.MustCompile(`^[\t\n\r\x{20}-\x{D7FF}\x{E000}-\x{FFFD}\x{10000}-\x{10FFFF}]+$`)
	id := regexp.MustCompile("^[!-~]{1,128}$") // letters, digits and punctuation
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.OneOf(rapid.String(), rapid.StringMatching(`[\x00-\x20\x{fffe}\x{1f600}a]{0,300}`), rapid.StringOfN(rapid.Just('x'), 120, 140, -1),
			rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }))
		b := batchOf(rapid.SliceOfN(value, 1, 3).Draw(t, "bodies")...)
		b.Group, b.Items[0].ContentType, b.Items[0].ID, b.Items[0].Source = value.Draw(t, "group"), value.Draw(t, "type"), value.Draw(t, "id"), value.Draw(t, "source")
		if rapid.Bool().Draw(t, "window") {
			b.Window = &core.Window{ID: value.Draw(t, "window id")}
		}
		api := &fake{}
		s, err := sqssend.New(api, sqssend.Options{Queue: fifo, Timeout: time.Minute})
		require.NoError(t, err)
		s.Send(context.Background(), b)
		require.Len(t, api.calls, len(b.Items))
		for _, c := range api.calls {
			e := &c.Entries[0]
			require.Regexp(t, taken, *e.MessageBody)
			require.Regexp(t, id, *e.MessageGroupId)
			require.Regexp(t, id, *e.MessageDeduplicationId)
			require.LessOrEqual(t, len(e.MessageAttributes), 10)
			for name, a := range e.MessageAttributes {
				require.Regexp(t, "^[a-z-]+$", name)
				require.Regexp(t, taken, *a.StringValue)
				require.LessOrEqual(t, len(*a.StringValue), 256)
			}
		}
	})
}

// TestLiveStrictly sends bodies of every kind to a queue that checks them. It
// takes no character above U+FFFF, though SQS does.
func TestLiveStrictly(t *testing.T) {
	t.Parallel()
	client := awstest.SQS(t)
	queue := awstest.Queue(t, client, map[string]string{"FifoQueue": "true"})
	s, err := sqssend.New(client, sqssend.Options{Queue: queue.URL, Timeout: time.Minute})
	require.NoError(t, err)
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.OneOf(rapid.StringOf(rapid.Rune().Filter(func(r rune) bool { return r <= 0xFFFF })), rapid.StringMatching(`[\x00-\x1f\x{fffe}\x{ffff} a-z]{0,300}`),
			rapid.Map(rapid.SliceOf(rapid.ByteMax(0xEF)), func(b []byte) string { return string(b) }))
		b := batchOf(rapid.SliceOfN(value, 1, 3).Draw(t, "bodies")...)
		b.Group, b.Items[0].ContentType, b.Items[0].ID = value.Draw(t, "group"), value.Draw(t, "type"), value.Draw(t, "id")
		r := s.Send(context.Background(), b)
		require.Equal(t, core.Delivered, core.Classify(&r, nil), "%+v", r)
	})
}

// TestLiveFIFO sends to another's FIFO queue, twice.
func TestLiveFIFO(t *testing.T) {
	t.Parallel()
	client := awstest.SQS(t)
	queue := awstest.Queue(t, client, map[string]string{"FifoQueue": "true"})
	b := numbered(23)
	b.Items[4].Body = []byte("\xff")
	b.Window = &core.Window{ID: "w-1"}
	r := send(t, client, queue.URL, b)
	require.Equal(t, core.Delivered, core.Classify(&r, nil), "%+v", r)
	b.Attempt = 3
	r = send(t, client, queue.URL, b)
	require.Equal(t, core.Delivered, core.Classify(&r, nil), "%+v", r)

	messages := (&reader{t: t, client: client, queue: queue.URL}).fifo()
	require.Len(t, messages, 23, "a message that is sent again is there once")
	for i, m := range messages {
		require.Equal(t, string(b.Items[i].Body), string(body(m)))
		require.Equal(t, fmt.Sprintf("ev-%d", i), attribute(m, "id"))
	}
	attributes := map[string]string{}
	for name := range messages[4].MessageAttributes {
		attributes[name] = attribute(messages[4], name)
	}
	require.Equal(t, map[string]string{
		"id": "ev-4", "source": "shop", "content-type": "application/json", "sluice-batch": "b-1", "sluice-buffer": "orders",
		"sluice-group": "customer 7", "sluice-reason": "items", "sluice-attempt": "2", "sluice-encoding": "base64", "sluice-window": "w-1",
	}, attributes)
}

// TestLiveLimits: what a queue's own limit refuses ends alone.
func TestLiveLimits(t *testing.T) {
	t.Parallel()
	client := awstest.SQS(t)
	queue := awstest.Queue(t, client, map[string]string{"MaximumMessageSize": "1024"})
	r := send(t, client, queue.URL, batchOf("a", strings.Repeat("x", 1024), "b"))
	require.Equal(t, core.Partial, core.Classify(&r, nil), "%+v", r)
	require.Equal(t, bits(1), r.Refused)

	large := awstest.Queue(t, client, nil)
	r = send(t, client, large.URL, batchOf(strings.Repeat("x", 1_040_000), strings.Repeat("y", 1_040_000), strings.Repeat("z", 1<<20)))
	require.Equal(t, bits(2), r.Failed, "%+v", r)
	require.Len(t, (&reader{t: t, client: client, queue: large.URL}).all(), 2)
}

func TestNewClient(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ queue, given, sdk, want string }{
		{standard, "", "us-east-1", "eu-west-1"},
		{standard, "eu-north-1", "us-east-1", "eu-north-1"},
		{"https://eu-west-2.queue.amazonaws.com/1/q", "", "", "eu-west-2"},
		{"https://vpce-0a-1b.sqs.us-gov-west-1.vpce.amazonaws.com/1/q", "", "", "us-gov-west-1"},
		{"https://sqs.cn-north-1.amazonaws.com.cn/1/q", "", "", "cn-north-1"},
		{"https://sqs-fips.us-east-2.amazonaws.com/1/q", "", "", "us-east-2"},
		{"https://sqs.eu-south-1.api.aws/1/q", "", "", "eu-south-1"},
		{"http://127.0.0.1:4566/0/q", "", "us-east-1", "us-east-1"},
		{"https://sqs.eu-west-1.example.com/1/q", "", "us-east-1", "us-east-1"},
		{"https://amazonaws.com/1/q", "", "us-east-1", "us-east-1"},
		{"https://kinesis.eu-west-1.amazonaws.com/1/q", "", "us-east-1", "us-east-1"},
	} {
		c, err := sqssend.NewClient(aws.Config{Region: tt.sdk}, tt.queue, tt.given)
		require.NoError(t, err)
		require.Equal(t, tt.want, c.Options().Region, tt.queue)
		require.True(t, strings.HasPrefix(tt.queue, *c.Options().BaseEndpoint+"/"))
	}
	for _, queue := range []string{"http://127.0.0.1:4566/0/q", "q", ""} {
		_, err := sqssend.NewClient(aws.Config{}, queue, "")
		require.Equal(t, core.Invalid, core.CodeOf(err), queue)
	}
	for _, o := range []sqssend.Options{{}, {Queue: standard}, {Timeout: 1}} {
		_, err := sqssend.New(&fake{}, o)
		require.Equal(t, core.Invalid, core.CodeOf(err))
	}
}
