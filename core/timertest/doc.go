// Package timertest is the conformance suite of [core.Timer]. Every adapter
// runs the very same cases, each in a bubble of [testing/synctest], whose
// clock stands still while anything is at work: hours pass in no time.
//
// A timer may double a hint, so nothing here counts exactly; and it may lose
// one, which a conforming adapter does only with its process.
package timertest
