package cloud

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/infra/emf"
)

// measured is a store of so many groups.
type measured struct {
	core.Store

	groups, read int
	err          error
}

func (c *measured) Stats(context.Context) ([]core.BufferStats, error) {
	c.read++
	return []core.BufferStats{{Buffer: "a", Groups: c.groups / 2, Pending: 1}, {Buffer: "b", Groups: c.groups - c.groups/2}}, c.err
}

// TestMeasuring shows that what is read to measure what waits does not grow
// without bounds with what waits.
func TestMeasuring(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		groups int
		want   int // measurings in two hours of runs
	}{
		{"none", 0, 120},
		{"a few", 10, 120},
		{"a thousand", 1000, 120},
		{"ten thousand", 10_000, 12},
		{"a million", 1_000_000, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			now := core.Millis(1_700_000_000_000)
			clock := core.ClockFunc(func() core.Millis { return now })
			store := &measured{groups: tt.groups}
			m := measuring{store: store, metrics: emf.New("", clock), clock: clock}
			for i := range 120 {
				now = core.Millis(1_700_000_000_000).Add(time.Duration(i)*time.Minute + time.Duration(i%3)*time.Second)
				require.NoError(t, m.measure(t.Context()))
			}
			require.Equal(t, tt.want, store.read)
		})
	}
}

func TestMeasuringAgain(t *testing.T) {
	t.Parallel()
	now := core.Millis(1_700_000_000_000)
	clock := core.ClockFunc(func() core.Millis { return now })
	store := &measured{groups: 1_000_000, err: core.Errorf(core.Unavailable, "the table does not answer")}
	metrics := emf.New("", clock)
	m := measuring{store: store, metrics: metrics, clock: clock}
	require.Error(t, m.measure(t.Context()))

	store.err = nil
	require.NoError(t, m.measure(t.Context()))
	require.Equal(t, 2, store.read, "one that failed is made again at once")
	var out bytes.Buffer
	require.NoError(t, metrics.Flush(&out))
	require.Contains(t, out.String(), `"sluice_pending_items":1`)

	now = now.Add(-2 * time.Hour)
	require.NoError(t, m.measure(t.Context()))
	require.Equal(t, 3, store.read, "a clock that was set back does not make the rest longer")
}
