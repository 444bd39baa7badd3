package storetest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

var windowTests = []test{
	{"a closed group takes no more of its window", windowRefuses},
	{"beside a closed part, what has a number is stored and nothing else", windowBeside},
	{"a closed group takes what is of no window", windowTakesPlain},
	{"a closed group that is drained is kept", windowKept},
	{"a closed group that is drained is forgotten in its time", windowForgotten},
	{"a closed group that is not drained is kept beyond its time", windowOutlives},
	{"32 writers and a closer: what has a number is there, and nothing after", windowRace},
}

// window is calm settings of a time window.
func window() *core.Policy {
	p := calm()
	p.ShipAt, p.KeptUntil = start+5*second, start+1_000_000*second
	return p
}

// shut closes a group.
func (p *probe) shut(ref core.Ref, policy *core.Policy, now core.Millis) core.Group {
	p.t.Helper()
	g := p.update(ref, func(g *core.Group) error { g.Close(policy.KeptUntil, policy, now); return nil })
	require.Equal(p.t, policy.KeptUntil, g.Closed)
	return g
}

// drained is a window whose n items have been shipped.
func (p *probe) drained(ref core.Ref, policy *core.Policy, n int) {
	p.t.Helper()
	p.append(start, part(ref, policy, start, 1, n, 10))
	p.shut(ref, policy, start+5*second)
	p.ack(ref, p.claim(ref, n, policy, start+5*second), policy, start+5*second)
	require.True(p.t, p.empty(ref))
}

// late appends one item to a window. It reports whether that is closed.
func (p *probe) late(ref core.Ref, policy *core.Policy, now core.Millis) bool {
	p.t.Helper()
	a := p.append(now, part(ref, policy, now, 1000, 1, 10))[0]
	require.Equal(p.t, a.Closed, a.First == 0, "an answer is a number or that the group is closed: %+v", a)
	if a.Closed {
		require.Equal(p.t, core.Appended{Closed: true}, a)
	}
	return a.Closed
}

func windowRefuses(t *testing.T, p *probe) {
	ref, policy := core.Ref{Buffer: "b", Key: "k"}, window()
	a := p.append(start, part(ref, policy, start, 1, 3, 10))[0]
	require.Equal(t, core.Appended{First: 1, Armed: true, CheckAt: start + 5*second, Life: lifeOf(ref)}, a)
	closed := p.shut(ref, policy, start+second)
	require.Equal(t, start+second, closed.CheckAt, "it is due")

	check := func() {
		for range 2 {
			require.True(t, p.late(ref, policy, start+2*second))
		}
		sameRecord(t, closed, p.group(ref), "record")
		require.Equal(t, []string{"k-1", "k-2", "k-3"}, ids(p.pending(ref)))
		require.Equal(t, []core.Millis{start + second}, p.due(start + 100*second)[ref])
		same(t, map[string]core.BufferStats{"b": {Buffer: "b", Groups: 1, Pending: 3, Bytes: 30, Oldest: start}}, p.stats(), "stats")
	}
	check()
	p.reopen()
	check()
	again := window()
	again.KeptUntil += second
	g := p.update(ref, func(g *core.Group) error { g.Close(again.KeptUntil, again, start+2*second); return nil })
	require.Equal(t, policy.KeptUntil, g.Closed, "it stays closed as it was")
	c := p.claim(ref, 2, policy, start+3*second)
	require.True(t, p.late(ref, policy, start+3*second))
	p.ack(ref, c, policy, start+3*second)
	require.Equal(t, []string{"k-3"}, ids(p.pending(ref)))
}

func windowBeside(t *testing.T, p *probe) {
	shut, policy := core.Ref{Buffer: "b", Key: "shut"}, window()
	gone := core.Ref{Buffer: "b", Key: "gone"}
	p.append(start, part(shut, policy, start, 1, 1, 10))
	p.shut(shut, policy, start)
	p.drained(gone, policy, 2)
	before := p.group(shut)
	for i, order := range [][]string{
		{"a", "shut"}, {"shut", "a"}, {"a", "shut", "b"}, {"shut", "a", "shut", "b"}, {"gone", "a"},
		{"a", "gone", "shut", "a"}, {"gone", "shut"}, {"other buffer", "shut", "a"},
	} {
		name := fmt.Sprintf("request %d, of %v", i, order)
		var parts []core.Part
		wanted := map[core.Ref][]string{}
		for j, key := range order {
			ref := core.Ref{Buffer: "b", Key: key}
			if key != "shut" && key != "gone" {
				ref.Key = fmt.Sprint(i, key)
			}
			if key == "other buffer" {
				ref.Buffer = "c"
			}
			parts = append(parts, part(ref, policy, start, 10*j, 2, 10))
			if ref != shut && ref != gone {
				wanted[ref] = append(wanted[ref], ids(itemsOf(parts[j].Events))...)
			}
		}
		for j, a := range p.finish(start, parts) {
			require.Equal(t, order[j] == "shut" || order[j] == "gone", a.Closed, "%s, part %d", name, j)
		}
		for ref, want := range wanted {
			require.Equal(t, want, ids(p.pending(ref)), "%s: %v", name, ref)
		}
		sameRecord(t, before, p.group(shut), name)
		require.True(t, p.empty(gone), name)
	}
}

