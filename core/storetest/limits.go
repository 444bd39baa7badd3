package storetest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

var limitTests = []test{
	{"append is all or nothing when a part is refused", limitAtomic},
	{"overflow.maxItems caps what waits in one group", limitCeiling},
	{"size caps a buffer, claimed items included", limitSize},
	{"size counts what a claim has not yet settled", limitSizeOfResidue},
}

// limited is a policy whose groups hold at most n pending items.
func limited(n int) *core.Policy {
	p := calm()
	p.CapItems = n
	return p
}

// sized is a part for a buffer that holds at most size items.
func sized(p core.Part, size int64) core.Part {
	p.Size = size
	return p
}

func limitAtomic(t *testing.T, p *probe) {
	policy := limited(5)
	a, b := core.Ref{Buffer: "one", Key: "a"}, core.Ref{Buffer: "one", Key: "b"}
	c := core.Ref{Buffer: "two", Key: "c"}
	p.append(start, part(a, policy, start, 1, 4, 10))
	p.append(start, sized(part(c, policy, start, 1, 3, 10), 4))

	good := part(b, policy, start, 1, 1, 10)
	for _, x := range []struct {
		name  string
		parts []core.Part
	}{
		{"group full, last", []core.Part{good, part(a, policy, start, 5, 2, 10)}},
		{"group full, first", []core.Part{part(a, policy, start, 5, 2, 10), good}},
		{"group full by two parts", []core.Part{good, part(a, policy, start, 5, 1, 10), part(a, policy, start, 6, 1, 10)}},
		{"new group full by two parts", []core.Part{part(b, policy, start, 1, 3, 10), part(b, policy, start, 4, 3, 10)}},
		{"more than a group may hold", []core.Part{good, part(a, policy, start, 5, 6, 10)}},
		{"buffer full", []core.Part{good, sized(part(c, policy, start, 4, 2, 10), 4)}},
		{"buffer full by two parts", []core.Part{sized(part(c, policy, start, 4, 1, 10), 4), good,
			sized(part(core.Ref{Buffer: "two", Key: "new"}, policy, start, 1, 1, 10), 4)}},
		{"more than a buffer may hold", []core.Part{good,
			sized(part(core.Ref{Buffer: "three", Key: "c"}, policy, start, 1, 5, 10), 4)}},
	} {
		before := [2]core.Group{p.group(a), p.group(c)}
		err := p.refused(start, x.parts...)
		require.Equal(t, core.Full, core.CodeOf(err), "%s: %v", x.name, err)
		require.Positive(t, core.RetryAfterOf(err), "%s: when to try again", x.name)
		require.NotEmpty(t, core.DetailOf(err), "%s: what a client may read", x.name)
		require.Equal(t, []string{"a-1", "a-2", "a-3", "a-4"}, ids(p.pending(a)), x.name)
		require.Equal(t, []string{"c-1", "c-2", "c-3"}, ids(p.pending(c)), x.name)
		require.Empty(t, p.pending(b), x.name)
		if p.h.Gaps {
			p.drop(b, policy) // or its gaps would fill it up
			continue
		}
		sameRecord(t, before[0], p.group(a), x.name)
		sameRecord(t, before[1], p.group(c), x.name)
		require.True(t, p.empty(b), x.name)
		require.Len(t, p.groups("one", 10), 1, x.name)
		require.Len(t, p.groups("two", 10), 1, x.name)
		require.Empty(t, p.groups("three", 10), x.name)
	}
	p.append(start, part(a, policy, start, 5, 1, 10))
	p.append(start, sized(part(c, policy, start, 4, 1, 10), 4))
	require.Equal(t, []string{"a-1", "a-2", "a-3", "a-4", "a-5"}, ids(p.pending(a)))
	require.Equal(t, []string{"c-1", "c-2", "c-3", "c-4"}, ids(p.pending(c)))
}

func limitCeiling(t *testing.T, p *probe) {
	k, policy := core.Ref{Buffer: "b", Key: "k"}, limited(3)
	p.append(start, part(k, policy, start, 1, 3, 10))
	require.Equal(t, core.Full, core.CodeOf(p.refused(start, part(k, policy, start, 4, 1, 10))))

	c := p.claim(k, 2, policy, start)
	require.Equal(t, core.Full, core.CodeOf(p.refused(start, part(k, policy, start, 4, 3, 10))))
	p.append(start, part(k, policy, start, 4, 2, 10))
	require.Equal(t, core.Full, core.CodeOf(p.refused(start, part(k, policy, start, 6, 1, 10))))

	p.ack(k, c, policy, start)
	require.Equal(t, core.Full, core.CodeOf(p.refused(start, part(k, policy, start, 6, 1, 10))),
		"what is claimed does not count, so settling it makes no room")
	p.append(start, part(k, limited(4), start, 6, 1, 10))
	require.Equal(t, []string{"k-3", "k-4", "k-5", "k-6"}, ids(p.all(k, 3, 6, 0)))
}

func limitSize(t *testing.T, p *probe) {
	policy := calm()
	a, b := core.Ref{Buffer: "b", Key: "a"}, core.Ref{Buffer: "b", Key: "b"}
	p.append(start, sized(part(a, policy, start, 1, 3, 10), 5))
	c := p.claim(a, 3, policy, start)
	p.append(start, sized(part(b, policy, start, 1, 2, 10), 5))
	require.Equal(t, core.Full, core.CodeOf(p.refused(start, sized(part(b, policy, start, 3, 1, 10), 5))))
	p.append(start, sized(part(core.Ref{Buffer: "c", Key: "a"}, policy, start, 1, 5, 10), 5))

	p.reopen()
	p.settle("b")
	require.Equal(t, core.Full, core.CodeOf(p.refused(start, sized(part(b, policy, start, 3, 1, 10), 5))), "after a crash")
	p.ack(a, c, policy, start)
	p.settle("b")
	require.Equal(t, core.Full, core.CodeOf(p.refused(start, sized(part(a, policy, start, 4, 4, 10), 5))))
	p.append(start, sized(part(a, policy, start, 4, 3, 10), 5))
	p.append(start, part(a, policy, start, 7, 1, 10)) // no limit
	p.settle("b")
	require.Equal(t, core.Full, core.CodeOf(p.refused(start, sized(part(b, policy, start, 3, 1, 10), 6))))
}

func limitSizeOfResidue(t *testing.T, p *probe) {
	k, policy := core.Ref{Buffer: "b", Key: "k"}, calm()
	p.append(start, sized(part(k, policy, start, 1, 4, 10), 4))
	c := p.claim(k, 4, policy, start)
	p.update(k, func(g *core.Group) error {
		failed := core.Bits(nil).With(1).With(3)
		return g.Shrink(c.ID, c.Lease, failed, start.Add(time.Second), "no", policy, start)
	})
	p.settle("b")
	require.Equal(t, core.Full, core.CodeOf(p.refused(start, sized(part(k, policy, start, 5, 3, 10), 4))))
	p.append(start, sized(part(k, policy, start, 5, 2, 10), 4))
	require.Equal(t, core.Full, core.CodeOf(p.refused(start, sized(part(k, policy, start, 7, 1, 10), 4))))
}
