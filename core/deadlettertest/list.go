package deadlettertest

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

var listTests = []test{
	{"list and count pick by buffer and id, oldest first", listFilters},
	{"list goes on after a letter that is gone", listAfterGone},
	{"list changes nothing", listPeeks},
	{"list ends a page before it has too many bytes", listBounded},
}

// mixed puts letters of two buffers in turn.
func mixed(p *probe) {
	p.put(letters("b", 1, 2)...)
	p.put(letters("a", 3, 4)...)
	p.put(letter("b", 5))
	p.put(letter("a", 6), letter("b", 7))
}

func listFilters(t *testing.T, p *probe) {
	mixed(p)
	id := func(buffer string, n int) string { return letter(buffer, n).ID }
	for _, c := range []struct {
		name string
		f    core.DeadLetterFilter
		want []string
	}{
		{"all", everything, []string{"b/1", "b/2", "a/3", "a/4", "b/5", "a/6", "b/7"}},
		{"no ids", core.DeadLetterFilter{IDs: []string{}}, []string{"b/1", "b/2", "a/3", "a/4", "b/5", "a/6", "b/7"}},
		{"a buffer", core.DeadLetterFilter{Buffer: "a"}, []string{"a/3", "a/4", "a/6"}},
		{"another buffer", core.DeadLetterFilter{Buffer: "c"}, []string{}},
		{"ids", core.DeadLetterFilter{IDs: []string{id("b", 7), id("a", 4), id("a", 4)}}, []string{"a/4", "b/7"}},
		{"ids and a buffer", core.DeadLetterFilter{Buffer: "b", IDs: []string{id("b", 7), id("a", 4)}}, []string{"b/7"}},
		{"an unknown id", core.DeadLetterFilter{IDs: []string{"x/1"}}, []string{}},
	} {
		p.holds(c.f, c.want, c.name)
		p.settle(nil, p.takes(c.want, c.f, 100, c.name+", taken"))
	}
	p.reopen()
	p.holds(core.DeadLetterFilter{Buffer: "a"}, []string{"a/3", "a/4", "a/6"}, "after a crash")
}

func listAfterGone(t *testing.T, p *probe) {
	mixed(p)
	first, next, err := p.l.List(context.Background(), everything, "", 3)
	require.NoError(t, err)
	require.Equal(t, []string{"b/1", "b/2", "a/3"}, ids(first))
	p.settle(p.take(everything, 4), nil)
	rest, next, err := p.l.List(context.Background(), everything, next, 100)
	require.NoError(t, err)
	require.Equal(t, []string{"b/5", "a/6", "b/7"}, ids(rest), "the place is gone, and so is the letter behind it")
	require.Empty(t, next)
}

func listPeeks(t *testing.T, p *probe) {
	p.put(letters("a", 1, 3)...)
	p.holds(everything, []string{"a/1", "a/2", "a/3"}, "once")
	p.holds(everything, []string{"a/1", "a/2", "a/3"}, "again")
	p.takes([]string{"a/1", "a/2", "a/3"}, everything, 10, "what was listed is free")
}

func listBounded(t *testing.T, p *probe) {
	put := letters("a", 1, 12)
	for i, kib := range []int{5, 0, 0, 30, 0, 9, 9, 1, 12, 12, 3, 1} {
		put[i].Item.Body = bytes.Repeat([]byte("x"), kib<<10)
	}
	for _, l := range []int{11, 3, 5, 0, 8, 9, 2, 6, 1, 4, 10, 7} { // a queue without order has them in this
		p.put(put[l])
	}
	listed := p.list(everything, 100)
	require.Len(t, listed, len(put))
	for _, f := range []core.DeadLetterFilter{{MaxBytes: 1}, {MaxBytes: 10 << 10}, {MaxBytes: 20 << 10}, {MaxBytes: 1 << 20}} {
		for _, limit := range []int{1, 4, 100} {
			all := p.bounded(f, limit)
			require.Equal(t, ids(listed), ids(all), "%d bytes, %d letters at a time", f.MaxBytes, limit)
		}
	}
	require.Len(t, p.take(core.DeadLetterFilter{MaxBytes: 1}, 3), 3, "what is taken is bounded by number alone")
}

// bounded reads all that a filter picks, and checks the bytes of each page: no
// more than there may be, and no less than the next letter leaves room for.
func (p *probe) bounded(f core.DeadLetterFilter, limit int) []core.DeadLetter {
	p.t.Helper()
	const around = 100 // bytes that a store may have around a letter
	var all []core.DeadLetter
	var last int64 // bytes of the page before, unless it had all the letters it may
	for from := ""; ; {
		page, next, err := p.l.List(context.Background(), f, from, limit)
		require.NoError(p.t, err, "list")
		require.NotEmpty(p.t, page)
		require.LessOrEqual(p.t, len(page), limit)
		var size int64
		for i := range page {
			size += page[i].Size()
		}
		require.True(p.t, size <= f.MaxBytes || len(page) == 1, "a page of %d letters has %d bytes, of %d", len(page), size, f.MaxBytes)
		if last > 0 {
			require.Greater(p.t, last+page[0].Size()+around, f.MaxBytes, "a page ended early")
		}
		all = append(all, page...)
		if next == "" {
			return all
		}
		from, last = next, size+around*int64(len(page))
		if len(page) == limit {
			last = 0
		}
	}
}
