// Package jsonbody looks into payloads that may be JSON, at the price of one
// pass and without building a tree.
package jsonbody

import (
	"encoding/json"

	"github.com/tidwall/gjson"
)

// recursive bounds the payloads that are given to gjson's validator, which
// recurses once a nesting level: at this size the deepest payload costs a few
// megabytes of stack. The standard library's is slower and bounds its depth.
const recursive = 64 << 10

// Valid reports whether b is one JSON value. Nesting beyond 10,000 levels
// counts as invalid when b is larger than 64 KB.
func Valid(b []byte) bool {
	if len(b) > recursive {
		return json.Valid(b)
	}
	return gjson.ValidBytes(b)
}
