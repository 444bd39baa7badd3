package storetest

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

var dedupeTests = []test{
	{"an event that is sent again is left out", dedupeAgain},
	{"an event that is twice in a request is stored once", dedupeTwice},
	{"an event that is settled is still known", dedupeSettled},
	{"an event is known for the window, and then anew", dedupeExpiry},
	{"an event whose window lasts is known by a clock that is set back", dedupeBack},
	{"beside doubles, all the rest is stored and armed", dedupeBeside},
	{"an event that was refused is not known", dedupeRefused},
	{"an event that met a closed group is not known", dedupeClosed},
	{"an event of an awkward id is known", dedupeIDs},
	{"an event that is held is known to its buffer, and the other way round", dedupeHeld},
	{"32 writers of the same events store each once", dedupeRace},
}

const dedupeWindow = 10 * time.Minute

// once is a part that leaves out what was stored within the window.
func once(p core.Part) core.Part {
	p.Dedupe = dedupeWindow
	return p
}

// double checks that an answer says that all n events of its part are doubles.
func double(t *testing.T, n int, a core.Appended, what string) {
	t.Helper()
	require.Len(t, a.Doubles, n, what)
	for i, at := range a.Doubles {
		require.Equal(t, i, at, what)
	}
	require.Zero(t, a.First, what)
	require.False(t, a.Armed || a.Reached || a.Closed || a.Shed, "%s: %+v", what, a)
}

// pick is the events of a part at some positions.
func pick(p core.Part, at ...int) core.Part {
	events := p.Events
	p.Events = nil
	for _, i := range at {
		p.Events = append(p.Events, events[i])
	}
	return p
}

func dedupeAgain(t *testing.T, p *probe) {
	policy := calm()
	ref, other, apart := core.Ref{Buffer: "b", Key: "k"}, core.Ref{Buffer: "b", Key: "other"}, core.Ref{Buffer: "apart", Key: "k"}
	all := once(part(ref, policy, start, 1, 6, 10))
	a := p.append(start, pick(all, 0, 1, 2))[0]
	require.Equal(t, core.Appended{First: 1, Armed: true, CheckAt: start + 3*second, Life: lifeOf(ref)}, a)
	a = p.append(start+second, pick(all, 1, 3, 0, 4, 2))[0]
	require.Equal(t, uint64(4), a.First)
	require.Equal(t, []int{0, 2, 4}, a.Doubles)
	want := p.group(ref)

	moved := all
	moved.Ref = other
	for _, when := range []string{"at once", "after a crash"} {
		for i := range 5 {
			double(t, 1, p.append(start+second, pick(all, i))[0], fmt.Sprint(when, ", event ", i+1))
		}
		double(t, 5, p.append(start+second, pick(all, 0, 1, 2, 3, 4))[0], when)
		double(t, 5, p.append(start-second, pick(all, 0, 1, 2, 3, 4))[0], when+", by a clock behind")
		double(t, 2, p.append(start+second, pick(moved, 1, 4))[0], when+", in another group")
		sameRecord(t, want, p.group(ref), when)
		require.True(t, p.empty(other), when)
		require.Equal(t, []string{"k-1", "k-2", "k-3", "k-4", "k-5"}, ids(p.pending(ref)), when)
		p.reopen()
	}
	moved.Ref = apart
	require.Empty(t, p.append(start, pick(moved, 0, 1))[0].Doubles, "in another buffer")
	plain := pick(all, 0)
	plain.Dedupe = 0
	require.Equal(t, uint64(6), p.append(start, plain)[0].First, "nobody looks for doubles")
}

