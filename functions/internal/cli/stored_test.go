package cli

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/infra/embed"
)

func TestStored(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store, err := embed.Open(dir, embed.Options{})
	require.NoError(t, err)
	_, err = store.Append(t.Context(), core.At(epoch), []core.Part{{
		Ref: core.Ref{Buffer: "retired", Key: "k"}, Life: "l", Events: make([]core.Event, 3),
		Policy: &core.Policy{MaxItems: 50, MaxBytes: 1 << 20, IdleTimeout: time.Second, MaxWait: time.Second},
	}})
	require.NoError(t, err)

	_, err = stored(t.Context(), dir)
	require.Equal(t, core.Unavailable, core.CodeOf(err), "a running system has it")

	require.NoError(t, store.Close())
	for range 2 { // looking changes nothing
		stats, err := stored(t.Context(), dir)
		require.NoError(t, err)
		require.Len(t, stats, 1)
		require.Equal(t, "retired", stats[0].Buffer)
		require.EqualValues(t, 3, stats[0].Pending)
	}
}
