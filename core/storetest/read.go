package storetest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

var readTests = []test{
	{"items reads spans", readSpans},
	{"items ends a page before it exceeds its bytes", readPages},
	{"items of empty bodies fill one page", readEmptyBodies},
	{"items of a claim stay while others are settled", readClaims},
	{"items page by page are all there", readAll},
	{"what is not there reads as nothing", readNothing},
}

func readSpans(t *testing.T, p *probe) {
	ref, policy := core.Ref{Buffer: "b", Key: "k"}, calm()
	for i := range 10 {
		at := start + core.Millis(i)
		p.append(at, part(ref, policy, at, i+1, 1, i+1))
	}
	through := func(n uint64) int64 { return int64(n * (n + 1) / 2) }
	for _, span := range [][2]uint64{{1, 1}, {1, 10}, {3, 7}, {10, 10}, {2, 9}} {
		name := fmt.Sprint(span)
		page := p.items(ref, core.Span{From: span[0], To: span[1]})
		require.Len(t, page.Items, int(span[1]-span[0]+1), name)
		for i, item := range page.Items {
			require.Equal(t, span[0]+uint64(i), item.Seq, name)
			require.Equal(t, through(item.Seq), page.Offsets[i], name)
		}
		require.Equal(t, span[1], page.End, name)
		require.Equal(t, through(span[1]), page.Through, name)
		next := start + core.Millis(span[1])
		if span[1] == 10 {
			next = 0
		}
		require.Equal(t, next, page.NextAt, name)
	}
}

func readPages(t *testing.T, p *probe) {
	ref, policy := core.Ref{Buffer: "b", Key: "k"}, calm()
	for i, size := range []int{10, 20, 30, 0} {
		at := start + core.Millis(i)
		p.append(at, part(ref, policy, at, i+1, 1, size))
	}
	for _, c := range []struct {
		from, to uint64
		bytes    int64
		end      uint64
		through  int64
	}{
		{1, 4, 0, 4, 60},
		{1, 4, 1, 1, 10}, // never before the first
		{1, 4, 10, 1, 10},
		{1, 4, 29, 1, 10},
		{1, 4, 30, 2, 30},
		{1, 4, 59, 2, 30},
		{1, 4, 60, 4, 60}, // an empty body exceeds nothing
		{1, 4, 1 << 40, 4, 60},
		{1, 3, 60, 3, 60},
		{2, 4, 49, 2, 30},
		{3, 4, 30, 4, 60},
		{3, 4, 1, 3, 60},
	} {
		name := fmt.Sprintf("%d to %d of %d bytes", c.from, c.to, c.bytes)
		page := p.items(ref, core.Span{From: c.from, To: c.to, MaxBytes: c.bytes})
		require.Equal(t, c.end, page.End, name)
		require.Len(t, page.Items, int(c.end-c.from+1), name)
		require.Equal(t, c.through, page.Through, name)
		require.Equal(t, c.through, page.Offsets[len(page.Offsets)-1], name)
		next := start + core.Millis(c.end)
		if c.end == 4 {
			next = 0
		}
		require.Equal(t, next, page.NextAt, name)
	}
}

func readEmptyBodies(t *testing.T, p *probe) {
	ref := core.Ref{Buffer: "b", Key: "k"}
	p.append(start, part(ref, calm(), start, 1, 20, 0))
	page := p.items(ref, core.Span{From: 1, To: 20, MaxBytes: 1})
	require.Len(t, page.Items, 20)
	require.Equal(t, uint64(20), page.End)
	require.Zero(t, page.Through)
}

func readClaims(t *testing.T, p *probe) {
	ref, policy := core.Ref{Buffer: "b", Key: "k"}, calm()
	p.append(start, part(ref, policy, start, 1, 9, 10))
	one, two := p.claim(ref, 3, policy, start), p.claim(ref, 3, policy, start)
	p.ack(ref, two, policy, start)
	p.update(ref, func(g *core.Group) error {
		return g.Shrink(one.ID, one.Lease, core.Bits(nil).With(1), start, "no", policy, start)
	})

	check := func() {
		g := p.group(ref)
		require.Len(t, g.Claims, 1)
		c := g.Claims[0]
		require.True(t, c.Has(2))
		items := p.all(ref, c.From, c.To, 0)
		require.Equal(t, []string{"k-2"}, ids(items), "the only one that failed")
		page := p.items(ref, core.Span{From: g.Head + 1, To: g.Tail})
		require.Equal(t, []string{"k-7", "k-8", "k-9"}, ids(page.Items))
		require.Equal(t, []int64{70, 80, 90}, page.Offsets, "counted from the log's first item on")
	}
	check()
	p.reopen()
	check()
}

func readAll(t *testing.T, p *probe) {
	ref, policy := core.Ref{Buffer: "b", Key: "k"}, calm()
	var want []string
	for i := range 60 {
		p.append(start, part(ref, policy, start, 3*i, 3, i*7%50))
		for j := range 3 {
			want = append(want, fmt.Sprintf("k-%d", 3*i+j))
		}
	}
	for _, bytes := range []int64{0, 1, 40, 100, 333, 5000} {
		require.Equal(t, want, ids(p.all(ref, 1, 180, bytes)), "pages of %d bytes", bytes)
	}
	c := p.claim(ref, 100, policy, start)
	p.ack(ref, c, policy, start)
	require.Equal(t, want[100:], ids(p.all(ref, 101, 180, 100)), "after the first hundred have gone")
}

func readNothing(t *testing.T, p *probe) {
	ref, policy := core.Ref{Buffer: "b", Key: "k"}, calm()
	for _, what := range []string{"an empty store", "a store with other groups"} {
		require.Empty(t, p.items(ref, core.Span{From: 1, To: 10}).Items, what)
		require.True(t, p.empty(ref), what)
		require.Empty(t, p.group(ref).Life, what)
		require.Empty(t, p.groups("b", 10), what)
		require.NotContains(t, p.due(start+1000*second), ref, what)
		require.NotContains(t, p.stats(), "b", what)
		p.append(start, part(core.Ref{Buffer: "b2", Key: "k"}, policy, start, 1, 1, 1))
	}
	p.append(start, part(ref, policy, start, 1, 2, 10))
	page := p.items(ref, core.Span{From: 1, To: 100})
	require.Equal(t, []string{"k-1", "k-2"}, ids(page.Items), "a span beyond the tail")
	require.Equal(t, uint64(2), page.End, "numbers that have not been handed out are not void")
	require.Equal(t, int64(20), page.Through)
	require.Zero(t, page.NextAt)
}