func dedupeTwice(t *testing.T, p *probe) {
	policy := calm()
	ref, other, apart := core.Ref{Buffer: "b", Key: "k"}, core.Ref{Buffer: "b", Key: "other"}, core.Ref{Buffer: "apart", Key: "k"}
	all := once(part(ref, policy, start, 1, 6, 10))
	a := p.append(start, pick(all, 0, 0, 1, 0, 2, 1))[0]
	require.Equal(t, uint64(1), a.First)
	require.Equal(t, []int{1, 3, 5}, a.Doubles)

	in := func(ref core.Ref, at ...int) core.Part {
		p := pick(all, at...)
		p.Ref, p.Life = ref, lifeOf(ref)
		return p
	}
	answers := p.append(start, in(ref, 3, 4), in(ref, 3, 5), in(other, 5, 4), in(apart, 4, 4), in(ref, 0, 5))
	require.Equal(t, uint64(4), answers[0].First)
	require.Empty(t, answers[0].Doubles)
	require.Equal(t, uint64(6), answers[1].First)
	require.Equal(t, []int{0}, answers[1].Doubles)
	double(t, 2, answers[2], "in another group")
	require.Equal(t, []int{1}, answers[3].Doubles)
	double(t, 2, answers[4], "of this request and another")
	require.Equal(t, []string{"k-1", "k-2", "k-3", "k-4", "k-5", "k-6"}, ids(p.pending(ref)))
	require.True(t, p.empty(other))
	require.Equal(t, []string{"k-5"}, ids(p.pending(apart)))
}

// dedupeSettled fills and empties the group often enough for any store to drop
// what it held.
func dedupeSettled(t *testing.T, p *probe) {
	ref, policy := core.Ref{Buffer: "b", Key: "k"}, calm()
	for n := range 30 {
		now := start + core.Millis(n)*second
		p.append(now, once(part(ref, policy, now, 10*n+1, 10, 3000)))
		p.ack(ref, p.claim(ref, 10, policy, now), policy, now)
		if n%10 == 5 {
			p.reopen()
		}
	}
	for range 2 {
		for n := range 30 {
			double(t, 10, p.append(start+60*second, once(part(ref, policy, start, 10*n+1, 10, 3000)))[0], fmt.Sprint("request ", n))
		}
		require.True(t, p.empty(ref))
		p.reopen()
	}
}

func dedupeExpiry(t *testing.T, p *probe) {
	ref, policy, end := core.Ref{Buffer: "b", Key: "k"}, calm(), start.Add(dedupeWindow)
	all := once(part(ref, policy, start, 1, 3, 10))
	p.append(start, pick(all, 0))
	p.append(start+second, pick(all, 1))
	for range 2 {
		double(t, 1, p.append(end-1, pick(all, 0))[0], "at the window's end")
		p.reopen()
	}
	a := p.append(end, pick(all, 0, 1, 2))[0]
	require.Equal(t, []int{1}, a.Doubles)
	require.Equal(t, uint64(3), a.First)
	for range 2 {
		double(t, 3, p.append(end+second-1, all)[0], "anew")
		p.reopen()
	}
	a = p.append(end+second, all)[0]
	require.Equal(t, []int{0, 2}, a.Doubles)
	shorter := pick(all, 0, 2)
	shorter.Dedupe = time.Second
	double(t, 2, p.append(end+second-1, shorter)[0], "for a shorter window")
	require.Empty(t, p.append(end+second, shorter)[0].Doubles, "after a shorter window")
	require.Equal(t, []string{"k-1", "k-2", "k-1", "k-3", "k-2", "k-1", "k-3"}, ids(p.pending(ref)))
}

// dedupeBack sets the clock back from the end of an event's window: a store may
// have forgotten that one, and a start may find it again. It must not forget those
// whose windows have not ended yet, and must know what it has answered last.
func dedupeBack(t *testing.T, p *probe) {
	ref, other, policy, end := core.Ref{Buffer: "b", Key: "k"}, core.Ref{Buffer: "other", Key: "k"}, calm(), start.Add(dedupeWindow)
	all := once(part(ref, policy, start, 1, 3, 10))
	p.append(start, pick(all, 0, 1))
	p.append(start+second, pick(all, 2))
	p.append(end, part(other, policy, end, 1, 1, 10))
	for i := range 2 {
		double(t, 1, p.append(end-second, pick(all, 2))[0], "its window has not ended")
		p.append(end-second, pick(all, i))
		double(t, 1, p.append(end-second, pick(all, i))[0], "stored, or known still")
		p.reopen()
	}
	double(t, 3, p.append(end-1, all)[0], "all of them")
}

