// Package costtest recomputes what a stack costs, as docs/aws.md states it. It
// has nothing but tests: they run the functions as they are deployed, count
// what these ask of AWS, and price that.
//
//	the functions  ─▶ wire ─▶ DynamoDB stand-in    requests, read and write units, index writes, bytes kept
//	  (cloud)          │ ───▶ sqstest              sends; receives and deletes are Lambda's, and made here
//	                   └────▶ schedulertest        schedules, which fire into the check queue
//
// What the stand-ins say is counted: requests, units, messages, schedules,
// invocations, bytes logged and kept. Two things are derived. Writes to the due
// indexes, which the stand-in for DynamoDB does not count, follow from each
// record before and after a write: an entry that appears or goes takes one unit,
// one that moves takes two. And the time of an invocation is assumed: see
// assumptions_test.go, which also has the prices with their sources.
//
//	go test ./functions/internal/costtest -update
//
// writes the tables of docs/aws.md anew.
package costtest
