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

// What a message is to an event, and to that of the function on AWS, is the
// business of core/sqsmessage; nothing of it is lost on the way there.
func TestEventOf(t *testing.T) {
	t.Parallel()
	require.Equal(t, core.Event{
		ID: "1", ContentType: "text/csv", Body: []byte{0xff, 0}, Unit: "g",
		Headers: []core.Header{{Name: "own", Value: "3"}, {Name: "x-two", Value: "2"}},
	}, eventOf(&types.Message{
		MessageId: new("1"), Body: new("/wA="), Attributes: map[string]string{"MessageGroupId": "g"},
		MessageAttributes: map[string]types.MessageAttributeValue{
			"Content-Type": text("text/csv"), "X-Two": text("2"), "sluice-encoding": text("base64"),
			"n": {DataType: new("Number"), StringValue: new("5")}, "b": {DataType: new("Binary"), BinaryValue: []byte("x")},
			"own": {DataType: new("String.mine"), StringValue: new("3")},
		},
	}))
	require.Equal(t, core.Event{ID: "2", ContentType: "application/json", Body: []byte("1"), JSON: true}, eventOf(&types.Message{MessageId: new("2"), Body: new("1")}))
}
