package storetest

import (
	"cmp"
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

var rowTests = []test{
	{"rows that are settled stay so", rowsSettled},
	{"a claim may be of 100,000 items", rowsOfMany},
}

func rowsSettled(t *testing.T, p *probe) {
	ref, policy := core.Ref{Buffer: "b", Key: "k"}, window()
	p.append(start, part(ref, policy, start, 1, 9, 10))
	want := p.shut(ref, policy, start)
	now := start
	apply := func(what string, fn func(*core.Group) error) {
		t.Helper()
		require.NoError(t, fn(&want), what)
		sameRecord(t, want, p.update(ref, fn), what+", answered")
		sameRecord(t, want, p.group(ref), what+", stored")
		p.reopen()
		if p.h.Abandons {
			want.Abandon()
		}
		sameRecord(t, want, p.group(ref), what+", reopened")
	}
	var c core.Claim
	take := core.Taking{From: 1, To: 9, Through: 90, Items: 9, Reason: core.ReasonWindow, Fold: "by é"}
	apply("claim", func(g *core.Group) (err error) { c, err = g.Claim(take, policy, now); return err })
	require.Equal(t, "by é", c.Fold)
	for _, sent := range []int{50, 100_000} {
		apply("advance", func(g *core.Group) error { return g.Advance(c.ID, c.Lease, c.Fold, sent, policy, now) })
		require.Equal(t, sent, want.Claims[0].Sent)
	}
	apply("release", func(g *core.Group) error { return g.Release(c.ID, c.Lease, now+600*second, "no", policy, now) })
	apply("hasten", func(g *core.Group) error { g.Hasten(c.ID, now+second); return nil })
	require.Equal(t, []core.Millis{now + second}, p.due(now + second)[ref], "it is due")
	now += second
	apply("recover", func(g *core.Group) (err error) { c, err = g.Recover(c.ID, policy, now); return err })
	require.Equal(t, 100_000, c.Sent)
	apply("advance, by others", func(g *core.Group) error { return g.Advance(c.ID, c.Lease, "other", 1, policy, now) })
	require.Equal(t, "other", want.Claims[0].Fold)
	late := c.Lease - 2
	_, err := p.s.Update(context.Background(), ref, nil, func(g *core.Group) error {
		return g.Advance(c.ID, late, "other", 2, policy, now)
	})
	require.Equal(t, core.Conflict, core.CodeOf(err), "of a lease that has passed: %v", err)
	sameRecord(t, want, p.group(ref), "after that")
	p.ack(ref, c, policy, now)
	require.True(t, p.late(ref, policy, now))
}

func rowsOfMany(t *testing.T, p *probe) {
	const items, request = 100_100, 1001
	ref, policy := core.Ref{Buffer: "b", Key: "k"}, window()
	for n := 1; n <= items; n += request {
		p.append(start, part(ref, policy, start, n, request, 1))
	}
	p.append(start+second, part(ref, policy, start+second, items+1, 1, 1))
	p.shut(ref, policy, start+second)
	page := p.items(ref, core.Span{From: items - 9, To: items, MaxItems: 10})
	require.Len(t, page.Items, 10)
	var c core.Claim
	g := p.update(ref, func(g *core.Group) (err error) {
		c, err = g.Claim(core.Taking{From: 1, To: items, Through: page.Through, Items: items, NextAt: page.NextAt,
			Mark: page.Mark, Reason: core.ReasonWindow, Fold: "rows"}, policy, start+second)
		return err
	})
	require.Equal(t, uint64(1), g.Pending())
	check := func(from uint64) {
		t.Helper()
		g := p.group(ref)
		span := core.Span{From: from, To: c.To, MaxItems: 10_000, MaxBytes: 7000}
		for span.From <= span.To {
			page, err := p.s.Items(context.Background(), ref, &g, span)
			require.NoError(t, err)
			require.LessOrEqual(t, len(page.Items), 7000)
			require.Len(t, page.Items, int(page.End+1-span.From))
			require.Greater(t, page.End, span.From, "a page that gets nowhere")
			for i := range page.Items {
				if want := fmt.Sprint("k-", page.Items[i].Seq); page.Items[i].ID != want || page.Items[i].Seq != span.From+uint64(i) {
					require.Fail(t, "another item", "%s at %d, not %s", page.Items[i].ID, page.Items[i].Seq, want)
				}
			}
			require.Equal(t, int64(page.End), page.Through)
			require.NotZero(t, page.NextAt, "something is behind every page")
			span.From, span.Mark = page.End+1, cmp.Or(page.Mark, page.End+1)
		}
	}
	check(1)
	p.update(ref, func(g *core.Group) error { return g.Advance(c.ID, c.Lease, "rows", 777, policy, start+second) })
	p.reopen()
	check(99_001)
	require.Equal(t, 777, p.group(ref).Claims[0].Sent)
	require.Equal(t, int64(items), p.stats()["b"].Claimed)
	p.ack(ref, c, policy, start+second)
	require.Equal(t, []string{fmt.Sprint("k-", items+1)}, ids(p.pending(ref)))
}
