package storetest

import (
	"sync/atomic"
	"testing"

	"sluice/core"
)

// Harness is how the suite gets at the stores of one adapter.
type Harness struct {
	Name string // of the adapter

	// Open opens a new, empty store. The suite closes it.
	Open func(t testing.TB) core.Store

	// Reopen opens again what s holds: s comes from Open or Reopen and is
	// either closed or, when it is not, to be dropped as by a crash of its
	// process between two calls. Reopen frees what s still has; the suite does
	// not call it again.
	Reopen func(t testing.TB, s core.Store) core.Store

	// Abandons says that a reopened store has ended every lease
	// ([core.Group.Abandon]), since no deliverer can have outlived the other.
	Abandons bool

	// Gaps says that an append that is refused may use up numbers, under which
	// no item will ever lie, and leave a group that holds nothing but these.
	Gaps bool

	// Settle returns when Due, Groups and Stats see all that has been written,
	// and the named buffers are held against their sizes by what they hold now.
	// nil: always.
	Settle func(t testing.TB, s core.Store, sized []string)

	// Forget makes the store forget what it was to keep until a time that has
	// come by now. nil: any append at now does.
	Forget func(t testing.TB, s core.Store, now core.Millis)

	// Model makes an empty store that is known to be right.
	Model func() core.Store
}

// test is one case of the suite.
type test struct {
	name string
	run  func(t *testing.T, p *probe)
}

// Run runs every case against new stores of h, and logs how many there were.
func Run(t *testing.T, h Harness) {
	t.Helper()
	var ran atomic.Int64
	t.Cleanup(func() { t.Logf("storetest: %s: %d cases", h.Name, ran.Load()) })
	for _, tests := range [][]test{appendTests, limitTests, readTests, listTests, updateTests, closeTests, windowTests, rowTests, dedupeTests, relayTests, crashTests, raceTests, cycleTests} {
		for _, c := range tests {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				p := open(t, &h)
				c.run(t, p)
				ran.Add(1)
			})
		}
	}
}
