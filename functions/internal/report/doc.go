// Package report is the form in which flushes are reported: the JSON of
// [core.FlushReport] and [core.BufferFlush], which the HTTP API and the flush
// function answer, and the command line reads.
//
//	{"ok": true, "durationMs": 41, "buffers": {"orders": {"buckets": 0, "rows": 7, "skipped": false}}, "unmatched": []}
//
// What does not apply is left out. Buffers are in the configuration's order.
// Errors are texts for people: neither secrets nor internals are in them.
package report
