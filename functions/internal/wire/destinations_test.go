package wire

import (
	"testing"

	"github.com/aws/smithy-go/logging"
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

// The SDK's own lines have no place in a log of another form.
func TestTheSDKLogsNothing(t *testing.T) {
	t.Parallel()
	c, err := sdk()
	require.NoError(t, err)
	require.Equal(t, logging.Nop{}, c.Logger)
}