// itemsOf makes items of events.
func itemsOf(events []core.Event) []core.Item {
	items := make([]core.Item, len(events))
	for i := range events {
		items[i].Event = events[i]
	}
	return items
}

// finish appends parts of which some may be closed, and then those again that
// the store has left out with them. It checks that nothing of these was there.
func (p *probe) finish(now core.Millis, parts []core.Part) []core.Appended {
	p.t.Helper()
	answers := p.append(now, parts...)
	left, of := leftOut(parts, answers)
	if len(left) == 0 {
		return answers
	}
	for i := range left {
		for _, item := range p.pending(left[i].Ref) {
			require.NotEqual(p.t, left[i].Events[0].ID, item.ID, "stored without a number")
		}
	}
	for i, a := range p.append(now, left...) {
		require.NotZero(p.t, a.First, "what was left out is stored alone")
		answers[of[i]] = a
	}
	return answers
}

// leftOut are the parts of which it is not said what became of them, and which
// they are.
func leftOut(parts []core.Part, answers []core.Appended) (left []core.Part, of []int) {
	for i := range answers {
		if a := &answers[i]; a.First == 0 && !a.Closed && !a.Shed && len(a.Doubles) < len(parts[i].Events) {
			left, of = append(left, parts[i]), append(of, i)
		}
	}
	return left, of
}

func windowTakesPlain(t *testing.T, p *probe) {
	waits, gone, policy, plain := core.Ref{Buffer: "b", Key: "waits"}, core.Ref{Buffer: "b", Key: "gone"}, window(), calm()
	p.append(start, part(waits, policy, start, 1, 2, 10))
	p.shut(waits, policy, start)
	a := p.append(start+second, part(waits, plain, start+second, 3, 1, 10))[0]
	require.Equal(t, uint64(3), a.First)
	require.Equal(t, []string{"waits-1", "waits-2", "waits-3"}, ids(p.pending(waits)))

	p.drained(gone, policy, 2)
	for round := range 3 { // its life may go on, or begin anew
		a = p.append(start+6*second, part(gone, plain, start+6*second, 3, 2, 10))[0]
		require.NotZero(t, a.First)
		require.False(t, a.Closed)
		require.True(t, a.Armed, "its first item opens it anew")
		require.True(t, p.late(gone, policy, start+6*second), "it is still closed")
		require.Equal(t, policy.KeptUntil, p.group(gone).Closed)
		if round == 1 {
			p.reopen()
		}
		require.Equal(t, []string{"gone-3", "gone-4"}, ids(p.pending(gone)))
		require.Len(t, p.groups("b", 10), 2)
		c := p.claim(gone, 5, plain, start+7*second)
		p.ack(gone, c, plain, start+7*second)
		require.True(t, p.empty(gone))
		require.True(t, p.late(gone, policy, start+7*second))
	}
}

func windowKept(t *testing.T, p *probe) {
	policy := window()
	var refs []core.Ref
	for i := range 10 {
		refs = append(refs, core.Ref{Buffer: fmt.Sprint("b", i%2), Key: fmt.Sprint(i)})
		p.drained(refs[i], policy, i+1)
	}
	live := core.Ref{Buffer: "b0", Key: "live"}
	p.append(start, part(live, policy, start, 1, 1, 10))
	for range 2 {
		for _, ref := range refs {
			require.True(t, p.late(ref, policy, policy.KeptUntil-1), "%v", ref)
			g := p.group(ref)
			require.Equal(t, policy.KeptUntil, g.Closed)
			require.True(t, g.Empty())
			require.Zero(t, g.CheckAt)
		}
		require.Len(t, p.groups("b0", 3), 1, "it is not listed")
		require.Empty(t, p.groups("b1", 3))
		same(t, map[core.Ref][]core.Millis{live: {start + 5*second}}, p.due(policy.KeptUntil+second), "due")
		same(t, map[string]core.BufferStats{"b0": {Buffer: "b0", Groups: 1, Pending: 1, Bytes: 10, Oldest: start}}, p.stats(), "stats")
		p.reopen()
	}
}

