package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

var updateTests = []test{
	{"update answers with the record that is stored", updateAnswers},
	{"update that fails changes nothing", updateFails},
	{"update works on a private copy", updatePrivate},
	{"update keeps every field of a record", updateKeepsFields},
	{"update of no group sees an empty record", updateNothing},
	{"an emptied group is open for a new life", updateNewLife},
	{"update grows the revision", updateRevision},
}

func updateAnswers(t *testing.T, p *probe) {
	ref, policy := core.Ref{Buffer: "b", Key: "k"}, calm()
	p.append(start, part(ref, policy, start, 1, 3, 10))
	var made core.Group
	got := p.update(ref, func(g *core.Group) error {
		_, err := g.Claim(core.Taking{From: 1, To: 2, Through: 20, Items: 2, Reason: core.ReasonIdle}, policy, start)
		made = g.Clone()
		return err
	})
	sameRecord(t, made, got, "what fn left")
	sameRecord(t, got, p.group(ref), "what is stored")
	require.Equal(t, uint64(2), got.Head)
}

func updateFails(t *testing.T, p *probe) {
	ref, policy := core.Ref{Buffer: "b", Key: "k"}, calm()
	p.append(start, part(ref, policy, start, 1, 6, 10))
	c := p.claim(ref, 4, policy, start)
	p.update(ref, func(g *core.Group) error {
		return g.Shrink(c.ID, c.Lease, core.Bits(nil).With(0).With(3), start.Add(time.Second), "no", policy, start)
	})
	before := p.group(ref)
	for _, want := range []error{errors.New("mine"), core.Errorf(core.Conflict, "a lost race")} {
		_, err := p.s.Update(context.Background(), ref, nil, func(g *core.Group) error {
			g.Life, g.Head, g.Tail, g.FirstAt, g.CheckAt, g.Rev = "spoilt", 99, 100, 1, 1, g.Rev+7
			g.Claims[0].Due, g.Claims[0].Error, g.Claims[0].Done[0] = 1, "spoilt", 0xff
			g.Claims = append(g.Claims, core.Claim{ID: "spoilt"})
			return want
		})
		require.Same(t, want, err, "fn's own error comes back as it is")
		same(t, before, p.group(ref), "record")
		require.NotContains(t, p.due(1), ref)
	}
	p.reopen()
	require.Len(t, p.group(ref).Claims, 1)
	require.Equal(t, before.Claims[0].Done, p.group(ref).Claims[0].Done)
	require.Equal(t, []string{"k-5", "k-6"}, ids(p.all(ref, 5, 6, 0)))
}

func updatePrivate(t *testing.T, p *probe) {
	ref, policy := core.Ref{Buffer: "b", Key: "k"}, calm()
	p.append(start, part(ref, policy, start, 1, 3, 10))
	c := p.claim(ref, 3, policy, start)
	var kept []*core.Group
	answer := p.update(ref, func(g *core.Group) error {
		kept = append(kept, g)
		return g.Shrink(c.ID, c.Lease, core.Bits(nil).With(0).With(2), start.Add(time.Second), "no", policy, start)
	})
	want := answer.Clone()
	read, listed := p.group(ref), p.groups("b", 10)
	for _, g := range append(kept, &answer, &read, &listed[0].Group) {
		if len(g.Claims) == 1 && len(g.Claims[0].Done) > 0 { // not so in a run of fn that came to nothing
			g.Claims[0].Done[0], g.Claims[0].Due, g.Claims[0].ID = 0xff, 1, "spoilt"
		}
		g.Tail, g.Life = 1000, "spoilt"
	}
	sameRecord(t, want, p.group(ref), "after every copy was written to")
}

