package edge

import (
	"cmp"
	"slices"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"sluice/core"
	"sluice/core/jsonbody"
)

// contentType is the message attribute that says what a body is.
const contentType = "content-type"

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

// Events are the messages as events. Their ids are the messages' own, so that one
// that is handed over again is the same event, and what the queue keeps in order
// is their unit.
func (e ReceiveEvent) Events() []core.Event {
	all := make([]core.Event, len(e.Records))
	for i := range e.Records {
		m := &e.Records[i]
		all[i] = core.Event{
			ID: m.MessageId, Body: []byte(m.Body), Unit: m.Attributes["MessageGroupId"], JSON: jsonbody.Valid([]byte(m.Body)),
		}
		all[i].ContentType, all[i].Headers = attributes(m.MessageAttributes)
		if all[i].ContentType == "" {
			all[i].ContentType = "text/plain"
			if all[i].JSON {
				all[i].ContentType = "application/json"
			}
		}
	}
	return all
}

// attributes are the content type that a message gives, "" if it gives none, and
// its other attributes that are strings, as headers sorted by name.
func attributes(all map[string]events.SQSMessageAttribute) (media string, headers []core.Header) {
	for name, a := range all {
		if kind, _, _ := strings.Cut(a.DataType, "."); kind != "String" || a.StringValue == nil {
			continue
		}
		if name = strings.ToLower(name); name == contentType {
			media = *a.StringValue
			continue
		}
		headers = append(headers, core.Header{Name: name, Value: *a.StringValue})
	}
	slices.SortFunc(headers, func(a, b core.Header) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Value, b.Value))
	})
	return media, headers
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
