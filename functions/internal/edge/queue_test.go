package edge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"sluice/core"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// messages is an event of SQS whose messages have ids m0, m1, ...
func messages(bodies ...string) events.SQSEvent {
	var e events.SQSEvent
	for i, body := range bodies {
		e.Records = append(e.Records, events.SQSMessage{
			MessageId: "m" + string(rune('0'+i)), Body: body, EventSource: sqsSource, EventSourceARN: "arn:aws:sqs:eu-central-1:1:q",
		})
	}
	return e
}

// rig is a queue of words, and what came of them.
type rig struct {
	Queue[string]

	log    bytes.Buffer
	mu     sync.Mutex
	worked []string
	failed []string
}

func setup(work func(context.Context, string) error) *rig {
	r := new(rig)
	r.Queue = Queue[string]{
		Decode: func(body []byte) (string, error) {
			if strings.HasPrefix(string(body), "?") {
				return "", core.Errorf(core.Invalid, "no word")
			}
			return string(body), nil
		},
		Work: func(ctx context.Context, word string) error {
			r.mu.Lock()
			r.worked = append(r.worked, word)
			r.mu.Unlock()
			return work(ctx, word)
		},
		Log: slog.New(slog.NewJSONHandler(&r.log, nil)),
		Failed: func(op string, _ error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.failed = append(r.failed, op)
		},
	}
	return r
}

func TestQueue(t *testing.T) {
	t.Parallel()
	r := setup(func(_ context.Context, word string) error {
		switch word {
		case "bad":
			return errors.New("it did not work")
		case "worse":
			panic("oh no")
		}
		return nil
	})
	got, err := r.Handle(t.Context(), messages("good", "?", "bad", "worse", "fine"))
	require.NoError(t, err)
	require.Equal(t, []events.SQSBatchItemFailure{{ItemIdentifier: "m2"}, {ItemIdentifier: "m3"}}, got.BatchItemFailures)
	require.ElementsMatch(t, []string{"good", "bad", "worse", "fine"}, r.worked)
	require.ElementsMatch(t, []string{"read a queue message", "work on a queue message", "work on a queue message"}, r.failed)
	for _, want := range []string{`"messageId":"m1"`, `"code":"invalid"`, `"messageId":"m2"`, "it did not work", `"messageId":"m3"`, "oh no"} {
		require.Contains(t, r.log.String(), want)
	}
	require.NotContains(t, r.log.String(), `"m0"`)
}

// Without failures the answer is an empty list, which is what SQS takes for success.
func TestQueueWithoutFailures(t *testing.T) {
	t.Parallel()
	r := setup(func(context.Context, string) error { return nil })
	r.Failed = nil
	got, err := r.Handle(t.Context(), messages("a", "?", "b"))
	require.NoError(t, err)
	text, err := json.Marshal(got)
	require.NoError(t, err)
	require.JSONEq(t, `{"batchItemFailures":[]}`, string(text))
}

// A message that cannot be named is given up alone: naming it would have all
// of them delivered again.
func TestQueueMessageWithoutID(t *testing.T) {
	t.Parallel()
	r := setup(func(_ context.Context, word string) error { return errors.New(word) })
	e := messages("a", "b")
	e.Records[0].MessageId = ""
	got, err := r.Handle(t.Context(), e)
	require.NoError(t, err)
	require.Equal(t, []events.SQSBatchItemFailure{{ItemIdentifier: "m1"}}, got.BatchItemFailures)
}

// A queue that does not lose what is malformed gets it back.
func TestQueueThatKeeps(t *testing.T) {
	t.Parallel()
	r := setup(func(context.Context, string) error { return nil })
	r.Keep = true
	got, err := r.Handle(t.Context(), messages("a", "?"))
	require.NoError(t, err)
	require.Equal(t, []events.SQSBatchItemFailure{{ItemIdentifier: "m1"}}, got.BatchItemFailures)
}

// All messages are worked on at a time: each here waits for all the others.
func TestQueueIsSideBySide(t *testing.T) {
	t.Parallel()
	var all sync.WaitGroup
	all.Add(3)
	r := setup(func(context.Context, string) error {
		all.Done()
		all.Wait()
		return nil
	})
	_, err := r.Handle(t.Context(), messages("a", "b", "c"))
	require.NoError(t, err)
	require.Len(t, r.worked, 3)
}

func TestQueueOfOtherEvents(t *testing.T) {
	t.Parallel()
	r := setup(func(context.Context, string) error { return nil })
	for name, text := range map[string]string{
		"nothing":   `{}`,
		"null":      `null`,
		"a rule's":  `{"source":"aws.events","detail-type":"Scheduled Event","detail":{}}`,
		"a topic's": `{"Records":[{"EventSource":"aws:sns","Sns":{"Message":"x"}}]}`,
		"a mixture": `{"Records":[{"messageId":"1","eventSource":"aws:sqs","body":"x"},{"eventSource":"aws:s3"}]}`,
	} {
		var e events.SQSEvent
		require.NoError(t, json.Unmarshal([]byte(text), &e), name)
		_, err := r.Handle(t.Context(), e)
		require.Equal(t, core.Invalid, core.CodeOf(err), name)
	}
	require.Empty(t, r.worked)
}

func TestFlushEvent(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{}`: "hand",
		`{"version":"0","id":"53dc","detail-type":"Scheduled Event","source":"aws.scheduler","detail":"{}"}`: "aws.scheduler",
		`{"version":"0","id":"53dc","detail-type":"Scheduled Event","source":"aws.events","detail":{}}`:      "aws.events",
	} {
		var e FlushEvent
		require.NoError(t, json.Unmarshal([]byte(text), &e))
		require.Equal(t, want, e.Caller())
	}
}
