package reader

import (
	"fmt"

	"sluice/core/jsonbody"
)

// required are the attributes that every CloudEvent has, as strings that are
// not empty (CloudEvents 1.0.2, section "Required Attributes").
var required = [...]string{"specversion", "id", "source", "type"}

// CloudEventID is the id of one CloudEvent in its JSON format. It returns an
// [Error] for what is not JSON, no object, or lacks a required attribute.
func CloudEventID(text []byte) (string, error) {
	if err := Check(text); err != nil {
		return "", err
	}
	if jsonbody.KindOf(text) != jsonbody.Object {
		return "", &Error{Problem: "is not a CloudEvent: it must be a JSON object"}
	}
	var found [len(required)][]byte
	for w := jsonbody.Walk(text); w.Next(); {
		for i, name := range required {
			if w.Is(name) {
				found[i] = w.Value() // of two with one name the last counts, as in encoding/json
			}
		}
	}
	for i, name := range required {
		if len(found[i]) < len(`"x"`) || found[i][0] != '"' {
			return "", &Error{Problem: fmt.Sprintf("is not a CloudEvent: %s must be a string that is not empty", name)}
		}
	}
	return jsonbody.Text(found[1]), nil
}

// CloudEvents reads a batch of CloudEvents in the JSON format, as [Array]
// does, and the id of each.
func CloudEvents(body []byte, most int) ([]Element, []string, error) {
	elements, err := Array(body, most)
	if err != nil {
		return nil, nil, err
	}
	ids := make([]string, len(elements))
	for i := range elements {
		if ids[i], err = CloudEventID(elements[i].Body); err != nil {
			return nil, nil, at(Item, elements[i].N, err)
		}
	}
	return elements, ids, nil
}
