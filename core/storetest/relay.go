package storetest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

var relayTests = []test{
	{"what may be shed is left out, alone, when its buffer is full", relayShed},
	{"of what may be shed all is stored that there is room for", relayShedSome},
	{"what was shed is not known as stored", relayShedOnce},
	{"fallbacks, tokens and holds are kept", relayKeepsFields},
	{"a change is made with what is stored, or neither is", relayChange},
}

// shed is a part that is left out when its buffer has so many items.
func shed(p core.Part, size int64) core.Part {
	p.Size, p.Shed = size, true
	return p
}

func relayShed(t *testing.T, p *probe) {
	policy := calm()
	full, other := core.Ref{Buffer: "copies", Key: "k"}, core.Ref{Buffer: "copies", Key: "other"}
	plain := core.Ref{Buffer: "b", Key: "k"}
	p.append(start, shed(part(full, policy, start, 1, 3, 10), 4))
	left := func(now core.Millis, which int, parts ...core.Part) {
		t.Helper()
		p.settle("copies")
		for i, a := range p.append(now, parts...) {
			require.Equal(t, i == which, a.Shed, "part %d of %d: %+v", i, len(parts), a)
			require.Equal(t, i == which, a.First == 0, "part %d of %d: %+v", i, len(parts), a)
			if a.Shed {
				require.Equal(t, core.Appended{Shed: true}, a)
			}
		}
	}
	left(start, 0, shed(part(full, policy, start, 4, 2, 10), 3))
	left(start, 1, part(plain, policy, start, 1, 1, 10), shed(part(other, policy, start, 1, 2, 10), 3), part(plain, policy, start, 2, 1, 10))
	left(start, 0, shed(part(full, policy, start, 4, 2, 10), 2), shed(part(full, policy, start, 4, 1, 10), 4), part(plain, policy, start, 3, 1, 10))
	require.Equal(t, []string{"k-1", "k-2", "k-3", "k-4"}, ids(p.pending(full)))
	require.Equal(t, []string{"k-1", "k-2", "k-3"}, ids(p.pending(plain)))
	require.True(t, p.empty(other))
	p.reopen()
	left(start, 0, shed(part(other, policy, start, 1, 1, 10), 4))
	p.settle("copies")
	require.Equal(t, core.Full, core.CodeOf(p.refused(start, sized(part(other, policy, start, 1, 1, 10), 4))), "of one that may not be shed")
	require.Len(t, p.groups("copies", 10), 1)

	c := p.claim(full, 2, policy, start)
	left(start, 0, shed(part(full, policy, start, 5, 1, 10), 4))
	p.ack(full, c, policy, start)
	left(start, 1, shed(part(full, policy, start, 5, 2, 10), 4), shed(part(other, policy, start, 1, 1, 10), 4))
	left(start, -1, shed(part(other, policy, start, 1, 1, 10), 5))
	left(start, -1, shed(part(other, policy, start, 2, 100, 10), 0))
	require.Equal(t, []string{"k-3", "k-4", "k-5", "k-6"}, ids(p.pending(full)))
}

func relayShedSome(t *testing.T, p *probe) {
	policy := calm()
	one, two, plain := core.Ref{Buffer: "copies", Key: "k"}, core.Ref{Buffer: "copies", Key: "two"}, core.Ref{Buffer: "b", Key: "k"}
	stored := func(wanted []int, parts ...core.Part) []core.Appended {
		t.Helper()
		p.settle("copies")
		answers := p.append(start, parts...)
		for i, a := range answers {
			require.Equal(t, wanted[i] < len(parts[i].Events), a.Shed, "part %d: %+v", i, a)
			require.Equal(t, wanted[i] > 0, a.First > 0, "part %d: %+v", i, a)
			if a.Shed {
				require.Equal(t, wanted[i], a.Stored, "part %d: %+v", i, a)
			}
		}
		p.reopen()
		return answers
	}
	a := stored([]int{5, 1, 0, 1},
		shed(part(one, policy, start, 1, 5, 10), 6), shed(part(two, policy, start, 1, 3, 10), 6), shed(part(one, policy, start, 6, 2, 10), 6), part(plain, policy, start, 1, 1, 10))
	require.True(t, a[0].Armed && a[1].Armed && a[3].Armed && !a[2].Armed)
	require.Equal(t, []string{"k-1", "k-2", "k-3", "k-4", "k-5"}, ids(p.pending(one)))
	require.Equal(t, []string{"two-1"}, ids(p.pending(two)))
	require.Equal(t, int64(10), p.group(two).TailBytes)
	require.Equal(t, []string{"k-1"}, ids(p.pending(plain)))

	stored([]int{0}, once(shed(part(two, policy, start, 2, 2, 10), 6)))
	stored([]int{2}, once(shed(part(two, policy, start, 2, 3, 10), 8)))
	a = stored([]int{4}, once(shed(part(two, policy, start, 2, 5, 10), 10))) // two of which are doubles
	require.Equal(t, []int{0, 1}, a[0].Doubles)
	a = stored([]int{0}, once(shed(part(two, policy, start, 4, 4, 10), 10)))
	require.Equal(t, []int{0, 1}, a[0].Doubles)
	a = stored([]int{4}, once(shed(part(two, policy, start, 4, 4, 10), 12)))
	require.Equal(t, []int{0, 1}, a[0].Doubles, "what was shed is free")
	require.Equal(t, []string{"two-1", "two-2", "two-3", "two-4", "two-5", "two-6", "two-7"}, ids(p.pending(two)))
}

