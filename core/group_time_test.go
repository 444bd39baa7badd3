package core_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

func TestCheckParksAtTheClaim(t *testing.T) {
	t.Parallel()
	p := evaluated()
	p.Ordered = true
	g := opened(t, p, 4)
	c := claimed(t, g, p, 2, noon)
	now := noon + 4000 // the rest is idle by now
	require.True(t, g.Check(p, now))
	require.Equal(t, c.Due, g.CheckAt, "due but blocked: when the claim wants attention")
	rev := g.Rev
	require.False(t, g.Check(p, now))
	require.Equal(t, rev, g.Rev, "nothing has changed")

	require.NoError(t, g.Release(c.ID, c.Lease, noon+9000, "no", p, now))
	require.Equal(t, noon+9000, g.CheckAt)
	again, err := g.Recover(c.ID, p, noon+9000)
	require.NoError(t, err)
	require.NoError(t, g.Ack(again.ID, again.Lease, p, noon+9500))
	require.Equal(t, noon+9500, g.CheckAt, "nobody blocks what is due: now")
}

// TestCheckOfAnExpiredClaim has the claim that blocks wait for a deliverer:
// the next look is now, not in the past.
func TestCheckOfAnExpiredClaim(t *testing.T) {
	t.Parallel()
	p := evaluated()
	p.Ordered = true
	g := opened(t, p, 4)
	c := claimed(t, g, p, 2, noon)
	require.True(t, g.Check(p, c.Due+500))
	require.Equal(t, c.Due+500, g.CheckAt)
}

func TestNudge(t *testing.T) {
	t.Parallel()
	g := opened(t, evaluated(), 1)
	g.Nudge(g.CheckAt)
	g.Nudge(g.CheckAt - 1)
	require.Zero(t, g.Rev, "a check is only ever moved on")
	g.Nudge(noon + 60_000)
	require.Equal(t, noon+60_000, g.CheckAt)
	require.Equal(t, uint64(1), g.Rev)
	var empty core.Group
	empty.Nudge(noon)
	require.Zero(t, empty, "nothing pending: nothing to check")
}

// TestClockSetBack has a group whose every time lies an hour ahead: its next
// check repairs those that somebody waits for.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	p := evaluated()
	p.Concurrency, p.MaxHold = 2, 2*time.Minute
	g := opened(t, p, 9)
	held, waiting := claimed(t, g, p, 3, noon), claimed(t, g, p, 3, noon)
	require.NoError(t, g.Release(waiting.ID, waiting.Lease, noon+1000, "no", p, noon))
	now := noon - 3_600_000
	require.True(t, g.Check(p, now))
	require.Equal(t, now, g.FirstAt)
	require.Equal(t, now+3000, g.CheckAt)
	require.Equal(t, now+120_000, g.Find(waiting.ID).Due, "no wait is longer than the longest")
	require.Equal(t, held.Due, g.Find(held.ID).Due, "a deliverer lives by its lease")
	require.False(t, core.Evaluate(g, p, now+2999).Due)
	require.True(t, core.Evaluate(g, p, now+10_000).Due, "at the latest, whatever LastAt says")
}

// TestCheckSaysWhatItRepairs has nothing pending, so CheckAt stays unset, but
// a retry that lies an hour ahead after the clock was set back: unless the
// caller hears of it, it drops the repair, and nobody looks for an hour.
func TestCheckSaysWhatItRepairs(t *testing.T) {
	t.Parallel()
	p := evaluated()
	p.MaxHold = time.Minute
	g := opened(t, p, 3)
	c := claimed(t, g, p, 3, noon)
	require.NoError(t, g.Release(c.ID, c.Lease, noon+1000, "no", p, noon))
	rev := g.Rev
	require.True(t, g.Check(p, noon-3_600_000))
	require.Equal(t, noon-3_600_000+60_000, g.Claims[0].Due)
	require.Greater(t, g.Rev, rev)
	require.False(t, g.Check(p, noon-3_600_000), "there is no more to repair")
}

// TestArrived has a claim that did not know when the next item arrived.
func TestArrived(t *testing.T) {
	t.Parallel()
	p := evaluated()
	p.MaxWait = 4 * time.Second
	g := opened(t, p, 2)
	_, err := g.Append(1, 10, "life", p, noon+2000)
	require.NoError(t, err)
	_, err = g.Claim(core.Taking{From: 1, To: 2, Through: 20, Items: 2, Reason: core.ReasonItems}, p, noon+2500)
	require.NoError(t, err)
	require.Equal(t, noon+4000, g.CheckAt, "as if the item had waited from the first one's arrival")
	for what, arrived := range map[string]struct {
		seq uint64
		at  core.Millis
	}{"an item that is not the first": {2, noon + 2000}, "an earlier time": {3, noon - 1}} {
		before := g.Clone()
		g.Arrived(arrived.seq, arrived.at, p, noon+2500)
		require.Equal(t, before, *g, what)
	}
	g.Arrived(3, noon+2000, p, noon+2500)
	require.Equal(t, noon+2000, g.FirstAt)
	require.Equal(t, noon+5000, g.CheckAt, "idle since")
}
