// Package sqstest is an SQS of standard queues in the process, for tests: it
// checks requests as strictly as SQS does, runs by the time of the bubble of
// testing/synctest that it is in or by a clock that the test sets, and does
// what SQS may do and seldom does: lose answers, refuse entries of a batch,
// mix up the order, show less than there is.
//
// It has the methods of the SDK's client that are used, so that nothing goes
// over a network.
package sqstest
