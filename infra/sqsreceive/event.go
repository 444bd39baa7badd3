package sqsreceive

import (
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"sluice/core"
	"sluice/core/sqsmessage"
)

// eventOf is the event that a message is.
func eventOf(m *types.Message) core.Event {
	out := sqsmessage.Message{
		ID: value(m.MessageId), Body: value(m.Body),
		Group: m.Attributes[string(types.MessageSystemAttributeNameMessageGroupId)],
	}
	for name, a := range m.MessageAttributes {
		out.Add(name, value(a.DataType), a.StringValue)
	}
	return out.Event()
}
