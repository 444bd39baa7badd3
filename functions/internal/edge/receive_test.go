package edge_test

import (
	"encoding/json"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/functions/internal/edge"
)

const messages = `{"Records": [
	{"messageId": "a", "body": "{\"n\":1}", "eventSource": "aws:sqs", "eventSourceARN": "arn:aws:sqs:eu-west-1:1:orders.fifo",
		"attributes": {"MessageGroupId": "g"}, "messageAttributes": {
			"Traceparent": {"dataType": "String.w3c", "stringValue": "00-1"}, "b": {"dataType": "String", "stringValue": ""},
			"Count": {"dataType": "Number", "stringValue": "3"}, "raw": {"dataType": "Binary", "binaryValue": "AAE="}}},
	{"messageId": "b", "body": "plain", "eventSource": "aws:sqs", "eventSourceARN": "arn:aws:sqs:eu-west-1:1:orders.fifo"},
	{"messageId": "c", "body": "<n/>", "eventSource": "aws:sqs", "eventSourceARN": "arn:aws:sqs:eu-west-1:1:orders.fifo",
		"messageAttributes": {"Content-Type": {"dataType": "String", "stringValue": "application/xml"}}},
	{"messageId": "d", "body": "/wA=", "eventSource": "aws:sqs", "eventSourceARN": "arn:aws:sqs:eu-west-1:1:orders.fifo",
		"messageAttributes": {"sluice-encoding": {"dataType": "String", "stringValue": "base64"}}}
]}`

func received(t *testing.T, text string) (e edge.ReceiveEvent) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(text), &e))
	return e
}

// A message is an event: its id, body, group and attributes of type String.
func TestReceiveEvents(t *testing.T) {
	t.Parallel()
	e := received(t, messages)
	queue, err := e.Queue()
	require.NoError(t, err)
	require.Equal(t, "orders.fifo", queue)
	require.Equal(t, []core.Event{
		{ID: "a", Body: []byte(`{"n":1}`), JSON: true, ContentType: "application/json", Unit: "g", Headers: []core.Header{{Name: "b"}, {Name: "traceparent", Value: "00-1"}}},
		{ID: "b", Body: []byte("plain"), ContentType: "text/plain"},
		{ID: "c", Body: []byte("<n/>"), ContentType: "application/xml"},
		{ID: "d", Body: []byte{0xff, 0}, ContentType: "application/octet-stream"},
	}, e.Events())
}

// Those that were not taken are handed over again.
func TestReceiveAnswer(t *testing.T) {
	t.Parallel()
	e := received(t, messages)
	require.Equal(t, []events.SQSBatchItemFailure{{ItemIdentifier: "a"}, {ItemIdentifier: "c"}}, e.Answer(core.Bits(nil).With(0).With(2)).BatchItemFailures)
	require.Empty(t, e.Answer(nil).BatchItemFailures)
}

func TestReceiveWhatIsNoEvent(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"empty":          `{}`,
		"another source": `{"Records": [{"messageId": "a", "eventSource": "aws:s3"}]}`,
		"no id":          `{"Records": [{"eventSource": "aws:sqs", "eventSourceARN": "arn:aws:sqs:eu-west-1:1:orders"}]}`,
		"two queues": `{"Records": [{"messageId": "a", "eventSource": "aws:sqs", "eventSourceARN": "arn:aws:sqs:eu-west-1:1:orders"},
			{"messageId": "b", "eventSource": "aws:sqs", "eventSourceARN": "arn:aws:sqs:eu-west-1:1:other"}]}`,
	} {
		_, err := received(t, text).Queue()
		require.Equal(t, core.Invalid, core.CodeOf(err), name)
	}
}
