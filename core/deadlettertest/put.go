package deadlettertest

import (
	"bytes"
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
	same(t, want, p.take(everything, 10, start), "taken")
}

func putAgain(t *testing.T, p *probe) {
	p.put(letters("a", 1, 3)...)
	changed := letter("a", 2)
	changed.Attempts, changed.Item.Body = 99, []byte("another")
	p.put(changed, letter("a", 4), letter("a", 4))
	p.put(letters("a", 1, 5)...)
	same(t, letters("a", 1, 5), p.list(everything, 10), "the first of each id, in their order")
	p.reopen()
	p.put(letters("a", 1, 2)...)
	same(t, letters("a", 1, 5), p.list(everything, 10), "after a crash")
}

func putTaken(t *testing.T, p *probe) {
	p.put(letters("a", 1, 2)...)
	require.Len(t, p.take(everything, 10, start), 2)
	p.put(letters("a", 1, 2)...)
	require.Empty(t, p.take(everything, 10, start+1))
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
	same(t, letters("a", 1, 1), p.take(everything, 1, start), "after a reader wrote to what it got")
}

func putNothing(t *testing.T, p *probe) {
	p.put()
	p.settle(nil, nil)
	p.holds(everything, []string{}, "nothing")
	require.Empty(t, p.take(everything, 10, start))
}
