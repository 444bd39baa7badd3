// Package core is Sluice's domain: what an event goes through from its source
// to its destination, and what must hold on the way.
//
//	source ─▶ Ingester ─▶ Store.Append ─▶ answer
//	                           │ first item of a group: arm a check; group full: deliver now
//	Timer  ──▶ Checker ──▶ due? ── no ──▶ arm the next check
//	                        └──── yes ─▶ Queue
//	Queue  ──▶ Deliverer ─▶ recover ▶ claim ▶ send ▶ settle (ack | release | dead-letter)
//	cron   ──▶ Sweeper  ──▶ whatever a lost hint left behind
//
// A [Group] is a small record over an ordered log of items. Every change to it
// is one of its pure transitions, which a [Store] applies atomically; the
// stores, timers, queues and senders of package infra hold no rule of their
// own. The store is the truth: timers and queue messages are hints, any of
// which may be lost, late or doubled without loss or double claim.
//
// The package imports the standard library alone. It reads no clock and no
// global randomness: both come in through ports.
package core
