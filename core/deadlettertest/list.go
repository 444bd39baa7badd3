package deadlettertest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

var listTests = []test{
	{"list and count pick by buffer and id, oldest first", listFilters},
	{"list goes on after a letter that is gone", listAfterGone},
	{"list changes nothing", listPeeks},
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
