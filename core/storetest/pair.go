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
	closed  []core.Ref // groups of which it is also compared until when they are closed
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
	for _, ref := range d.closed {
		require.Equal(d.t, d.model.group(ref).Closed, d.store.group(ref).Closed, "until when %v is closed, after %s", ref, after)
	}
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
	if full, closed := d.foresee(now, parts); full && (closed || d.store.h.Gaps && len(parts) > 1) {
		return // which of the two is told, or which numbers that would use up, is the store's own; see limitAtomic
	}
	var answers [][]core.Appended
	d.both("append", func(s core.Store) error {
		a, err := appendAll(s, now, parts)
		if err != nil {
			return err
		}
		for i := range a {
			if a[i].Closed || a[i].First == 0 {
				continue
			}
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

// appendAll appends parts of which some may be closed, and then what the store
// has left out with those, as it may.
func appendAll(s core.Store, now core.Millis, parts []core.Part) ([]core.Appended, error) {
	answers, err := s.Append(context.Background(), now, parts)
	if err != nil {
		return nil, err
	}
	left, of := leftOut(parts, answers)
	if len(left) == 0 {
		return answers, nil
	}
	again, err := s.Append(context.Background(), now, left)
	for i := range again {
		answers[of[i]] = again[i]
	}
	return answers, err
}

// foresee reports whether the model has no room for all of some parts, closed
// ones included, and whether it has closed some.
func (d *pair) foresee(now core.Millis, parts []core.Part) (full, closed bool) {
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
		n := len(p.Events)
		if p.Shed && p.Size > 0 {
			n = p.Fitting(nil, p.Size-held[p.Ref.Buffer])
		}
		if n == 0 {
			continue
		}
		a, err := next[p.Ref].Append(n, 0, p.Life, p.Policy, now)
		held[p.Ref.Buffer] += int64(n)
		full = full || err != nil || p.Size > 0 && held[p.Ref.Buffer] > p.Size
		closed = closed || a.Closed
	}
	return full, closed
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

func (d *pair) advance(ref core.Ref, i int, fold string, sent int, policy *core.Policy, now core.Millis) {
	d.t.Helper()
	d.settle("advance", ref, i, func(g *core.Group, c core.Claim) error {
		return g.Advance(c.ID, c.Lease, fold, sent, policy, now)
	})
}

func (d *pair) hasten(ref core.Ref, i int, now core.Millis) {
	d.t.Helper()
	d.settle("hasten", ref, i, func(g *core.Group, c core.Claim) error { g.Hasten(c.ID, now); return nil })
}

func (d *pair) postpone(ref core.Ref, i int, due core.Millis, token bool, policy *core.Policy, now core.Millis) {
	d.t.Helper()
	d.settle("postpone", ref, i, func(g *core.Group, c core.Claim) error {
		return g.Postpone(c.ID, c.Lease, due, token, policy, now)
	})
}

func (d *pair) fall(ref core.Ref, i int, policy *core.Policy, now core.Millis) {
	d.t.Helper()
	d.settle("fall", ref, i, func(g *core.Group, c core.Claim) error { return g.Fall(c.ID, c.Lease, policy, now) })
}

// putOff makes a claim that nobody sends wait.
func (d *pair) putOff(ref core.Ref, i int, due core.Millis, policy *core.Policy, now core.Millis) {
	d.t.Helper()
	d.settle("defer", ref, i, func(g *core.Group, c core.Claim) error { return g.Defer(c.ID, due, policy, now) })
}

// hold notes until when a group's first pending item is held, if there is one.
func (d *pair) hold(ref core.Ref, at core.Millis, policy *core.Policy, now core.Millis) {
	d.t.Helper()
	d.update("hold", ref, func(g *core.Group) error {
		if g.Pending() > 0 {
			g.HoldUntil(g.Head+1, at, policy, now)
		}
		return nil
	})
}

// shut closes a group, if there is anything in it.
func (d *pair) shut(ref core.Ref, policy *core.Policy, now core.Millis) {
	d.t.Helper()
	d.update("close", ref, func(g *core.Group) error {
		if !g.Empty() {
			g.Close(policy.KeptUntil, policy, now)
		}
		return nil
	})
}

func (d *pair) shrink(ref core.Ref, i int, failed core.Bits, due core.Millis, policy *core.Policy, now core.Millis) {
	d.t.Helper()
	d.settle("shrink", ref, i, func(g *core.Group, c core.Claim) error {
		return g.Shrink(c.ID, c.Lease, failed, due, "refused in part", policy, now)
	})
}
