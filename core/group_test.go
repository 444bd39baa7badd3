package core_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sluice/core"
)

// opened is a group with n pending items of 10 bytes, all from noon.
func opened(t *testing.T, p *core.Policy, n int) *core.Group {
	t.Helper()
	var g core.Group
	_, err := g.Append(n, int64(10*n), "life", p, noon)
	require.NoError(t, err)
	return &g
}

// claimed takes the next n items of g.
func claimed(t *testing.T, g *core.Group, p *core.Policy, n int, now core.Millis) core.Claim {
	t.Helper()
	c, err := g.Claim(core.Taking{From: g.Head + 1, To: g.Head + uint64(n), Through: g.HeadBytes + int64(10*n),
		Items: n, NextAt: noon, Reason: core.ReasonItems}, p, now)
	require.NoError(t, err)
	return c
}

func conflicts(t *testing.T, err error, what string) {
	t.Helper()
	require.Error(t, err, what)
	require.Equal(t, core.Conflict, core.CodeOf(err), "%s: %v", what, err)
}

func TestAppendArms(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name       string
		idle, wait time.Duration
		want       core.Millis
	}{
		{"idle first", 3 * time.Second, 10 * time.Second, noon + 3000},
		{"wait first", 10 * time.Second, 3 * time.Second, noon + 3000},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := evaluated()
			p.IdleTimeout, p.MaxWait = c.idle, c.wait
			var g core.Group
			a, err := g.Append(2, 20, "life", p, noon)
			require.NoError(t, err)
			require.Equal(t, core.Appended{First: 1, Armed: true, CheckAt: c.want, Life: "life"}, a)
			a, err = g.Append(1, 10, "another", p, noon+1000)
			require.NoError(t, err)
			require.Equal(t, core.Appended{First: 3, CheckAt: c.want, Life: "life"}, a)
			require.Equal(t, core.Group{Life: "life", Tail: 3, TailBytes: 30, FirstAt: noon, LastAt: noon + 1000, CheckAt: c.want}, g)
		})
	}
}

func TestAppendRefuses(t *testing.T) {
	t.Parallel()
	p := evaluated()
	p.CapItems = 5
	g := opened(t, p, 4)
	for n, code := range map[int]core.Code{0: core.Internal, -1: core.Internal, 2: core.Full, 1000: core.Full} {
		before := g.Clone()
		_, err := g.Append(n, 1, "life", p, noon)
		require.Error(t, err)
		require.Equal(t, code, core.CodeOf(err), "%d items", n)
		require.Equal(t, before, *g)
	}
	_, err := g.Append(1, 1, "life", p, noon)
	require.NoError(t, err)
	claimed(t, g, p, 3, noon)
	_, err = g.Append(3, 1, "life", p, noon)
	require.NoError(t, err, "the claimed ones have made room")
}

func TestClaimRefuses(t *testing.T) {
	t.Parallel()
	p := evaluated()
	p.Concurrency = 2
	g := opened(t, p, 20)
	claimed(t, g, p, 5, noon)
	for what, taking := range map[string]core.Taking{
		"taken before":     {From: 1, To: 5, Items: 5},
		"taken in part":    {From: 5, To: 9, Items: 5},
		"a gap":            {From: 7, To: 9, Items: 3},
		"beyond the tail":  {From: 6, To: 21, Items: 16},
		"nothing":          {From: 6, To: 5},
		"nothing, of void": {From: 1, To: 0},
	} {
		before := g.Clone()
		_, err := g.Claim(taking, p, noon)
		conflicts(t, err, what)
		require.Equal(t, before, *g, what)
	}
	claimed(t, g, p, 5, noon)
	_, err := g.Claim(core.Taking{From: 11, To: 15, Through: 150, Items: 5}, p, noon)
	conflicts(t, err, "a third at a time")
	_, err = g.Claim(core.Taking{From: 11, To: 12, Through: 120}, p, noon)
	require.NoError(t, err, "void numbers need no slot")
	require.Len(t, g.Claims, 2)
	require.Equal(t, uint64(12), g.Head)
}

