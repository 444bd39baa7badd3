package cli

import (
	"fmt"
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

	letters := make([]core.DeadLetter, letterPage+1) // more than a page
	for i := range letters {
		letters[i] = core.DeadLetter{ID: fmt.Sprint(i), Buffer: "drained", Destination: "slow"}
	}
	letters[0].Buffer, letters[1].Destination = "orders", "crm"
	require.NoError(t, store.DeadLetters().Put(t.Context(), letters))

	_, err = stored(t.Context(), dir)
	require.Equal(t, core.Unavailable, core.CodeOf(err), "a running system has it")

	require.NoError(t, store.Close())
	for range 2 { // looking changes nothing
		h, err := stored(t.Context(), dir)
		require.NoError(t, err)
		require.Len(t, h.buffers, 1)
		require.Equal(t, "retired", h.buffers[0].Buffer)
		require.EqualValues(t, 3, h.buffers[0].Pending)
		require.Equal(t, map[string]int64{"drained": letterPage, "orders": 1}, h.lettersOf)
		require.Equal(t, map[string]int64{"slow": letterPage, "crm": 1}, h.lettersTo)
	}
}
