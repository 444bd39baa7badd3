// Package jsonbody looks into payloads that may be JSON, at the price of one
// pass and without building a tree.
package jsonbody

import (
	"bytes"
	"encoding/json"

	"github.com/tidwall/gjson"
)

// maxBrackets is how many opening brackets a payload may hold to be validated
// by recursion. It is also the nesting that encoding/json allows, so both ways
// of validating agree.
const maxBrackets = 10_000

// Valid reports whether b is one JSON value, nested at most 10,000 deep. It is
// [json.Valid], at more than twice its speed where that is safe: gjson
// recurses without a limit, and ten megabytes of brackets would end the process.
func Valid(b []byte) bool {
	if len(b) > maxBrackets && bytes.Count(b, []byte{'['})+bytes.Count(b, []byte{'{'}) > maxBrackets {
		return json.Valid(b)
	}
	return gjson.ValidBytes(b)
}
