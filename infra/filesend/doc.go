// Package filesend writes batches to a file or a stream, one JSON value a line.
//
// In ndjson every item is a line, in the other formats every batch. A batch is
// one write, and batches never mix. What a reader must not see is a torn line
// with good ones behind it, so a write that stops half-way is settled before
// the next one: a file is cut back to where it was, and a stream, which cannot
// be, gets the rest of the line first.
//
// A file is synced after every batch: delivered means durable. It may be
// rotated away or removed at any time; the next batch then starts a new one.
package filesend