// TestBurst has 120 items with maxItems 50: two full batches leave, and the
// last 20 wait from their own first arrival.
func TestBurst(t *testing.T) {
	t.Parallel()
	p := evaluated()
	p.Concurrency = 2
	p.MaxBytes = 1 << 20
	var g core.Group
	for _, a := range []struct {
		n  int
		at core.Millis
	}{{100, noon}, {20, noon + 700}} {
		_, err := g.Append(a.n, int64(a.n), "life", p, a.at)
		require.NoError(t, err)
	}
	now := noon + 1000
	for i := range uint64(2) {
		require.Equal(t, core.ReasonItems, core.Evaluate(&g, p, now).Reason)
		_, err := g.Claim(core.Taking{From: 50*i + 1, To: 50*i + 50, Through: int64(50*i + 50), Items: 50,
			NextAt: noon + 700*core.Millis(i), Reason: core.ReasonItems}, p, now)
		require.NoError(t, err)
	}
	require.Equal(t, uint64(20), g.Pending())
	require.Equal(t, noon+700, g.FirstAt)
	require.Equal(t, noon+3700, g.CheckAt, "idle since its last arrival")
	require.False(t, core.Evaluate(&g, p, noon+3699).Due)
}

func TestSettlingNeedsTheLease(t *testing.T) {
	t.Parallel()
	p := evaluated()
	g := opened(t, p, 3)
	first := claimed(t, g, p, 3, noon)
	require.Equal(t, core.Claim{ID: "life-1", From: 1, To: 3, Reason: core.ReasonItems, Attempt: 1, Lease: 1, Due: noon + 60_000}, first)
	_, err := g.Recover(first.ID, p, noon+59_999)
	conflicts(t, err, "taking over before the lease has passed")

	second, err := g.Recover(first.ID, p, noon+60_000)
	require.NoError(t, err)
	require.Equal(t, 1, second.Attempt, "whether the first was sent is not known")
	for what, settle := range map[string]func() error{
		"ack":            func() error { return g.Ack(first.ID, first.Lease, p, noon) },
		"release":        func() error { return g.Release(first.ID, first.Lease, noon, "no", p, noon) },
		"shrink":         func() error { return g.Shrink(first.ID, first.Lease, core.Bits{1}, noon, "no", p, noon) },
		"ack of another": func() error { return g.Ack("life-2", second.Lease, p, noon) },
	} {
		before := g.Clone()
		conflicts(t, settle(), what)
		require.Equal(t, before, *g, what)
	}
	require.NoError(t, g.Release(second.ID, second.Lease, noon+90_000, "refused", p, noon+61_000))
	conflicts(t, g.Ack(second.ID, second.Lease, p, noon+62_000), "settling twice")
	require.Equal(t, noon+61_000, g.Claims[0].FirstErrorAt)

	third, err := g.Recover(first.ID, p, noon+90_000)
	require.NoError(t, err)
	require.Equal(t, 2, third.Attempt, "a retry is another attempt")
	require.NoError(t, g.Ack(third.ID, third.Lease, p, noon+90_000))
	require.True(t, g.Empty())
	require.Zero(t, g.CheckAt)
	require.Zero(t, g.FirstAt)
}

// TestOnlyTheHolderSettles has a claim that waits for its retry: nobody holds
// it, so nobody can settle it, not even by the number its lease has now.
func TestOnlyTheHolderSettles(t *testing.T) {
	t.Parallel()
	p := evaluated()
	g := opened(t, p, 3)
	c := claimed(t, g, p, 3, noon)
	require.NoError(t, g.Release(c.ID, c.Lease, noon+5000, "no", p, noon))
	require.False(t, g.Claims[0].Held())
	conflicts(t, g.Ack(c.ID, g.Claims[0].Lease, p, noon), "ack of a claim that nobody holds")
}

// TestBecomesOrdered has two claims when its settings change: under the new
// ones just one may be sent.
func TestBecomesOrdered(t *testing.T) {
	t.Parallel()
	p := evaluated()
	p.Concurrency = 3
	g := opened(t, p, 6)
	first, second := claimed(t, g, p, 2, noon), claimed(t, g, p, 2, noon)
	require.NoError(t, g.Release(first.ID, first.Lease, noon+1000, "no", p, noon))
	p.Ordered = true
	require.True(t, g.Blocked(p, noon+1000))
	require.Nil(t, g.Expired(p, noon+1000), "the second is being sent")
	_, err := g.Recover(first.ID, p, noon+1000)
	conflicts(t, err, "a second one at a time")
	require.NoError(t, g.Ack(second.ID, second.Lease, p, noon+1000))
	require.Equal(t, first.ID, g.Expired(p, noon+1000).ID)
}

