package sqsreceive

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/stretchr/testify/require"

	"sluice/core"
)

func text(s string) types.MessageAttributeValue {
	return types.MessageAttributeValue{DataType: new("String"), StringValue: &s}
}

func TestEventOf(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		m    types.Message
		want core.Event
	}{
		{"JSON", types.Message{MessageId: new("1"), Body: new(`{"a":1}`)},
			core.Event{ID: "1", ContentType: "application/json", Body: []byte(`{"a":1}`), JSON: true}},
		{"text", types.Message{MessageId: new("1"), Body: new("hello")},
			core.Event{ID: "1", ContentType: "text/plain", Body: []byte("hello")}},
		{"a group", types.Message{MessageId: new("1"), Body: new("x"), Attributes: map[string]string{"MessageGroupId": "g"}},
			core.Event{ID: "1", ContentType: "text/plain", Body: []byte("x"), Unit: "g"}},
		{"attributes", types.Message{MessageId: new("1"), Body: new("1"), MessageAttributes: map[string]types.MessageAttributeValue{
			"Content-Type": text("text/csv"), "X-Two": text("2"), "A": text("1"),
			"n": {DataType: new("Number"), StringValue: new("5")}, "b": {DataType: new("Binary"), BinaryValue: []byte("x")},
			"own": {DataType: new("String.mine"), StringValue: new("3")},
		}}, core.Event{ID: "1", ContentType: "text/csv", Body: []byte("1"), JSON: true,
			Headers: []core.Header{{Name: "a", Value: "1"}, {Name: "own", Value: "3"}, {Name: "x-two", Value: "2"}}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tc.want, eventOf(&tc.m))
		})
	}
}
