package storetest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

var listTests = []test{
	{"groups pages in the order of keys", listGroups},
	{"groups goes on after a key that is gone", listAfterGone},
	{"groups forgets the empty", listForgets},
	{"due lists a check from its time on", dueChecks},
	{"due lists a claim from its time on", dueClaims},
	{"due ends when its caller does, and goes through what changes meanwhile", dueWalk},
	{"stats sums up each buffer", statsSums},
}

func listGroups(t *testing.T, p *probe) {
	policy := calm()
	var want []string
	for i := range 25 {
		key := fmt.Sprintf("%02d", i*37%25)
		p.append(start, part(core.Ref{Buffer: "b", Key: key}, policy, start, 1, i+1, 3))
		p.append(start, part(core.Ref{Buffer: "a", Key: key + "x"}, policy, start, 1, 1, 3))
		p.append(start, part(core.Ref{Buffer: "b-", Key: key + "y"}, policy, start, 1, 1, 3))
		want = append(want, fmt.Sprintf("%02d", i))
	}
	for _, limit := range []int{1, 2, 7, 24, 25, 26, 1000} {
		var keys []string
		for _, g := range p.groups("b", limit) {
			keys = append(keys, g.Ref.Key)
			require.Equal(t, "b", g.Ref.Buffer)
			sameRecord(t, p.group(g.Ref), g.Group, "listed record")
		}
		require.Equal(t, want, keys, "%d at a time", limit)
	}
}

func listAfterGone(t *testing.T, p *probe) {
	policy := calm()
	for _, key := range []string{"", "a", "c", "d"} {
		p.append(start, part(core.Ref{Buffer: "b", Key: key}, policy, start, 1, 1, 3))
	}
	p.settle()
	for after, want := range map[string]string{"": "a", "a": "c", "b": "c", "c": "d", "c\x00": "d"} {
		groups, err := p.s.Groups(context.Background(), "b", &after, 1)
		require.NoError(t, err)
		require.Len(t, groups, 1, "after %q", after)
		require.Equal(t, want, groups[0].Ref.Key, "after %q", after)
	}
	last := "d"
	groups, err := p.s.Groups(context.Background(), "b", &last, 1)
	require.NoError(t, err)
	require.Empty(t, groups)
}

func listForgets(t *testing.T, p *probe) {
	policy := calm()
	a, b := core.Ref{Buffer: "b", Key: "a"}, core.Ref{Buffer: "b", Key: "b"}
	p.append(start, part(a, policy, start, 1, 2, 3), part(b, policy, start, 1, 2, 3))
	c := p.claim(a, 2, policy, start)
	require.Len(t, p.groups("b", 10), 2, "a group with nothing but a claim is not empty")
	p.ack(a, c, policy, start)
	groups := p.groups("b", 10)
	require.Len(t, groups, 1)
	require.Equal(t, b, groups[0].Ref)
}

func dueChecks(t *testing.T, p *probe) {
	policy := calm()
	early, late := core.Ref{Buffer: "b", Key: "early"}, core.Ref{Buffer: "other", Key: "late"}
	p.append(start, part(early, policy, start, 1, 1, 3))
	p.append(start+second, part(late, policy, start, 1, 1, 3))
	check := func(before core.Millis, want map[core.Ref][]core.Millis) {
		t.Helper()
		same(t, want, p.due(before), fmt.Sprintf("due before %v", before))
	}
	both := map[core.Ref][]core.Millis{early: {start + 3*second}, late: {start + 4*second}}
	check(start+3*second-1, map[core.Ref][]core.Millis{})
	check(start+3*second, map[core.Ref][]core.Millis{early: {start + 3*second}})
	check(start+4*second-1, map[core.Ref][]core.Millis{early: {start + 3*second}})
	check(start+4*second, both)
	check(start+400*second, both)

	p.update(early, func(g *core.Group) error { g.Nudge(start + 100*second); return nil })
	check(start+100*second-1, map[core.Ref][]core.Millis{late: {start + 4*second}})
	check(start+100*second, map[core.Ref][]core.Millis{early: {start + 100*second}, late: {start + 4*second}})
	p.reopen()
	check(start+100*second-1, map[core.Ref][]core.Millis{late: {start + 4*second}})
}

