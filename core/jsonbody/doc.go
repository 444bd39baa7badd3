// Package jsonbody looks into payloads that may be JSON, in one pass, without
// building a tree and without allocating.
//
// [Valid] and [Prefix] take any bytes. All else is for JSON that they found to
// be valid; on other bytes it does not panic, and what it returns means nothing.
//
// Nothing here recurses: nesting is kept in a stack of bits while validating,
// and as a number while skipping. Text is looked through eight bytes at a time.
package jsonbody