func windowForgotten(t *testing.T, p *probe) {
	early, later := window(), window()
	early.KeptUntil = start + 100*second
	one, two, three := core.Ref{Buffer: "b", Key: "1"}, core.Ref{Buffer: "b", Key: "2"}, core.Ref{Buffer: "c", Key: "1"}
	p.drained(two, later, 1)
	p.drained(one, early, 3)
	p.drained(three, early, 1)
	require.True(t, p.late(one, early, early.KeptUntil-1))
	p.reopen()
	p.forget(early.KeptUntil)
	require.Zero(t, p.group(one).Closed)
	require.False(t, p.late(one, early, early.KeptUntil), "it begins anew")
	g := p.group(one)
	require.Zero(t, g.Closed)
	require.Equal(t, uint64(1), g.Tail)
	require.Equal(t, []string{"1-1000"}, ids(p.pending(one)), "and with none of its old life's")
	require.True(t, p.late(two, later, early.KeptUntil), "another's time has not come")
	p.reopen()
	require.False(t, p.late(one, early, early.KeptUntil))
	require.False(t, p.late(three, early, early.KeptUntil))
	require.True(t, p.late(two, later, early.KeptUntil))
	c := p.claim(one, 2, early, early.KeptUntil)
	p.ack(one, c, early, early.KeptUntil)
	p.reopen()
	require.False(t, p.late(one, early, early.KeptUntil), "it was not closed again")
}

func windowOutlives(t *testing.T, p *probe) {
	ref, policy := core.Ref{Buffer: "b", Key: "k"}, window()
	policy.KeptUntil = start + 100*second
	p.append(start, part(ref, policy, start, 1, 3, 10))
	p.shut(ref, policy, start)
	c := p.claim(ref, 1, policy, start)
	p.forget(start + 200*second)
	require.True(t, p.late(ref, policy, start+200*second))
	require.Equal(t, []string{"k-2", "k-3"}, ids(p.pending(ref)))
	rest := p.claim(ref, 2, policy, start)
	p.ack(ref, rest, policy, start)
	p.forget(start + 200*second)
	require.Equal(t, []string{"k-1"}, ids(p.all(ref, c.From, c.To, 0)), "what a claim holds is not forgotten")
	p.ack(ref, c, policy, start)
	p.forget(start + 200*second)
	require.False(t, p.late(ref, policy, start+200*second))
}

// windowWriter appends requests to a window, and to a group of its own beside
// it, until the window is closed: after some it says that it has begun, and
// after many it waits for that. It returns what it was told is stored in each,
// and the greatest number in the window.
func windowWriter(t *testing.T, s core.Store, ref core.Ref, w int, begun func(), shut <-chan struct{}) (shared, own []string, last uint64) {
	defer begun()
	mine, policy := core.Ref{Buffer: ref.Buffer, Key: fmt.Sprintf("of writer %d", w)}, window()
	for r := 0; !t.Failed(); r++ {
		if r == 30 {
			<-shut
		}
		parts := []core.Part{{Ref: ref, Life: fmt.Sprintf("life%d", w), Policy: policy}, part(mine, policy, start, r, 1, 1)}
		for i := range r%3 + 1 {
			parts[0].Events = append(parts[0].Events, event(fmt.Sprintf("%d-%d-%d", w, r, i), start, 10*i))
		}
		if r%2 == 0 {
			slices.Reverse(parts)
		}
		answers, err := s.Append(context.Background(), start, parts)
		if err != nil {
			t.Errorf("append of writer %d: %v", w, err)
			break
		}
		closed := false
		for i, a := range answers {
			events := ids(itemsOf(parts[i].Events))
			switch {
			case parts[i].Ref == mine && a.First != 0:
				own = append(own, events...)
			case a.Closed:
				shared, closed = append(shared, events[:a.Stored]...), true
			case parts[i].Ref == ref && a.First != 0:
				shared, last = append(shared, events...), a.First+uint64(len(events))-1
			}
		}
		if closed {
			return shared, own, last
		}
		if r == 5 {
			begun()
		}
	}
	return shared, own, last
}

func windowRace(t *testing.T, p *probe) {
	ref, policy := core.Ref{Buffer: "b", Key: "shared"}, window()
	p.append(start, part(ref, policy, start, 1, 1, 1))
	var shared, own [writers][]string
	var last [writers]uint64
	var wg, begun sync.WaitGroup
	begun.Add(writers)
	shut := make(chan struct{})
	isShut := sync.OnceFunc(func() { close(shut) })
	defer isShut()
	for w := range writers {
		wg.Go(func() {
			shared[w], own[w], last[w] = windowWriter(t, p.s, ref, w, sync.OnceFunc(begun.Done), shut)
		})
	}
	begun.Wait()
	closed := p.shut(ref, policy, start)
	isShut()
	wg.Wait()

	check := func() {
		want := []string{"shared-1"}
		for w := range writers {
			require.LessOrEqual(t, last[w], closed.Tail, "a number from after the close")
			want = append(want, shared[w]...)
			require.Equal(t, own[w], ids(p.pending(core.Ref{Buffer: "b", Key: fmt.Sprintf("of writer %d", w)})))
		}
		slices.Sort(want)
		require.Equal(t, want, slices.Sorted(slices.Values(ids(p.pending(ref)))), "what was numbered, once")
		require.Equal(t, closed.Tail, p.group(ref).Tail)
	}
	check()
	p.reopen()
	check()
}
