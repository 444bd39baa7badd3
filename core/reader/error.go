package reader

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"sluice/core/jsonbody"
)

// The units that a body's elements are counted in.
const (
	Line = "line"
	Item = "item"
)

// Error says what is wrong with a body, in words for its sender.
type Error struct {
	Unit    string // Line, Item, or "": the body as a whole
	N       int    // which one, from 1
	Problem string // reads on after the element's name: "is not valid JSON: …"
	TooMany bool   // the body is well-formed so far, but has too many elements
}

// Error is a sentence such as "line 2 is not valid JSON: …".
func (e *Error) Error() string {
	if e.Unit == "" {
		return "the body " + e.Problem
	}
	return fmt.Sprintf("%s %d %s", e.Unit, e.N, e.Problem)
}

// at is err, an [Error] about a whole text, as one about an element.
func at(unit string, n int, err error) error {
	if e, ok := errors.AsType[*Error](err); ok {
		return &Error{Unit: unit, N: n, Problem: e.Problem}
	}
	return err
}

// Check returns an [Error] that says where a text stops being one JSON value,
// nested at most 10,000 deep.
func Check(text []byte) error {
	if jsonbody.Valid(text) {
		return nil
	}
	return &Error{Problem: "is not valid JSON: " + cause(text)}
}

// cause says why a text is no JSON, at the price of a second look.
func cause(text []byte) string {
	if len(text) == 0 {
		return "it is empty"
	}
	if bytes.HasPrefix(text, []byte("\xef\xbb\xbf")) {
		return "it begins with a byte order mark, which JSON has not"
	}
	var whole json.RawMessage
	err := json.Unmarshal(text, &whole)
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Sprintf("%v, at byte %d", e, e.Offset)
	}
	return "its syntax is wrong"
}
