// Package queuetest is the conformance suite of [core.Queue]. Every adapter
// runs the very same cases, each in a bubble of [testing/synctest]: work that
// waits for a gate stands still, and what can be told then is exact, however
// slow the machine is.
//
// A queue may double a delivery, so nothing here counts exactly from above; and
// it may lose one, which a conforming adapter does only when it stops.
package queuetest
