package core_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

// TestReceive takes what can be taken: what is refused stays, and with it what
// is behind it in its own unit of order.
func TestReceive(t *testing.T) {
	t.Parallel()
	message := func(unit, ts string) core.Event {
		return core.Event{ID: unit + ts, Unit: unit, JSON: true, Body: fmt.Appendf(nil, `{"ts":%q}`, ts)}
	}
	const good, bad = "2023-11-14T22:13:30Z", "soon"
	for _, tc := range []struct {
		name   string
		events []core.Event
		left   []int
	}{
		{"nothing", nil, nil},
		{"all", []core.Event{message("", good), message("", good)}, nil},
		{"one refused, of no unit", []core.Event{message("", good), message("", bad), message("", good)}, []int{1}},
		{"one refused holds its unit", []core.Event{message("a", good), message("b", bad), message("a", good), message("b", good)}, []int{1, 3}},
		{"several", []core.Event{message("a", bad), message("b", good), message("", bad), message("a", good)}, []int{0, 2, 3}},
		{"none", []core.Event{message("", bad)}, []int{0}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			d := newDock(t)
			p := d.process(docked(windowed))
			left, why := p.ingester.Receive(context.Background(), "in", tc.events)
			var got []int
			for i := range tc.events {
				if left.Has(i) {
					got = append(got, i)
				}
			}
			require.Equal(t, tc.left, got)
			require.Equal(t, tc.left != nil, why != nil)
			n := 0
			for _, key := range d.busyGroups() {
				g, err := d.memory.Group(context.Background(), core.Ref{Buffer: "b", Key: key})
				require.NoError(t, err)
				n += int(g.Pending())
			}
			require.Equal(t, len(tc.events)-len(tc.left), n)
		})
	}
}
