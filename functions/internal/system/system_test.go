package system

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/stretchr/testify/require"
)

// Ids are in the order in which they were made, whatever becomes of the clock,
// and tell the time while that goes forward.
func TestIDsAreInOrder(t *testing.T) {
	t.Parallel()
	now := ulid.Timestamp(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	ids := newIDs(func() uint64 { return now })
	var made []string
	for _, step := range []int64{0, 1, 0, 5000, -3_600_000, 1, 0, 3_600_000, -1, 60_000} {
		now = uint64(int64(now) + step)
		for range 1000 {
			made = append(made, ids.New())
		}
	}
	require.True(t, slices.IsSorted(made))
	require.Len(t, slices.Compact(slices.Clone(made)), len(made))
	require.Equal(t, now, ulid.MustParse(made[len(made)-1]).Time())
}

func TestSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		require.NoError(t, Sleep(t.Context(), time.Minute))
		require.Equal(t, time.Minute, time.Since(begin))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, Sleep(ctx, time.Minute), context.DeadlineExceeded)
		require.Equal(t, time.Minute+time.Second, time.Since(begin))
	})
}

func TestIDsAreUnique(t *testing.T) {
	t.Parallel()
	const makers, each = 8, 5000
	ids := IDs()
	made := make([][]string, makers)
	var wg sync.WaitGroup
	for m := range makers {
		wg.Go(func() {
			for range each {
				made[m] = append(made[m], ids.New())
			}
		})
	}
	wg.Wait()
	all := slices.Concat(made...)
	for _, own := range made {
		require.True(t, slices.IsSorted(own))
	}
	slices.Sort(all)
	require.Len(t, slices.Compact(all), makers*each)
}