func dueClaims(t *testing.T, p *probe) {
	ref, policy := core.Ref{Buffer: "b", Key: "k"}, calm()
	never := start + 1_000_000*second
	p.append(start, part(ref, policy, start, 1, 4, 3))
	one := p.claim(ref, 2, policy, start)
	two := p.claim(ref, 2, policy, start+second)
	require.Equal(t, []core.Millis{start + 60*second}, p.due(never)[ref], "the earliest lease; nothing is pending")
	require.NotContains(t, p.due(start+60*second-1), ref)

	p.update(ref, func(g *core.Group) error {
		return g.Release(two.ID, two.Lease, start+5*second, "no", policy, start+second)
	})
	require.NotContains(t, p.due(start+5*second-1), ref)
	require.Equal(t, []core.Millis{start + 5*second}, p.due(start + 5*second)[ref], "the next attempt")

	p.update(ref, func(g *core.Group) (err error) {
		two, err = g.Recover(two.ID, policy, start+5*second)
		return err
	})
	require.NotContains(t, p.due(start+5*second), ref, "a retry that has been taken")
	p.ack(ref, one, policy, start+6*second)
	require.Equal(t, []core.Millis{start + 65*second}, p.due(never)[ref])
	p.ack(ref, two, policy, start+6*second)
	require.NotContains(t, p.due(never), ref, "a settled group")
}

func dueWalk(t *testing.T, p *probe) {
	policy := calm()
	for i := range 30 {
		p.append(start, part(core.Ref{Buffer: "b", Key: fmt.Sprint(i)}, policy, start, 1, 1, 3))
	}
	require.Len(t, p.due(start+3*second), 30)
	for h, err := range p.s.Due(context.Background(), start+3*second) {
		require.NoError(t, err)
		require.Equal(t, "b", h.Ref.Buffer)
		break
	}
	seen := map[core.Ref]bool{}
	for h, err := range p.s.Due(context.Background(), start+3*second) {
		require.NoError(t, err)
		seen[h.Ref] = true
		p.update(h.Ref, func(g *core.Group) error { g.Nudge(start + 100*second); return nil })
	}
	require.Len(t, seen, 30, "a walk that changes what it meets")
	require.Empty(t, p.due(start+3*second))
}

func statsSums(t *testing.T, p *probe) {
	policy := calm()
	a, b, c := core.Ref{Buffer: "one", Key: "a"}, core.Ref{Buffer: "one", Key: "b"}, core.Ref{Buffer: "two", Key: "a"}
	p.append(start, part(a, policy, start, 1, 5, 10))
	p.append(start+second, part(b, policy, start+second, 1, 2, 10))
	p.append(start+2*second, part(c, policy, start+2*second, 1, 1, 0))
	same(t, map[string]core.BufferStats{
		"one": {Buffer: "one", Groups: 2, Pending: 7, Bytes: 70, Oldest: start},
		"two": {Buffer: "two", Groups: 1, Pending: 1, Oldest: start + 2*second},
	}, p.stats(), "pending")

	claimed := p.claim(a, 5, policy, start+3*second)
	p.claim(c, 1, policy, start+3*second)
	same(t, map[string]core.BufferStats{
		"one": {Buffer: "one", Groups: 2, Pending: 2, Bytes: 20, Claimed: 5, Oldest: start + second},
		"two": {Buffer: "two", Groups: 1, Claimed: 1},
	}, p.stats(), "claimed")

	p.update(a, func(g *core.Group) error {
		return g.Shrink(claimed.ID, claimed.Lease, core.Bits(nil).With(0).With(4), start.Add(time.Minute), "no", policy, start)
	})
	p.reopen()
	same(t, map[string]core.BufferStats{
		"one": {Buffer: "one", Groups: 2, Pending: 2, Bytes: 20, Claimed: 2, Oldest: start + second},
		"two": {Buffer: "two", Groups: 1, Claimed: 1},
	}, p.stats(), "settled in part, and reopened")

	until := start.Add(time.Hour)
	p.update(b, func(g *core.Group) error { g.HoldUntil(g.Head+1, until, policy, start+4*second); return nil })
	p.reopen()
	require.EqualValues(t, 2, p.stats()["one"].Held, "held in place")
	p.update(b, func(g *core.Group) error { g.Check(policy, until+second); return nil })
	require.Zero(t, p.stats()["one"].Held, "its time has come")
}
