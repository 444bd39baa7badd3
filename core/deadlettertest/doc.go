// Package deadlettertest is the conformance suite of [core.DeadLetterSink] and
// [core.DeadLetterQueue]. Every adapter runs the very same cases.
//
// It asserts what the contract promises and no more: so a list may or may not
// show a letter that is taken, and a lease may or may not outlive a crash. What
// an adapter's service can't promise it declares in its [Harness], and is held
// to the weaker promise instead.
package deadlettertest
