package render

import (
	"errors"
	"fmt"
	"strings"

	"sluice/core/jsonbody"
)

// fault is an error in our own words, which are for people.
type fault string

func (f fault) Error() string { return string(f) }

func faultf(format string, args ...any) error { return fault(fmt.Sprintf(format, args...)) }

const (
	errTooLong    = fault("it renders more than 1 MiB")
	errWholeEvent = fault("an event has no text of its own; name one of its fields: .json, .headers, .id or .source")
)

func noSuchField(name string) error {
	return faultf("an event has no field .%s; it has .json, .headers, .id and .source", name)
}

func noFields(name string, of jsonbody.Kind) error {
	return faultf("can't read field %s of %s", name, Named(of))
}

// Named is a kind as errors for people name it: "a number".
func Named(k jsonbody.Kind) string {
	switch k {
	case jsonbody.Null:
		return "null"
	case jsonbody.Bool:
		return "a boolean"
	case jsonbody.Number:
		return "a number"
	case jsonbody.String:
		return "a string"
	case jsonbody.Array:
		return "an array"
	case jsonbody.Object:
		return "an object"
	default:
		return "a value"
	}
}

// maxReason bounds what an error quotes, which may be of the payload, in bytes.
const maxReason = 200

// reason is the telling part of an error of text/template.
func reason(err error) error {
	if f, ok := errors.AsType[fault](err); ok {
		return f
	}
	s := strings.TrimPrefix(err.Error(), "template: ")
	// In front of it come the place, and in angle brackets what stands there.
	if _, after, ok := strings.Cut(s, ">: "); ok {
		s = after
	}
	if len(s) > maxReason {
		s = strings.ToValidUTF8(s[:maxReason], "") + "…"
	}
	return fault(s)
}
