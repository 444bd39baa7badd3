package sqsreceive

import (
	"cmp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"sluice/core"
	"sluice/core/jsonbody"
)

const contentType = "content-type"

// eventOf is the event that a message is. Its attributes that are text become
// headers, sorted by name, but for its content type.
func eventOf(m *types.Message) core.Event {
	e := core.Event{
		ID: value(m.MessageId), Body: []byte(value(m.Body)),
		Unit: m.Attributes[string(types.MessageSystemAttributeNameMessageGroupId)],
	}
	for name, a := range m.MessageAttributes {
		if kind, _, _ := strings.Cut(value(a.DataType), "."); kind != "String" || a.StringValue == nil {
			continue
		}
		if name = strings.ToLower(name); name == contentType {
			e.ContentType = *a.StringValue
		} else {
			e.Headers = append(e.Headers, core.Header{Name: name, Value: *a.StringValue})
		}
	}
	slices.SortFunc(e.Headers, func(a, b core.Header) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Value, b.Value))
	})
	e.JSON = jsonbody.Valid(e.Body)
	switch {
	case e.ContentType != "":
	case e.JSON:
		e.ContentType = "application/json"
	default:
		e.ContentType = "text/plain"
	}
	return e
}