func TestReleaseCutsTheError(t *testing.T) {
	t.Parallel()
	p := evaluated()
	g := opened(t, p, 1)
	c := claimed(t, g, p, 1, noon)
	require.NoError(t, g.Release(c.ID, c.Lease, noon, strings.Repeat("x", core.MaxClaimError-1)+"é", p, noon))
	require.Equal(t, strings.Repeat("x", core.MaxClaimError-1), g.Claims[0].Error)
}

func TestAbandon(t *testing.T) {
	t.Parallel()
	p := evaluated()
	p.Concurrency = 3
	g := opened(t, p, 9)
	held, waiting := claimed(t, g, p, 3, noon), claimed(t, g, p, 3, noon)
	require.NoError(t, g.Release(waiting.ID, waiting.Lease, noon+7000, "no", p, noon))
	g.Abandon()
	require.Equal(t, held.ID, g.Expired(p, noon).ID, "free at once")
	require.Equal(t, noon+7000, g.Find(waiting.ID).Due, "a retry keeps its time")
	again, err := g.Recover(held.ID, p, noon)
	require.NoError(t, err)
	require.Equal(t, held.Attempt, again.Attempt)
}

// TestPostpone has a claim given back unsent: its attempt is still to be made.
func TestPostpone(t *testing.T) {
	t.Parallel()
	p := evaluated()
	g := opened(t, p, 3)
	c := claimed(t, g, p, 3, noon)
	require.NoError(t, g.Postpone(c.ID, c.Lease, noon+500, false, p, noon))
	conflicts(t, g.Postpone(c.ID, c.Lease, noon+900, false, p, noon), "twice")
	require.Zero(t, g.Claims[0].FirstErrorAt, "nothing has failed")
	require.Nil(t, g.Expired(p, noon+499))
	again, err := g.Recover(c.ID, p, noon+500)
	require.NoError(t, err)
	require.Equal(t, c.Attempt, again.Attempt)
}

func TestRenew(t *testing.T) {
	t.Parallel()
	p := evaluated()
	g := opened(t, p, 3)
	c := claimed(t, g, p, 3, noon)
	require.NoError(t, g.Renew(c.ID, c.Lease, p, noon+59_000))
	_, err := g.Recover(c.ID, p, noon+118_999)
	conflicts(t, err, "taking over a renewed lease")
	require.NoError(t, g.Ack(c.ID, c.Lease, p, noon+118_999), "the lease is still the same one")
	conflicts(t, g.Renew(c.ID, c.Lease, p, noon), "renewing what is settled")
}

func TestClone(t *testing.T) {
	t.Parallel()
	p := evaluated()
	g := opened(t, p, 5)
	c := claimed(t, g, p, 3, noon)
	require.NoError(t, g.Shrink(c.ID, c.Lease, core.Bits{5}, noon, "no", p, noon))
	before := fmt.Sprintf("%+v", *g)
	a := g.Clone()
	require.Equal(t, *g, a)
	a.Claims[0].Done[0], a.Claims[0].ID = 0xff, "spoilt"
	require.Equal(t, before, fmt.Sprintf("%+v", *g))
}

func TestCut(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		s    string
		n    int
		want string
	}{
		{"", 0, ""}, {"", 5, ""}, {"abc", 5, "abc"}, {"abc", 3, "abc"}, {"abc", 2, "ab"}, {"abc", 0, ""},
		{"aä", 3, "aä"}, {"aä", 2, "a"}, {"ä", 1, ""}, {"€uro", 2, ""}, {"€uro", 3, "€"},
		{"x🙂y", 4, "x"}, {"x🙂y", 5, "x🙂"}, {"\xff\xfe\xfd", 2, "\xff\xfe"},
	} {
		require.Equal(t, c.want, core.Cut(c.s, c.n), "%q, %d", c.s, c.n)
	}
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "s")
		n := rapid.IntRange(0, 2*len(s)+1).Draw(t, "n")
		got := core.Cut(s, n)
		require.True(t, strings.HasPrefix(s, got))
		require.LessOrEqual(t, len(got), n)
		require.True(t, utf8.ValidString(got))
		require.Greater(t, len(got)+utf8.UTFMax, min(n, len(s)), "no more is cut than a torn character")
	})
}
