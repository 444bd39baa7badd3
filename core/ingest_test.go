package core_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

// A request that no waiting could ever make fit is refused as too large; one
// that fits a buffer that has room is taken, and one that must wait is Full.
func TestRequestsAndSizes(t *testing.T) {
	t.Parallel()
	sizes := func(size int64, items int) *core.Config {
		c := config()
		c.Buffers[0].Size, c.Buffers[0].Overflow.MaxItems = size, items
		return c
	}
	two := sizes(10, 0)
	two.Buffers = append(two.Buffers, two.Buffers[0])
	two.Buffers[1].Name, two.Buffers[1].Size, two.Buffers[1].GroupBy = "small", 3, ""

	keys := func(n int) []string {
		k := make([]string, n)
		for i := range k {
			k[i] = string(rune('a' + i))
		}
		return k
	}
	const accepted = core.Code(255)
	for _, tc := range []struct {
		name   string
		config *core.Config
		before []string // keys of the events that are there
		send   []string
		want   core.Code
		says   string
	}{
		{"as many as the buffer may hold", sizes(10, 0), nil, keys(10), accepted, ""},
		{"one more, each of its own group", sizes(10, 0), nil, keys(11), core.TooLarge, "more events for buffer b than the 10 that it holds at most (size)"},
		{"one more, of one group", sizes(3, 0), nil, []string{"k", "k", "k", "k"}, core.TooLarge, "buffer b than the 3"},
		{"as many as have room", sizes(10, 0), keys(4), keys(6), accepted, ""},
		{"one more than has room", sizes(10, 0), keys(4), keys(7), core.Full, "buffer b is full"},
		{"more than one group may hold", sizes(0, 2), nil, []string{"k", "k", "k"}, core.TooLarge, `3 events for group "k" of buffer b, which holds at most 2 (overflow.maxItems)`},
		{"as many in each of several groups", sizes(0, 2), nil, []string{"k", "l", "k", "l"}, accepted, ""},
		{"more than one of two buffers may hold", two, nil, keys(4), core.TooLarge, "more events for buffer small than the 3"},
		{"as many as the smaller one may hold", two, nil, keys(3), accepted, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			m := newManual(t, tc.config)
			if len(tc.before) > 0 {
				m.put(tc.before...)
			}
			err := m.tryPut(tc.send...)
			if tc.want == accepted {
				require.NoError(t, err)
				return
			}
			require.Equal(t, tc.want, core.CodeOf(err), "%v", err)
			require.ErrorContains(t, err, tc.says)
			stats, err := m.memory.Stats(t.Context())
			require.NoError(t, err)
			var held int64
			for _, b := range stats {
				held += b.Pending
			}
			require.Equal(t, int64(len(tc.before)), held, "nothing of a refused request is stored")
		})
	}
}
