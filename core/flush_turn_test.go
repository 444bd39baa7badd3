package core_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

// What a turn says to a flush that comes at noon. The floor is 54 s, a hold lasts 60 s.
func TestTurnTake(t *testing.T) {
	t.Parallel()
	const floor, lease = 54 * time.Second, time.Minute
	at := noon.Add
	for _, tc := range []struct {
		name string
		turn core.Turn
		wait time.Duration
	}{
		{"never taken", core.Turn{}, 0},
		{"shipped long ago", core.Turn{Last: at(-floor)}, 0},
		{"shipped just too late", core.Turn{Last: at(-floor + 1*time.Millisecond)}, time.Millisecond},
		{"shipped now", core.Turn{Last: at(0)}, floor},
		{"shipped by a clock that is a little ahead", core.Turn{Last: at(5 * s)}, floor},
		{"shipped before the clock was set back", core.Turn{Last: at(5*s + 1*time.Millisecond)}, 0},
		{"shipped before the clock was set back by a year", core.Turn{Last: at(365 * 24 * time.Hour)}, 0},
		{"held since a moment ago", core.Turn{Holder: "a", Begin: at(-1 * s), Until: at(59 * s)}, 53 * s},
		{"held, and renewed for longer than the floor", core.Turn{Holder: "a", Begin: at(-100 * s), Until: at(1 * s)}, s},
		{"held by one whose clock is a little ahead", core.Turn{Holder: "a", Begin: at(3 * s), Until: at(63 * s)}, floor},
		{"held since before the clock was set back", core.Turn{Holder: "a", Begin: at(3600 * s), Until: at(3660 * s)}, 0},
		{"its hold has ended", core.Turn{Holder: "a", Begin: at(-60 * s), Until: at(0)}, 0},
		{"its hold has ended, after a shipment of another", core.Turn{Last: at(-10 * s), Holder: "a", Begin: at(-60 * s), Until: at(0)}, 44 * s},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			was, is := tc.turn, tc.turn
			require.Equal(t, tc.wait, is.Take("b", floor, lease, noon))
			if tc.wait > 0 {
				require.Equal(t, was, is)
				return
			}
			require.Equal(t, core.Turn{Last: was.Last, Holder: "b", Begin: noon, Until: at(lease)}, is)
		})
	}
}

func TestTurnRenew(t *testing.T) {
	t.Parallel()
	r := core.Turn{Holder: "a", Begin: noon, Until: noon.Add(s)}
	require.False(t, r.Renew("b", time.Minute, noon))
	require.Equal(t, noon.Add(s), r.Until)
	require.True(t, r.Renew("a", time.Minute, noon))
	require.Equal(t, core.Turn{Holder: "a", Begin: noon, Until: noon.Add(time.Minute)}, r)
}

func TestTurnEnd(t *testing.T) {
	t.Parallel()
	hold := core.Turn{Last: noon, Holder: "a", Begin: noon, Until: noon.Add(time.Minute)}
	for _, tc := range []struct {
		name       string
		holder     string
		begin, now core.Millis
		shipped    bool
		want       core.Turn
	}{
		{"nothing shipped", "a", noon + 1, noon + 9, false, core.Turn{Last: noon}},
		{"shipped", "a", noon + 1, noon + 9, true, core.Turn{Last: noon + 1}},
		{"another's, nothing shipped", "b", noon + 1, noon + 9, false, hold},
		{"another's, shipped", "b", noon + 1, noon + 9, true, core.Turn{Last: noon + 1, Holder: hold.Holder, Begin: hold.Begin, Until: hold.Until}},
		{"one that began before the latest", "a", noon - 1, noon + 9, true, core.Turn{Last: noon}},
		{"after the clock was set back", "a", noon - 3600_000, noon - 3600_000, true, core.Turn{Last: noon - 3600_000}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := hold
			r.End(tc.holder, tc.begin, tc.shipped, tc.now)
			require.Equal(t, tc.want, r)
		})
	}
}
