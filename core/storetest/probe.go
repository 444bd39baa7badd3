package storetest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sluice/core"
)

// start is when the fixtures' time begins, well after 1970.
const start core.Millis = 1_700_000_000_000

const second core.Millis = 1000

// calm is a policy under which nothing but time makes a group due.
func calm() *core.Policy {
	return &core.Policy{
		MaxItems: 10_000, MaxBytes: 1 << 30, IdleTimeout: 3 * time.Second, MaxWait: 10 * time.Second,
		CapBytes: 1 << 30, Concurrency: core.MaxClaims, Lease: time.Minute, MaxHold: time.Hour,
	}
}

// probe is a store under test. Its methods fail the test when a call fails
// that must not; they are for the test's own goroutine.
type probe struct {
	t     rapid.TB
	h     *Harness
	s     core.Store
	outer testing.TB // what the harness gets
}

// open opens a new store and closes it at the end of the test.
func open(t testing.TB, h *Harness) *probe {
	t.Helper()
	p := &probe{t: t, h: h, s: h.Open(t), outer: t}
	t.Cleanup(func() {
		if err := p.s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return p
}

// reopen crashes the store, unless it is closed, and opens it again.
func (p *probe) reopen() {
	p.t.Helper()
	p.s = p.h.Reopen(p.outer, p.s)
}

func (p *probe) settle(sized ...string) {
	if p.h.Settle != nil {
		p.h.Settle(p.outer, p.s, sized)
	}
}

// forget passes a time until which a store keeps something.
func (p *probe) forget(now core.Millis) {
	p.t.Helper()
	if p.h.Forget != nil {
		p.h.Forget(p.outer, p.s, now)
		return
	}
	p.append(now, part(core.Ref{Buffer: "another", Key: fmt.Sprint(now)}, calm(), now, 1, 1, 1))
}

func (p *probe) append(now core.Millis, parts ...core.Part) []core.Appended {
	p.t.Helper()
	a, err := p.s.Append(context.Background(), now, parts)
	require.NoError(p.t, err, "append")
	require.Len(p.t, a, len(parts), "an answer for each part")
	return a
}

// refused is the error of an append that must fail.
func (p *probe) refused(now core.Millis, parts ...core.Part) error {
	p.t.Helper()
	a, err := p.s.Append(context.Background(), now, parts)
	require.Error(p.t, err, "append answered %+v", a)
	return err
}

func (p *probe) group(ref core.Ref) core.Group {
	p.t.Helper()
	g, err := p.s.Group(context.Background(), ref)
	require.NoError(p.t, err, "group")
	return g
}

func (p *probe) empty(ref core.Ref) bool {
	p.t.Helper()
	g := p.group(ref)
	return g.Empty()
}

func (p *probe) update(ref core.Ref, fn func(*core.Group) error) core.Group {
	p.t.Helper()
	g, err := p.s.Update(context.Background(), ref, nil, fn)
	require.NoError(p.t, err, "update")
	return g
}

func (p *probe) items(ref core.Ref, span core.Span) core.Page {
	p.t.Helper()
	g := p.group(ref)
	page, err := p.s.Items(context.Background(), ref, &g, span)
	require.NoError(p.t, err, "items")
	require.Len(p.t, page.Offsets, len(page.Items), "an offset for each item")
	return page
}

// all reads a span page by page, of at most so many payload bytes each.
func (p *probe) all(ref core.Ref, from, to uint64, pageBytes int64) []core.Item {
	p.t.Helper()
	var all []core.Item
	for from <= to {
		page := p.items(ref, core.Span{From: from, To: to, MaxBytes: pageBytes})
		all = append(all, page.Items...)
		require.GreaterOrEqual(p.t, page.End, from, "a page that gets nowhere")
		from = page.End + 1
	}
	return all
}

// pending is a group's pending items.
func (p *probe) pending(ref core.Ref) []core.Item {
	p.t.Helper()
	g := p.group(ref)
	return p.all(ref, g.Head+1, g.Tail, 0)
}

// drop takes the void numbers off a group that holds no items.
func (p *probe) drop(ref core.Ref, policy *core.Policy) {
	p.t.Helper()
	if g := p.group(ref); g.Pending() > 0 {
		p.claim(ref, policy.MaxItems, policy, start)
	}
}

// due is what is due at a time: for each group the times it is listed under.
func (p *probe) due(before core.Millis) map[core.Ref][]core.Millis {
	p.t.Helper()
	p.settle()
	due := map[core.Ref][]core.Millis{}
	for h, err := range p.s.Due(context.Background(), before) {
		require.NoError(p.t, err, "due")
		require.LessOrEqual(p.t, h.At, before, "%v is not due", h.Ref)
		require.Equal(p.t, p.group(h.Ref).Life, h.Life, "life of %v", h.Ref)
		due[h.Ref] = append(due[h.Ref], h.At)
	}
	return due
}

// groups lists a buffer, so many groups at a time.
func (p *probe) groups(buffer string, limit int) []core.NamedGroup {
	p.t.Helper()
	p.settle()
	var all []core.NamedGroup
	var after *string
	for {
		page, err := p.s.Groups(context.Background(), buffer, after, limit)
		require.NoError(p.t, err, "groups")
		require.LessOrEqual(p.t, len(page), limit, "groups in a page")
		if len(page) == 0 {
			return all
		}
		all = append(all, page...)
		after = &page[len(page)-1].Ref.Key
	}
}

func (p *probe) stats() map[string]core.BufferStats {
	p.t.Helper()
	p.settle()
	list, err := p.s.Stats(context.Background())
	require.NoError(p.t, err, "stats")
	stats := map[string]core.BufferStats{}
	for _, b := range list {
		require.NotContains(p.t, stats, b.Buffer, "a buffer twice")
		stats[b.Buffer] = b
	}
	return stats
}

// claim takes the next n items of a group.
func (p *probe) claim(ref core.Ref, n int, policy *core.Policy, now core.Millis) core.Claim {
	p.t.Helper()
	c, _, err := claim(p.s, ref, n, policy, now)
	require.NoError(p.t, err, "claim")
	return c
}

func (p *probe) ack(ref core.Ref, c core.Claim, policy *core.Policy, now core.Millis) core.Group {
	p.t.Helper()
	return p.update(ref, func(g *core.Group) error { return g.Ack(c.ID, c.Lease, policy, now) })
}

// claim takes the next n items of a group, or as many as there are. It
// returns the claim, and the group with it.
func claim(s core.Store, ref core.Ref, n int, policy *core.Policy, now core.Millis) (core.Claim, core.Group, error) {
	t, life, err := taking(s, ref, n)
	if err != nil {
		return core.Claim{}, core.Group{}, err
	}
	return openClaim(s, ref, t, life, policy, now)
}

// openClaim claims what was read of a life of the group. Another life's numbers
// stand for other items.
func openClaim(s core.Store, ref core.Ref, t core.Taking, life string, policy *core.Policy, now core.Millis) (c core.Claim, g core.Group, err error) {
	g, err = s.Update(context.Background(), ref, nil, func(g *core.Group) (err error) {
		if g.Life != life {
			return core.Errorf(core.Conflict, "the group has begun anew")
		}
		c, err = g.Claim(t, policy, now)
		return err
	})
	return c, g, err
}

// taking is the prefix of at most n items that a group could hand out next,
// and the life that it was read of.
func taking(s core.Store, ref core.Ref, n int) (core.Taking, string, error) {
	ctx := context.Background()
	g, err := s.Group(ctx, ref)
	if err != nil {
		return core.Taking{}, "", err
	}
	from := g.Head + 1
	page, err := s.Items(ctx, ref, &g, core.Span{From: from, To: g.Tail, MaxItems: n})
	if err != nil {
		return core.Taking{}, "", err
	}
	return core.Taking{From: from, To: page.End, Through: page.Through, Items: len(page.Items),
		NextAt: page.NextAt, Mark: page.Mark, Reason: core.ReasonItems}, g.Life, nil
}
