// Package lambdatest runs real Lambda bootstraps on one machine, for tests:
//
//	HTTP ──▶ Front ──▶ API Gateway event ─┐
//	SQS ───▶ Source ─▶ SQS event ─────────┼─▶ Function ─▶ environment: a process of its own,
//	test ──▶ Scheduled ───────────────────┘               one invocation at a time, frozen between them
//	                                                         │ calls to AWS
//	                                                         ▼
//	                                                       proxy ─▶ hook: pass | kill before | kill after | lose the answer
//	                                                         │
//	                                                         ▼
//	                                                      stand-in
//
// It does as Lambda does where a function could tell: an environment is a
// process that asks its runtime API for the next invocation, is stopped
// between invocations (so work left in the background does not go on), is
// killed when an invocation takes too long, and comes to an end with all its
// memory at any time.
//
// One thing is kinder than there: a call that finds every environment busy
// waits for one, and is not throttled.
package lambdatest
