package core_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sluice/core"
)

// noon is when the groups of these tests begin.
const noon core.Millis = 1_700_000_000_000

func evaluated() *core.Policy {
	return &core.Policy{
		MaxItems: 50, MaxBytes: 1000, IdleTimeout: 3 * time.Second, MaxWait: 10 * time.Second,
		CapBytes: 1 << 20, Concurrency: 1, Lease: time.Minute, MaxHold: time.Hour,
	}
}

// TestEvaluateTimeline has items at 0, 1, 3, 5, 7 and 9 s, idle timeout 3 s,
// max wait 10 s: all six leave at 10.000 s, because of the wait.
func TestEvaluateTimeline(t *testing.T) {
	t.Parallel()
	arrivals := map[core.Millis]bool{0: true, 1000: true, 3000: true, 5000: true, 7000: true, 9000: true}
	var g core.Group
	p := evaluated()
	checks := []core.Millis{}
	for now := noon; now < noon+10_000; now++ {
		if arrivals[now-noon] {
			_, err := g.Append(1, 10, "life", p, now)
			require.NoError(t, err)
		}
		v := core.Evaluate(&g, p, now)
		require.False(t, v.Due, "at %d ms", now-noon)
		require.Greater(t, v.Next, now)
		if g.CheckAt == now {
			checks = append(checks, now-noon)
			require.True(t, g.Check(p, now), "an early check arms the next")
			require.Equal(t, v.Next, g.CheckAt)
		}
	}
	require.Equal(t, []core.Millis{3000, 6000, 8000}, checks, "each as late as it can be")
	require.Equal(t, noon+10_000, g.CheckAt)
	require.Equal(t, uint64(6), g.Pending())
	require.Equal(t, core.Verdict{Due: true, Reason: core.ReasonWait, Deadline: noon + 10_000}, core.Evaluate(&g, p, noon+10_000))
}

func TestEvaluate(t *testing.T) {
	t.Parallel()
	due := func(r core.Reason, since core.Millis) core.Verdict {
		return core.Verdict{Due: true, Reason: r, Deadline: noon + since}
	}
	not := func(next core.Millis) core.Verdict { return core.Verdict{Next: noon + next} }
	for _, c := range []struct {
		name        string
		items       uint64
		bytes       int64
		first, last core.Millis // since noon
		now         core.Millis
		want        core.Verdict
	}{
		{"nothing pending", 0, 0, 0, 0, 1_000_000, core.Verdict{}},
		{"one item", 1, 0, 0, 0, 0, not(3000)},
		{"an item less", 49, 0, 0, 500, 500, not(3500)},
		{"enough items", 50, 0, 0, 500, 500, due(core.ReasonItems, 500)},
		{"more than enough", 500, 0, 0, 500, 900, due(core.ReasonItems, 500)},
		{"a byte less", 1, 999, 0, 0, 0, not(3000)},
		{"enough bytes", 1, 1000, 0, 0, 0, due(core.ReasonBytes, 0)},
		{"more bytes", 2, 5000, 0, 400, 900, due(core.ReasonBytes, 400)},
		{"just before idle", 2, 0, 0, 5000, 7999, not(8000)},
		{"idle", 2, 0, 0, 5000, 8000, due(core.ReasonIdle, 8000)},
		{"just after idle", 2, 0, 0, 5000, 8001, due(core.ReasonIdle, 8000)},
		{"just before the wait", 2, 0, 0, 9000, 9999, not(10_000)},
		{"the wait", 2, 0, 0, 9000, 10_000, due(core.ReasonWait, 10_000)},
		{"just after the wait", 2, 0, 0, 9000, 10_001, due(core.ReasonWait, 10_000)},
		{"an item just before the wait ends", 2, 0, 0, 9950, 9999, not(10_000)},
		{"idle ends before the wait does", 2, 0, 0, 6999, 7000, not(9999)},
		{"idle ends with the wait", 2, 0, 0, 7000, 10_000, due(core.ReasonWait, 10_000)},
		{"items before bytes before wait before idle", 50, 1000, 0, 0, 60_000, due(core.ReasonItems, 0)},
		{"bytes before wait before idle", 49, 1000, 0, 0, 60_000, due(core.ReasonBytes, 0)},
		{"wait before idle, due since idle was", 49, 999, 0, 2000, 60_000, due(core.ReasonWait, 5000)},
		{"the clock was set back a little", 1, 0, 5000, 5000, 4000, not(7000)},
		{"the clock was set back a year", 1, 0, 0, 0, -31_536_000_000, not(-31_536_000_000 + 3000)},
		{"the clock was set back, and items are enough", 50, 0, 0, 0, -1000, due(core.ReasonItems, -1000)},
		{"the clock was set back between items", 2, 0, 9000, 1000, 1500, not(4000)},
		{"empty bodies", 49, 0, 0, 0, 1, not(3000)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g := core.Group{Life: "life", Head: 7, Tail: 7 + c.items, HeadBytes: 77, TailBytes: 77 + c.bytes}
			if c.items > 0 {
				g.FirstAt, g.LastAt = noon+c.first, noon+c.last
			}
			before := g.Clone()
			require.Equal(t, c.want, core.Evaluate(&g, evaluated(), noon+c.now))
			require.Equal(t, before, g, "it only looks")
		})
	}
}

// TestEvaluateHolds checks the flush conditions as they are written down,
// whatever the numbers.
func TestEvaluateHolds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		at := rapid.Int64Range(int64(noon)-20_000, int64(noon)+20_000)
		p := evaluated()
		p.MaxItems = rapid.IntRange(1, 20).Draw(t, "maxItems")
		p.IdleTimeout = time.Duration(rapid.IntRange(100, 20_000).Draw(t, "idle")) * time.Millisecond
		p.MaxWait = time.Duration(rapid.IntRange(100, 20_000).Draw(t, "wait")) * time.Millisecond
		g := core.Group{
			Tail: rapid.Uint64Range(1, 25).Draw(t, "items"), TailBytes: rapid.Int64Range(0, 1100).Draw(t, "bytes"),
			FirstAt: core.Millis(at.Draw(t, "first")), LastAt: core.Millis(at.Draw(t, "last")),
		}
		now := core.Millis(at.Draw(t, "now"))
		v := core.Evaluate(&g, p, now)

		waited, idled := now.Sub(g.FirstAt), now.Sub(g.LastAt)
		full := g.Pending() >= uint64(p.MaxItems) || g.PendingBytes() >= p.MaxBytes
		require.Equal(t, full || waited >= p.MaxWait || idled >= p.IdleTimeout, v.Due)
		if v.Due {
			require.NotEmpty(t, v.Reason)
			require.LessOrEqual(t, v.Deadline, now, "due since then")
			require.Zero(t, v.Next)
			return
		}
		require.Greater(t, v.Next, now)
		later := g
		later.FirstAt, later.LastAt = min(g.FirstAt, now), min(g.LastAt, now)
		require.False(t, core.Evaluate(&later, p, v.Next-1).Due, "not before the deadline")
		require.True(t, core.Evaluate(&later, p, v.Next).Due, "but at it")
	})
}