func updateKeepsFields(t *testing.T, p *probe) {
	ref, policy := core.Ref{Buffer: "b", Key: "k"}, calm()
	policy.CapItems = 40
	policy.Concurrency = 3
	p.append(start, part(ref, policy, start, 1, 30, 11))
	want := p.group(ref)
	apply := func(what string, fn func(*core.Group) error) {
		t.Helper()
		require.NoError(t, fn(&want), what)
		sameRecord(t, want, p.update(ref, fn), what+", answered")
		sameRecord(t, want, p.group(ref), what+", stored")
		if !p.h.Abandons {
			p.reopen()
			sameRecord(t, want, p.group(ref), what+", reopened")
		}
	}
	take := func(from, to uint64, reason core.Reason, now core.Millis) core.Claim {
		var c core.Claim
		apply(fmt.Sprintf("claim from %d", from), func(g *core.Group) (err error) {
			c, err = g.Claim(core.Taking{From: from, To: to, Through: int64(11 * to), Items: int(to - from + 1), Reason: reason}, policy, now)
			return err
		})
		return c
	}
	one := take(1, 20, core.ReasonBytes, start+1)
	two := take(21, 22, core.ReasonWait, start+2)
	take(23, 23, core.ReasonReplay, start+3)
	apply("release", func(g *core.Group) error {
		return g.Release(two.ID, two.Lease, start+4*second, "connection refused: é", policy, start+10)
	})
	apply("recover", func(g *core.Group) error {
		_, err := g.Recover(two.ID, policy, start+4*second)
		return err
	})
	apply("shrink", func(g *core.Group) error {
		return g.Shrink(one.ID, one.Lease, core.Bits(nil).With(2).With(9).With(19), start+9*second, "3 refused", policy, start+20)
	})
	apply("check", func(g *core.Group) error { g.Check(policy, start+5*second); return nil })
	apply("nudge", func(g *core.Group) error { g.Nudge(start + 3600*second); return nil })
	apply("void", func(g *core.Group) error {
		_, err := g.Claim(core.Taking{From: 24, To: 25, Through: 11 * 23}, policy, start+30)
		return err
	})
}

func updateNothing(t *testing.T, p *probe) {
	ref := core.Ref{Buffer: "b", Key: "k"}
	for range 2 {
		got := p.update(ref, func(g *core.Group) error {
			if !g.Empty() || g.Life != "" || g.CheckAt != 0 {
				return fmt.Errorf("not an empty record: %+v", *g)
			}
			return nil
		})
		require.True(t, got.Empty())
		require.Empty(t, p.groups("b", 10))
	}
	_, err := p.s.Update(context.Background(), ref, nil, func(g *core.Group) error {
		return g.Ack("life-1", 1, calm(), start)
	})
	require.Equal(t, core.Conflict, core.CodeOf(err), "settling what is gone: %v", err)
	p.append(start, part(ref, calm(), start, 1, 1, 1))
}

func updateNewLife(t *testing.T, p *probe) {
	ref, policy := core.Ref{Buffer: "b", Key: "k"}, calm()
	first := part(ref, policy, start, 1, 3, 10)
	first.Life = "one"
	p.append(start, first)
	old := p.claim(ref, 3, policy, start)
	emptied := p.ack(ref, old, policy, start)
	require.True(t, emptied.Empty())
	require.True(t, p.empty(ref))

	again := part(ref, policy, start+second, 4, 2, 10)
	again.Life = "two"
	a := p.append(start+second, again)[0]
	switch a.Life { // the store may have forgotten the group, or not
	case "two":
		require.Equal(t, uint64(1), a.First)
	case "one":
		require.Equal(t, uint64(4), a.First)
	default:
		require.Fail(t, "a life that nobody gave", "%q", a.Life)
	}
	require.True(t, a.Armed, "its first item opens it anew")
	require.Equal(t, start+4*second, a.CheckAt)
	require.Equal(t, []string{"k-4", "k-5"}, ids(p.all(ref, a.First, a.First+1, 0)), "and none of its old life's")

	_, err := p.s.Update(context.Background(), ref, nil, func(g *core.Group) error {
		return g.Ack(old.ID, old.Lease, policy, start)
	})
	require.Equal(t, core.Conflict, core.CodeOf(err), "settling a claim of the old life: %v", err)
	p.reopen()
	g := p.group(ref)
	require.Equal(t, a.Life, g.Life)
	require.Equal(t, uint64(2), g.Pending())
	require.Equal(t, int64(20), g.PendingBytes())
}

func updateRevision(t *testing.T, p *probe) {
	ref, policy := core.Ref{Buffer: "b", Key: "k"}, calm()
	p.append(start, part(ref, policy, start, 1, 3, 10))
	rev := p.group(ref).Rev
	p.append(start, part(ref, policy, start, 4, 3, 10))
	require.Equal(t, rev, p.group(ref).Rev, "an append leaves it")
	for range 3 {
		p.claim(ref, 1, policy, start)
		now := p.group(ref).Rev
		require.Greater(t, now, rev)
		rev = now
	}
}
