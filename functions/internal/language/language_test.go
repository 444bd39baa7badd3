package language_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/functions/internal/language"
)

func TestJQ(t *testing.T) {
	t.Parallel()
	p, err := language.JQ(".type")
	require.NoError(t, err)
	require.NotNil(t, p)
	p, err = language.JQ(".type ==")
	require.Error(t, err)
	require.Nil(t, p)
}

func TestBroken(t *testing.T) {
	t.Parallel()
	c := core.NewConfig()
	d, b := core.NewDestination("crm"), core.NewBuffer("orders")
	d.Transform, b.Filter = ".a[", ".b"
	c.Destinations, c.Buffers = []core.Destination{d}, []core.Buffer{b}
	faults := language.Broken(c)
	require.Len(t, faults, 1)
	require.Equal(t, "destinations.crm.transform", faults[0].Path)
	require.Contains(t, faults[0].Problem, "is not a jq program: 1:4: unexpected EOF")
}
