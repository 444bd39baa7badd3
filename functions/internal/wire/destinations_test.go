package wire

import (
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

// Whatever a configuration may name can be opened here.
func TestEveryTypeHasAnOpener(t *testing.T) {
	t.Parallel()
	known := openers(nil, nil, nil)
	require.Len(t, known, len(core.DestinationTypes()))
	for _, name := range core.DestinationTypes() {
		require.Contains(t, known, name)
	}
}
