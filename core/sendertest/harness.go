package sendertest

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/core/format"
)

// Harness makes destinations of one kind.
type Harness struct {
	Name string // the adapter's, in lower case letters

	// New starts a fresh destination and a sender for it, in a format and
	// with a timeout for each send. t's cleanup ends both.
	New func(t *testing.T, f format.Format, timeout time.Duration) Destination

	// Pieces is what arrives of a batch where that is not one piece, as the
	// format writes it; such a destination has no formats. It may deliver
	// pieces, and those of several batches, in any order, unless it is Ordered.
	Pieces  func(b *core.Batch) [][]byte
	Ordered bool

	// Replaces: a batch sent again takes the place of the first.
	Replaces bool
}

// Destination is a destination under test. The functions that are nil are what
// it cannot do; the others make it do so from the next batch on.
type Destination struct {
	Sender core.Sender

	// Received is what has arrived so far, in order: one element for each
	// batch, or, where nothing stands between batches, one for several. With
	// Pieces, one for each piece.
	Received func() [][]byte

	// Stall makes it take batches without ever answering. A value comes from
	// reached for the first of them.
	Stall func() (reached <-chan struct{})

	FailItems func(ids ...string) // take a batch, but for these items
	Refuse    func()              // refuse batches for good
	TooLarge  func()              // refuse batches, or their items, that have more than 1 KiB

	// Throttle turns batches away until wait has passed. It returns how much of
	// that the destination tells its senders; 0: nothing.
	Throttle func(wait time.Duration) (told time.Duration)
}

// test is one case of the suite.
type test struct {
	name string
	run  func(t *testing.T, p *probe)
}

// capabilities are what destinations may lack, with the cases that need them.
var capabilities = []struct {
	name  string
	able  func(d *Destination) bool
	tests []test
}{
	{"stalling", func(d *Destination) bool { return d.Stall != nil }, stallTests},
	{"partial failure", func(d *Destination) bool { return d.FailItems != nil }, partialTests},
	{"throttling", func(d *Destination) bool { return d.Throttle != nil }, throttleTests},
	{"refusal", func(d *Destination) bool { return d.Refuse != nil }, refusalTests},
	{"oversize", func(d *Destination) bool { return d.TooLarge != nil }, oversizeTests},
}

// Run runs every case that the destination is capable of, in every format, and
// logs how many there were.
func Run(t *testing.T, h Harness) {
	t.Helper()
	tests := slices.Clone(takingTests)
	var without []string
	d := h.New(t, format.NDJSON, patience)
	for _, c := range capabilities {
		if c.able(&d) {
			tests = append(tests, c.tests...)
		} else {
			without = append(without, c.name)
		}
	}
	if len(without) == 0 {
		without = []string{"nothing"}
	}
	var ran atomic.Int64
	t.Cleanup(func() {
		t.Logf("sendertest: %s: %d cases, without: %s", h.Name, ran.Load(), strings.Join(without, ", "))
	})
	names := format.Names()
	if h.Pieces != nil {
		names = names[:1]
	}
	for _, name := range names {
		f, err := format.Parse(name)
		require.NoError(t, err)
		for _, c := range tests {
			t.Run(name+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				c.run(t, &probe{t: t, harness: &h, format: f})
				ran.Add(1)
			})
		}
	}
}
