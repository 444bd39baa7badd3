package memory_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/core/coordinatortest"
	"sluice/infra/memory"
)

func TestCoordinator(t *testing.T) {
	t.Parallel()
	coordinatortest.Run(t, coordinatortest.Harness{
		Name: "memory",
		Open: func(testing.TB) core.Coordinator { return memory.NewCoordinator() },
	})
}

func TestCoordinatorRefuses(t *testing.T) {
	t.Parallel()
	down := errors.New("down")
	gone, leave := context.WithCancel(context.Background())
	leave()
	of := func(n int) func([]byte) ([]byte, error) {
		return func([]byte) ([]byte, error) { return []byte(strings.Repeat("x", n)), nil }
	}
	c := memory.NewCoordinator()
	ctx := context.Background()
	require.Equal(t, core.Canceled, core.CodeOf(c.Change(gone, "n", of(1))))
	require.Equal(t, core.Invalid, core.CodeOf(c.Change(ctx, strings.Repeat("n", 201), of(1))))
	require.Equal(t, core.TooLarge, core.CodeOf(c.Change(ctx, "n", of(4097))))
	c.Fail(down)
	require.Equal(t, down, c.Change(ctx, "n", func([]byte) ([]byte, error) {
		t.Error("it ran though the coordinator fails")
		return nil, nil
	}))
	c.Fail(nil)
	require.NoError(t, c.Change(ctx, "n", func(old []byte) ([]byte, error) {
		require.Nil(t, old, "nothing has changed")
		return nil, nil
	}))
}
