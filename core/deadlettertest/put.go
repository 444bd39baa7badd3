package deadlettertest

import (
	"bytes"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

var putTests = []test{
	{"put keeps every field", putKeeps},
	{"put again, by id, changes nothing", putAgain},
	{"put again leaves a taken letter taken", putTaken},
	{"put keeps copies", putCopies},
	{"put of nothing is nothing", putNothing},
}

func putKeeps(t *testing.T, p *probe) {
	want := letters("a", 1, 3)
	want[0] = core.DeadLetter{ID: "bare/1", Buffer: "a"}
	want[1].Item.Body = make([]byte, 256)
	for i := range want[1].Item.Body {
		want[1].Item.Body[i] = byte(i)
	}
	want[1].Item.Headers = []core.Header{{Name: "x", Value: "\xff\x00"}, {Name: "x", Value: ""}, {Name: "", Value: "y"}}
	want[2].Item.Body = bytes.Repeat([]byte{0xff}, 350<<10)
	want[2].Answer = string(bytes.Repeat([]byte{'x'}, core.MaxAnswer))
	want[2].Group = ""
	p.put(want...)
	same(t, want, p.list(everything, 10), "listed")
	p.reopen()
	same(t, want, p.list(everything, 10), "listed after a crash")
	same(t, want, p.take(everything, 10), "taken")
}

func putAgain(t *testing.T, p *probe) {
	p.put(letters("a", 1, 3)...)
	changed := letter("a", 2)
	changed.Attempts, changed.Item.Body = 99, []byte("another")
	p.put(changed, letter("a", 4), letter("a", 4))
	p.put(letters("a", 1, 5)...)
	p.holdsAgain(changed, "the first of each id, in their order")
	p.reopen()
	p.put(letters("a", 1, 2)...)
	p.holdsAgain(changed, "after a crash")
	p.drain(letters("a", 1, 5))
}

// holdsAgain checks that letters 1 to 5 are there, the first of each id, or
// for letter 2 perhaps the changed one when there may be doubles.
func (p *probe) holdsAgain(changed core.DeadLetter, what string) {
	p.t.Helper()
	want, got := letters("a", 1, 5), p.list(everything, 10)
	if p.h.Doubles && len(got) > 1 && got[1].Attempts == changed.Attempts {
		want[1] = changed
	}
	same(p.t, want, got, what)
	require.Equal(p.t, ids(want), ids(p.list(everything, 2)), "%s, two at a time", what)
}

// drain takes and removes all that there is: these letters, each once, or again
// when there may be doubles.
func (p *probe) drain(letters []core.DeadLetter) {
	p.t.Helper()
	left := map[string]bool{}
	for _, id := range ids(letters) {
		left[id] = true
	}
	for {
		taken := p.take(everything, 3)
		if len(taken) == 0 {
			break
		}
		for _, id := range ids(taken) {
			again, known := left[id]
			require.True(p.t, known && (again || p.h.Doubles), "took %s", id)
			left[id] = false
		}
		p.settle(taken, nil)
	}
	require.NotContains(p.t, slices.Collect(maps.Values(left)), true, "never taken: %v", left)
	p.holds(everything, []string{}, "all done")
}

func putTaken(t *testing.T, p *probe) {
	p.put(letters("a", 1, 2)...)
	taken := p.take(everything, 10)
	require.Len(t, taken, 2)
	p.put(letters("a", 1, 2)...)
	if !p.h.Doubles {
		p.held(p.until, "put again")
		return
	}
	p.settle(taken, nil)
	p.drain(letters("a", 1, 2))
}

func putCopies(t *testing.T, p *probe) {
	spoil := func(l *core.DeadLetter) {
		for i := range l.Item.Body {
			l.Item.Body[i] = '!'
		}
		l.Item.Headers[0].Value = "spoilt"
	}
	mine := letters("a", 1, 1)
	p.put(mine...)
	spoil(&mine[0])
	read := p.list(everything, 1)
	same(t, letters("a", 1, 1), read, "after the caller used its letter again")
	spoil(&read[0])
	same(t, letters("a", 1, 1), p.take(everything, 1), "after a reader wrote to what it got")
}

func putNothing(t *testing.T, p *probe) {
	p.put()
	p.settle(nil, nil)
	p.holds(everything, []string{}, "nothing")
	require.Empty(t, p.take(everything, 10))
}
