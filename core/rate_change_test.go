package core_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sluice/core"
)

// What was let through by one limit keeps nobody by another for longer than that
// would.
func TestARateLimitThatHasChanged(t *testing.T) {
	t.Parallel()
	limit := func(requests int, per time.Duration) *core.RateConfig {
		return &core.RateConfig{Requests: requests, Per: per}
	}
	for _, tt := range []struct {
		was, is *core.RateConfig
		taken   int
		waits   []time.Duration // of those that come next
	}{
		{limit(100, time.Hour), limit(100, time.Second), 130, []time.Duration{310 * time.Millisecond, 320 * time.Millisecond}},
		{limit(1, time.Hour), limit(100, time.Second), 100, []time.Duration{10 * time.Millisecond * 1, 20 * time.Millisecond}},
		{limit(3600, time.Hour), limit(1, time.Second), 3600, []time.Duration{time.Second, 2 * time.Second}},
		{limit(100, time.Second), limit(1, time.Hour), 100, []time.Duration{10 * time.Millisecond, time.Hour + 10*time.Millisecond}},
		{limit(100, time.Second), limit(200, time.Second), 50, []time.Duration{0, 0}},
		{limit(2, time.Second), limit(2, time.Second), 4, []time.Duration{1500 * time.Millisecond, 2 * time.Second}},
	} {
		t.Run(fmt.Sprintf("%+v %+v", *tt.was, *tt.is), func(t *testing.T) {
			t.Parallel()
			var r core.Rate
			for range tt.taken {
				_, taken := r.Take(tt.was, 200*time.Hour, noon)
				require.True(t, taken)
			}
			for i, want := range tt.waits {
				wait, taken := r.Take(tt.is, 200*time.Hour, noon)
				require.True(t, taken)
				require.Equal(t, want, wait, "%d", i)
			}
		})
	}
}

func TestAChangeOfARateLimitDelaysNobody(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		limit := func(name string) *core.RateConfig {
			return &core.RateConfig{
				Requests: rapid.OneOf(rapid.IntRange(1, 10), rapid.IntRange(1, 100_000)).Draw(t, name+" requests"),
				Per:      time.Duration(rapid.OneOf(rapid.Int64Range(100, 10_000), rapid.Int64Range(100, 3_600_000)).Draw(t, name+" per")) * time.Millisecond,
			}
		}
		was, is := limit("old"), limit("new")
		var r core.Rate
		now := noon
		for range rapid.IntRange(0, 300).Draw(t, "taken") {
			now += core.Millis(rapid.SampledFrom([]int{0, 0, 0, 1, 100}).Draw(t, "pass"))
			r.Take(was, time.Hour, now)
		}
		now += core.Millis(rapid.IntRange(0, 1000).Draw(t, "later"))
		old, changed := r, r
		oldWait, _ := old.Take(was, 1000*time.Hour, now)
		wait, taken := changed.Take(is, 1000*time.Hour, now)
		require.True(t, taken)
		each := is.Per/time.Duration(is.Requests) + 2*time.Millisecond
		require.LessOrEqual(t, wait, max(oldWait, each)+time.Millisecond)
	})
}

// What comes after a limit was raised does not wait for what was let through
// by the old one.
func TestAReloadThatRaisesARateLimit(t *testing.T) {
	run(t, config(at1, limited(100, time.Hour)), func(r *rig) {
		r.burst(130)
		r.at(time.Minute)
		require.Len(t, r.sends(), 101)
		r.reconfigure(config(at1, limited(100, time.Second)))
		r.put("new")
		r.at(time.Minute + time.Second)
		sends := r.sends()
		require.Equal(t, "new", sends[len(sends)-1].Group)
		r.at(time.Hour)
		require.Empty(t, r.left())
	})
}
