package storetest

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sluice/core"
)

// pair is the store under test and the model, which take the same calls. A
// call names claims by their place in the group's record, as each store may
// give the group another life.
type pair struct {
	t       rapid.TB
	store   *probe
	model   *probe
	buffers []string
}

func newPair(t rapid.TB, outer testing.TB, h *Harness, buffers ...string) *pair {
	return &pair{
		t: t, buffers: buffers,
		store: &probe{t: t, h: h, s: h.Open(outer), outer: outer},
		model: &probe{t: t, h: &Harness{}, s: h.Model(), outer: outer},
	}
}

func (d *pair) close() {
	for _, p := range []*probe{d.store, d.model} {
		if err := p.s.Close(); err != nil {
			d.t.Errorf("close: %v", err)
		}
	}
}

// compare checks that both stores look the same.
func (d *pair) compare(after string) {
	d.t.Helper()
	same(d.t, observe(d.model, d.buffers...), observe(d.store, d.buffers...), "after "+after)
}

// crash reopens the store; the model only has its leases ended, if the
// store's have.
func (d *pair) crash() {
	d.t.Helper()
	d.store.reopen()
	if !d.store.h.Abandons {
		return
	}
	for _, b := range d.buffers {
		for _, g := range d.model.groups(b, 100) {
			d.model.update(g.Ref, func(g *core.Group) error { g.Abandon(); return nil })
		}
	}
}

// both makes the same call to both stores: their errors must be of one kind.
func (d *pair) both(what string, call func(core.Store) error) {
	d.t.Helper()
	want, got := call(d.model.s), call(d.store.s)
	require.Equal(d.t, want == nil, got == nil, "%s: the model says %v, the store %v", what, want, got)
	if want != nil {
		require.Equal(d.t, core.CodeOf(want), core.CodeOf(got), "%s: the model says %v, the store %v", what, want, got)
	}
}

func (d *pair) append(now core.Millis, parts ...core.Part) {
	d.t.Helper()
	var sized []string
	for i := range parts {
		if parts[i].Size > 0 {
			sized = append(sized, parts[i].Ref.Buffer)
		}
	}
	d.store.settle(sized...)
	if d.store.h.Gaps && len(parts) > 1 && d.refuses(now, parts) {
		return // which numbers that would use up is the store's own; see limitAtomic
	}
	var answers [][]core.Appended
	d.both("append", func(s core.Store) error {
		a, err := s.Append(context.Background(), now, parts)
		if err != nil {
			return err
		}
		for i := range a {
			g, err := s.Group(context.Background(), parts[i].Ref)
			if err != nil {
				return err
			}
			require.Equal(d.t, g.Life, a[i].Life, "life answered for part %d", i)
			require.Equal(d.t, g.Rev, a[i].Rev, "revision answered for part %d", i)
			a[i].First, a[i].Life, a[i].Rev = g.Tail-a[i].First, "", 0
		}
		answers = append(answers, a)
		return nil
	})
	if len(answers) == 2 {
		same(d.t, answers[0], answers[1], "answer to an append, first numbers counted back from the tail")
	}
}

// refuses reports whether the model has no room for all of some parts.
func (d *pair) refuses(now core.Millis, parts []core.Part) bool {
	next := map[core.Ref]*core.Group{}
	held := map[string]int64{}
	for b, s := range d.model.stats() {
		held[b] = s.Pending + s.Claimed
	}
	for i := range parts {
		p := &parts[i]
		if next[p.Ref] == nil {
			g := d.model.group(p.Ref)
			next[p.Ref] = &g
		}
		if _, err := next[p.Ref].Append(len(p.Events), 0, p.Life, p.Policy, now); err != nil {
			return true
		}
		held[p.Ref.Buffer] += int64(len(p.Events))
		if p.Size > 0 && held[p.Ref.Buffer] > p.Size {
			return true
		}
	}
	return false
}

func (d *pair) update(what string, ref core.Ref, fn func(*core.Group) error) {
	d.t.Helper()
	d.both(what, func(s core.Store) error {
		_, err := s.Update(context.Background(), ref, nil, fn)
		return err
	})
}

func (d *pair) claim(ref core.Ref, n int, policy *core.Policy, now core.Millis) {
	d.t.Helper()
	d.both("claim", func(s core.Store) error {
		_, _, err := claim(s, ref, n, policy, now)
		return err
	})
}

// settle makes a transition of the i-th claim of a group; it does nothing
// when there is none.
func (d *pair) settle(what string, ref core.Ref, i int, fn func(*core.Group, core.Claim) error) {
	d.t.Helper()
	d.update(what, ref, func(g *core.Group) error {
		if i >= len(g.Claims) {
			return nil
		}
		c := g.Claims[i]
		c.Done = slices.Clone(c.Done)
		return fn(g, c)
	})
}

func (d *pair) ack(ref core.Ref, i int, policy *core.Policy, now core.Millis) {
	d.t.Helper()
	d.settle("ack", ref, i, func(g *core.Group, c core.Claim) error { return g.Ack(c.ID, c.Lease, policy, now) })
}

func (d *pair) release(ref core.Ref, i int, due core.Millis, policy *core.Policy, now core.Millis) {
	d.t.Helper()
	d.settle("release", ref, i, func(g *core.Group, c core.Claim) error {
		return g.Release(c.ID, c.Lease, due, "no answer", policy, now)
	})
}

func (d *pair) recover(ref core.Ref, i int, policy *core.Policy, now core.Millis) {
	d.t.Helper()
	d.settle("recover", ref, i, func(g *core.Group, c core.Claim) error {
		_, err := g.Recover(c.ID, policy, now)
		return err
	})
}

func (d *pair) shrink(ref core.Ref, i int, failed core.Bits, due core.Millis, policy *core.Policy, now core.Millis) {
	d.t.Helper()
	d.settle("shrink", ref, i, func(g *core.Group, c core.Claim) error {
		return g.Shrink(c.ID, c.Lease, failed, due, "refused in part", policy, now)
	})
}