func dedupeBeside(t *testing.T, p *probe) {
	policy := calm()
	policy.MaxItems = 2
	known, mixed, fresh := core.Ref{Buffer: "b", Key: "known"}, core.Ref{Buffer: "b", Key: "mixed"}, core.Ref{Buffer: "b", Key: "fresh"}
	before := []core.Part{once(part(known, policy, start, 1, 2, 10)), once(part(mixed, policy, start, 1, 1, 10))}
	p.append(start, before...)
	p.ack(known, p.claim(known, 2, policy, start), policy, start)
	p.ack(mixed, p.claim(mixed, 1, policy, start), policy, start)

	now := start + second
	answers := p.append(now, before[0], once(part(mixed, policy, now, 0, 3, 10)), part(fresh, policy, now, 1, 1, 10))
	double(t, 2, answers[0], "a part that has nothing else")
	require.True(t, p.empty(known))
	a := answers[1]
	require.Equal(t, []int{1}, a.Doubles)
	require.True(t, a.Armed, "the batch is scheduled")
	require.Equal(t, now+3*second, a.CheckAt)
	require.True(t, a.Reached, "two of three are two")
	require.Equal(t, []string{"mixed-0", "mixed-2"}, ids(p.all(mixed, a.First, a.First+1, 0)))
	require.True(t, answers[2].Armed)
	g := p.group(mixed)
	require.Equal(t, int64(20), g.PendingBytes())
	p.reopen()
	require.Equal(t, []string{"mixed-0", "mixed-2"}, ids(p.pending(mixed)))
	require.Equal(t, []string{"fresh-1"}, ids(p.pending(fresh)))
}

func dedupeRefused(t *testing.T, p *probe) {
	policy := limited(2)
	full := core.Ref{Buffer: "b", Key: "full"}
	p.append(start, part(full, policy, start, 1, 2, 10))
	more := part(full, policy, start, 3, 1, 10)
	for _, crash := range []bool{false, true} {
		ref := core.Ref{Buffer: "b", Key: fmt.Sprint("k", crash)}
		want := once(part(ref, calm(), start, 1, 3, 10))
		for _, parts := range [][]core.Part{{want, more}, {more, want}} {
			require.Equal(t, core.Full, core.CodeOf(p.refused(start, parts...)))
		}
		require.Empty(t, p.pending(ref))
		if crash {
			p.reopen()
		}
		require.Empty(t, p.append(start, want)[0].Doubles)
		require.Equal(t, ids(itemsOf(want.Events)), ids(p.pending(ref)))
	}
}

func dedupeClosed(t *testing.T, p *probe) {
	policy := window()
	shut, next, beside := core.Ref{Buffer: "b", Key: "shut"}, core.Ref{Buffer: "b", Key: "next"}, core.Ref{Buffer: "b", Key: "beside"}
	p.append(start, once(part(shut, policy, start, 1, 2, 10)))
	p.shut(shut, policy, start)
	late := once(part(shut, policy, start, 2, 3, 10))
	a := p.finish(start, []core.Part{late, once(part(beside, policy, start, 1, 1, 10))})
	require.True(t, a[0].Closed)
	require.Zero(t, a[0].Stored)
	late.Ref, late.Life = next, lifeOf(next)
	require.Equal(t, []int{0}, p.append(start, late)[0].Doubles, "what is known is, in any window")
	require.Equal(t, []string{"shut-3", "shut-4"}, ids(p.pending(next)))
	require.Equal(t, []string{"beside-1"}, ids(p.pending(beside)))
	require.Equal(t, []string{"shut-1", "shut-2"}, ids(p.pending(shut)))
	late.Ref = shut
	for range 2 {
		double(t, 3, p.append(start, late)[0], "that its group is closed is no matter then")
		p.reopen()
	}
}

func dedupeIDs(t *testing.T, p *probe) {
	ref, policy := core.Ref{Buffer: "b", Key: "k"}, calm()
	all := core.Part{Ref: ref, Life: lifeOf(ref), Policy: policy, Dedupe: dedupeWindow}
	for _, id := range weirdKeys() {
		all.Events = append(all.Events, event(id, start, 1))
	}
	require.Empty(t, p.append(start, all)[0].Doubles)
	double(t, len(all.Events), p.append(start, all)[0], "again")
	p.reopen()
	double(t, len(all.Events), p.append(start, all)[0], "after a crash")
}

