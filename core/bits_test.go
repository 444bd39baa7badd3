package core_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sluice/core"
)

func TestBits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		numbers := rapid.SliceOf(rapid.IntRange(0, 300)).Draw(t, "numbers")
		var b core.Bits
		want := map[int]bool{}
		for _, i := range numbers {
			b = b.With(i)
			want[i] = true
		}
		require.Equal(t, len(want), b.Len())
		for i := range 320 {
			require.Equal(t, want[i], b.Has(i), "%d", i)
		}
	})
}

func TestBitsWithAgain(t *testing.T) {
	t.Parallel()
	b := core.Bits(nil).With(9)
	require.Equal(t, core.Bits{0, 2}, b)
	require.Equal(t, core.Bits{0, 2}, slices.Clone(b).With(9), "a number is in the set once")
	require.Equal(t, core.Bits{1, 2}, slices.Clone(b).With(0))
}

func TestNoBits(t *testing.T) {
	t.Parallel()
	var b core.Bits
	require.Zero(t, b.Len())
	require.False(t, b.Has(0))
	require.False(t, b.Has(1<<40))
}
