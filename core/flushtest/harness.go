package flushtest

import (
	"sync/atomic"
	"testing"

	"sluice/core"
)

// Harness is how the suite gets at the stores of one adapter.
type Harness struct {
	Name string // of the adapter

	// Open opens a new, empty store that lives by clock, and sees to its end. Its
	// coordinator is nil when no other process can be on it.
	Open func(t testing.TB, clock core.Clock) (core.Store, core.Coordinator)

	// Reopen opens again what s and c hold, after a crash between two calls. The
	// suite does not call them again.
	Reopen func(t testing.TB, clock core.Clock, s core.Store, c core.Coordinator) (core.Store, core.Coordinator)

	// Abandons says that a reopened store has ended every lease.
	Abandons bool
}

// test is one case of the suite.
type test struct {
	name   string
	shared bool // is for stores that several processes share
	run    func(t *testing.T, p *probe)
}

// Run runs every case against new stores of h, and logs how many there were.
func Run(t *testing.T, h Harness) {
	t.Helper()
	var ran atomic.Int64
	t.Cleanup(func() { t.Logf("flushtest: %s: %d cases", h.Name, ran.Load()) })
	for _, tests := range [][]test{stateTests(), turnTests, crashTests} {
		for _, c := range tests {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				p := open(t, &h)
				if c.shared && p.turns == nil {
					return // there is no other process on such a store
				}
				c.run(t, p)
				ran.Add(1)
			})
		}
	}
}