func relayShedOnce(t *testing.T, p *probe) {
	ref, policy := core.Ref{Buffer: "copies", Key: "k"}, calm()
	p.append(start, once(shed(part(ref, policy, start, 1, 2, 10), 2)))
	more := once(shed(part(ref, policy, start, 3, 1, 10), 2))
	for range 2 {
		p.settle("copies")
		require.True(t, p.append(start, more)[0].Shed)
		require.True(t, p.append(start, more)[0].Shed, "again")
		p.reopen()
	}
	more.Size = 3
	p.settle("copies")
	a := p.append(start, more)[0]
	require.Empty(t, a.Doubles)
	require.Equal(t, uint64(3), a.First)
}

func relayKeepsFields(t *testing.T, p *probe) {
	ref, policy := core.Ref{Buffer: "b", Key: "k"}, calm()
	p.append(start, part(ref, policy, start, 1, 9, 10))
	want, now := p.group(ref), start
	apply := func(what string, fn func(*core.Group) error) {
		t.Helper()
		require.NoError(t, fn(&want), what)
		sameRecord(t, want, p.update(ref, fn), what+", answered")
		sameRecord(t, want, p.group(ref), what+", stored")
		p.reopen()
		if p.h.Abandons {
			want.Abandon()
		}
		got := p.group(ref)
		for i := range min(len(want.Claims), len(got.Claims)) {
			want.Claims[i].Mark = got.Claims[i].Mark // the store's own, which may do without
		}
		sameRecord(t, want, got, what+", reopened")
	}
	apply("hold", func(g *core.Group) error { g.HoldUntil(1, start+7*second, policy, now); return nil })
	require.Equal(t, start+7*second, want.Hold)
	var c core.Claim
	take := core.Taking{From: 1, To: 4, Through: 40, Items: 4, Hold: start + 9*second, Reason: core.ReasonItems}
	apply("claim", func(g *core.Group) (err error) { c, err = g.Claim(take, policy, now); return err })
	require.Equal(t, start+9*second, want.Hold)
	apply("fall", func(g *core.Group) error { return g.Fall(c.ID, c.Lease, policy, now) })
	apply("fall again", func(g *core.Group) error { return g.Fall(c.ID, c.Lease, policy, now) })
	require.Equal(t, 2, want.Claims[0].Hop)
	apply("postpone", func(g *core.Group) error { return g.Postpone(c.ID, c.Lease, now+2*second, true, policy, now) })
	require.True(t, want.Claims[0].Token)
	require.Equal(t, []core.Millis{now + 2*second}, p.due(now + 2*second)[ref])
	now += 2 * second
	apply("recover", func(g *core.Group) (err error) { c, err = g.Recover(c.ID, policy, now); return err })
	require.True(t, c.Token, "it had one")
	require.False(t, want.Claims[0].Token, "and has it no more")
	apply("shrink", func(g *core.Group) error {
		return g.Shrink(c.ID, c.Lease, core.Bits(nil).With(1).With(3), now+second, "no", policy, now)
	})
	require.Equal(t, 2, want.Claims[0].Hop)
	now += second
	apply("defer", func(g *core.Group) error { return g.Defer(g.Claims[0].ID, now+60*second, policy, now) })
	apply("free again", func(g *core.Group) error { g.HoldUntil(5, 0, policy, now); return nil })
	require.Zero(t, want.Hold)
	require.Equal(t, []string{"k-2", "k-4"}, ids(append(p.all(ref, 2, 2, 0), p.all(ref, 4, 4, 0)...)))
}

func relayChange(t *testing.T, p *probe) {
	from, to, other := core.Ref{Buffer: "held", Key: "k"}, core.Ref{Buffer: "b", Key: "k"}, core.Ref{Buffer: "b", Key: "w"}
	policy := calm()
	p.append(start, part(from, policy, start, 1, 3, 10))
	c := p.claim(from, 2, policy, start)
	runs := 0
	leave := core.Part{Ref: from, Change: func(g *core.Group) error {
		runs++
		return g.Ack(c.ID, c.Lease, policy, start)
	}}
	stays := func(what string) {
		t.Helper()
		g := p.group(from)
		require.NotNil(t, g.Find(c.ID), what)
		require.Empty(t, p.pending(to), what)
	}
	full := *policy
	full.CapItems = 1
	p.refused(start, part(to, policy, start, 1, 2, 10), part(to, &full, start, 3, 2, 10), leave)
	stays("another part was refused")
	shut := window()
	p.append(start, part(other, shut, start, 1, 1, 10))
	p.shut(other, shut, start)
	a := p.append(start, part(other, shut, start, 2, 1, 10), leave)
	require.True(t, a[0].Closed)
	require.False(t, a[1].Changed)
	stays("another part's group is closed")

	a = p.append(start, part(to, policy, start, 1, 2, 10), leave)
	if !a[1].Changed {
		require.Zero(t, runs, "this store makes none")
		return
	}
	require.Equal(t, core.Appended{Changed: true}, a[1])
	for range 2 {
		g := p.group(from)
		require.Nil(t, g.Find(c.ID))
		require.Equal(t, []string{"k-3"}, ids(p.pending(from)))
		require.Equal(t, []string{"k-1", "k-2"}, ids(p.pending(to)))
		p.reopen()
	}
	require.Equal(t, core.Conflict, core.CodeOf(p.refused(start, part(to, policy, start, 4, 2, 10), leave)), "it is settled")
	require.Equal(t, []string{"k-1", "k-2"}, ids(p.pending(to)))
	all := p.claim(from, 1, policy, start)
	leave.Change = func(g *core.Group) error { return g.Ack(all.ID, all.Lease, policy, start) }
	require.True(t, p.append(start, leave)[0].Changed, "a change alone")
	require.True(t, p.empty(from))
	p.reopen()
	require.True(t, p.empty(from))
	require.Equal(t, []string{"k-1", "k-2"}, ids(p.pending(to)))
}
