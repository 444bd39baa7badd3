// Package render evaluates the templates of a configuration, such as
// "{{ .json.customer_id }}", on events.
//
// Templates are those of text/template over four fields: .json (the payload;
// null when it is no JSON), .headers, .id and .source. A missing field and a
// null are nothing: they render as the empty string whatever prints them, are
// false, have no members, equal each other alone, and are neither less nor
// greater than anything. Numbers render as they are written, objects and arrays
// as compact JSON. Text that is not UTF-8 has U+FFFD in its place, as in
// encoding/json.
//
// Most templates are no more than literals and plain fields. These are looked
// up in the payload directly, many times faster than text/template, with the
// same results: both ways share the lookup, and a property test holds them to
// each other.
//
// Templates come from the operator and are trusted; events are not. No event
// makes an execution panic, recurse deeper than 1,000 levels, or write more than
// 1 MiB.
package render