// dedupeHeld has a buffer and the one in which its events are held know the same
// ids. What goes on from there to here comes as what nobody looks for doubles of.
func dedupeHeld(t *testing.T, p *probe) {
	policy := calm()
	ref, held := core.Ref{Buffer: "b", Key: "k"}, core.Ref{Buffer: core.Holder("b"), Key: "k"}
	all := part(ref, policy, start, 1, 6, 10)
	in := func(ref core.Ref, at ...int) core.Part {
		p := once(pick(all, at...))
		p.Ref, p.Life = ref, lifeOf(ref)
		return p
	}
	require.Empty(t, p.append(start, in(held, 0, 1))[0].Doubles)
	require.Empty(t, p.append(start, in(ref, 2))[0].Doubles)
	for range 2 {
		double(t, 2, p.append(start+second, in(ref, 0, 1))[0], "of what is held")
		double(t, 1, p.append(start+second, in(held, 2))[0], "of what is not")
		p.reopen()
	}
	answers := p.append(start+second, in(held, 3), in(ref, 3, 4), in(held, 4, 5))
	require.Empty(t, answers[0].Doubles)
	require.Equal(t, []int{0}, answers[1].Doubles, "in one request")
	require.Equal(t, []int{0}, answers[2].Doubles, "in one request")

	moved := in(ref, 0, 1)
	moved.Dedupe = 0
	p.ack(held, p.claim(held, 2, policy, start+second), policy, start+second)
	require.Empty(t, p.append(start+second, moved)[0].Doubles)
	require.Equal(t, []string{"k-3", "k-5", "k-1", "k-2"}, ids(p.pending(ref)))
	require.Equal(t, []string{"k-4", "k-6"}, ids(p.pending(held)))
	for range 2 {
		double(t, 2, p.append(start+second, in(ref, 0, 1))[0], "of what has gone on")
		p.reopen()
	}
}

// dedupeRace has all writers send the same events, each in an order of its own,
// beside some of its own. A request may have to be sent again, and may then
// find that it has been stored.
func dedupeRace(t *testing.T, p *probe) {
	const events, request = 24, 4
	ref, policy := core.Ref{Buffer: "b", Key: "shared"}, calm()
	all := once(part(ref, policy, start, 0, events, 10))
	var told [writers]map[string]int
	var again [writers]int
	var wg sync.WaitGroup
	for w := range writers {
		told[w] = map[string]int{}
		wg.Go(func() {
			for n := 0; n < events && !t.Failed(); n += request {
				shared := all
				shared.Events = nil
				for i := range request {
					shared.Events = append(shared.Events, all.Events[(7*w+n+i)%events])
				}
				own := once(part(core.Ref{Buffer: "own", Key: fmt.Sprint(w)}, policy, start, n, 1, 10))
				a, tries := insist(t, p.s, own, shared)
				again[w] += tries - 1
				for i := range shared.Events {
					if len(a) > 0 && !slices.Contains(a[1].Doubles, i) {
						told[w][shared.Events[i].ID]++
					}
				}
			}
		})
	}
	wg.Wait()
	tries, stored := 0, map[string]int{}
	for w := range writers {
		tries += again[w]
		for id, n := range told[w] {
			stored[id] += n
		}
	}
	t.Logf("%d requests were sent again", tries)
	var want []string
	for _, e := range all.Events {
		want = append(want, e.ID)
		require.LessOrEqual(t, stored[e.ID], 1, "%s was stored for several", e.ID)
		require.True(t, stored[e.ID] == 1 || tries > 0, "%s was stored for nobody", e.ID)
	}
	slices.Sort(want)
	for range 2 {
		require.Equal(t, want, slices.Sorted(slices.Values(ids(p.pending(ref)))))
		for w := range writers {
			require.Len(t, p.pending(core.Ref{Buffer: "own", Key: fmt.Sprint(w)}), events/request, "of writer %d", w)
		}
		p.reopen()
	}
}

// insist sends a request until the store says what became of it, and returns
// how often it was sent.
func insist(t *testing.T, s core.Store, parts ...core.Part) (a []core.Appended, tries int) {
	const most = 10_000
	for tries = 1; tries < most; tries++ {
		a, err := s.Append(context.Background(), start, parts)
		if err == nil {
			return a, tries
		}
		if code := core.CodeOf(err); code != core.Unavailable && code != core.Conflict {
			t.Errorf("append: %v", err)
			return nil, tries
		}
		runtime.Gosched()
	}
	t.Errorf("a request was turned away %d times", most)
	return nil, tries
}
