package embed

import (
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/core/flushtest"
)

// TestFlushes is on a store that no other process can be on.
func TestFlushes(t *testing.T) {
	t.Parallel()
	open := func(t testing.TB, dir string) *Store {
		s, err := Open(dir, Options{Sync: true, SegmentBytes: minSegment})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		return s
	}
	flushtest.Run(t, flushtest.Harness{
		Name: "embed",
		Open: func(t testing.TB, _ core.Clock) (core.Store, core.Coordinator) { return open(t, t.TempDir()), nil },
		Reopen: func(t testing.TB, _ core.Clock, s core.Store, _ core.Coordinator) (core.Store, core.Coordinator) {
			kill(t, s.(*Store))
			return open(t, s.(*Store).dir), nil
		},
		Abandons: true,
	})
}
