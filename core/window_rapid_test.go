package core_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Whatever happens, every event leaves in just one batch (and what is left of
// it), in the window that took it; and a window ships once, in the order in which
// its events were accepted.
func TestWindows(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		v := newVoyage(t, voyageConfig(t))
		t.Repeat(v.actions())
		v.arrive(t)
		for _, start := range v.shippedWindows() {
			require.Contains(t, v.accepted, start, "a window of nothing")
		}
		for start, events := range v.accepted {
			var want []string
			request := map[string]int{}
			for _, e := range events {
				m := start.String() + " " + e.body
				want, request[m] = append(want, m), e.request
				require.True(t, v.taken[m], "an event was never taken")
			}
			require.ElementsMatch(t, want, v.left[start], "the window of %s", start)
			if v.c.Buffers[0].Shards > 1 || v.c.Buffers[0].Concurrency > 1 {
				continue
			}
			// what one request brings may have been moved on from several windows
			require.True(t, slices.IsSortedFunc(v.left[start], func(a, b string) int { return request[a] - request[b] }))
		}
	})
}
