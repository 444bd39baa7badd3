// Package sqs has the parts of Sluice that Amazon SQS plays on AWS: the near
// half of the timer, the queue of deliveries, and the dead letters.
//
//	               remaining < threshold
//	Arm ─▶ Ladder ───────────────────────▶ Timer ──── DelaySeconds ────┐
//	          │                                                        ▼
//	          └─ else ─▶ far (a schedule, 60 s early) ─────────▶ check queue
//	                                                                   │
//	        ┌─ re-arm ◀─ two seconds early or more ─┐                  ▼
//	      Ladder                                    └── Arrivals ◀── hints of one invocation
//	                     check at its time ◀─ less ─────┘
//
// A message is visible between one and two seconds before its deadline (SQS
// counts whole seconds), and [Arrivals] waits out the rest in process, so a
// deadline is met to the millisecond that SQS's own delay allows, and an idle
// timeout of 100 ms works. A message may be lost, doubled or late: what its
// hint means is for the core, which re-reads the store.
//
// [Queue] is a standard queue whose messages carry their buffer as message
// group, which makes it a fair queue: a busy buffer does not hold up another.
//
// [DeadLetters] keeps one letter a message in a standard queue. What such a
// queue cannot promise, it says at its methods. The queues need no
// settings but their own: no default delay, and messages of up to 1 MiB.
package sqs
