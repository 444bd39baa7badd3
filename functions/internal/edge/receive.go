package edge

import (
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"sluice/core"
	"sluice/core/sqsmessage"
)

// ReceiveEvent is what Lambda hands over of a queue that is a source: messages
// each of which is an event.
type ReceiveEvent struct{ events.SQSEvent }

// Queue is the name of the queue that the messages are from. Invalid: SQS has
// not made the event.
func (e ReceiveEvent) Queue() (string, error) {
	if err := fromSQS(e.SQSEvent); err != nil {
		return "", err
	}
	arn := e.Records[0].EventSourceARN
	for i := range e.Records {
		if e.Records[i].EventSourceARN != arn || e.Records[i].MessageId == "" {
			return "", core.Errorf(core.Invalid, "not an event of SQS: record %d has no id, or is from another queue", i)
		}
	}
	return arn[strings.LastIndexByte(arn, ':')+1:], nil
}

// Events are the messages as events.
func (e ReceiveEvent) Events() []core.Event {
	all := make([]core.Event, len(e.Records))
	for i := range e.Records {
		r := &e.Records[i]
		m := sqsmessage.Message{ID: r.MessageId, Body: r.Body, Group: r.Attributes["MessageGroupId"]}
		for name, a := range r.MessageAttributes {
			m.Add(name, a.DataType, a.StringValue)
		}
		all[i] = m.Event()
	}
	return all
}

// Answer has SQS hand the messages at some positions over again, and no others.
func (e ReceiveEvent) Answer(left core.Bits) events.SQSEventResponse {
	failures := []events.SQSBatchItemFailure{}
	for i := range e.Records {
		if left.Has(i) {
			failures = append(failures, events.SQSBatchItemFailure{ItemIdentifier: e.Records[i].MessageId})
		}
	}
	return events.SQSEventResponse{BatchItemFailures: failures}
}
