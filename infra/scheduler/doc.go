// Package scheduler is a [core.Timer] of far deadlines: each is a one-time
// schedule of EventBridge Scheduler, which costs nothing while it waits.
//
// Scheduler fires within the minute after the second it was told. So a
// schedule names a moment a minute early, and whoever is woken arms the rest
// of the way elsewhere, without touching the group:
//
//	now                        at()                        deadline
//	 │                          ├──── Scheduler fires ────────┤
//	 │   a schedule waits       │     anywhere in here        │
//	 ▼                          ▼                             ▼
//	─┴──────────────────────────┴─────────────────────────────┴──▶
//	                            └ Early: 60 s, and what the  ─┘
//	                              whole second of at() leaves
//
// # One hint, one schedule
//
// A schedule's name is a hash of what makes a hint another one: its group,
// life and deadline, and whether it is for a check or a claim. So a hint that
// is armed again, by a retry or by a rival, meets a schedule of its name: a
// conflict, which is what was wanted. The client token makes the SDK's own
// retry after a lost answer a success as well. A schedule deletes itself when
// it has fired, and goes with its schedule group when the environment is
// deleted.
//
// # What may go wrong
//
//	before the call     nothing is armed: the caller knows, and the sweep finds the deadline
//	answer lost         the retry meets the token, or the name: one schedule
//	fires twice         the check finds nothing to do, or arms what is armed
//	target unreachable  Scheduler tries again for five minutes; then the sweep has long found it
//	clocks disagree     a moment that is over for Scheduler alone is Invalid, as one that is over here
package scheduler
