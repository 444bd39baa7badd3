package storetest

import (
	"fmt"
	"testing"
	"time"

	"sluice/core"
)

var crashTests = []test{
	{"a crash between any two calls", crashAnywhere},
	{"a crash after every call", crashEverywhere},
}

// step is one call of the crash script.
type step struct {
	name string
	call func(*pair)
}

// script is a life of three groups, with every kind of call.
func script() []step {
	plain, ordered, shut := calm(), calm(), window()
	plain.Concurrency, plain.MaxItems, plain.CapItems = 2, 4, 12
	ordered.Ordered = true
	a, b := core.Ref{Buffer: "plain", Key: "a"}, core.Ref{Buffer: "plain", Key: "b/ä"}
	o, w := core.Ref{Buffer: "ordered", Key: ""}, core.Ref{Buffer: "plain", Key: "window"}
	at := func(s int) core.Millis { return start + core.Millis(s)*second }
	failed := core.Bits(nil).With(1).With(2)
	return []step{
		{"append", func(d *pair) { d.append(at(0), part(a, plain, at(0), 1, 3, 10)) }},
		{"append to three", func(d *pair) {
			d.append(at(1), part(a, plain, at(1), 4, 5, 70), part(o, ordered, at(1), 1, 6, 0), part(b, plain, at(1), 1, 1, 2000))
		}},
		{"refused append", func(d *pair) { d.append(at(1), part(b, plain, at(1), 2, 1, 1), part(a, plain, at(1), 9, 12, 1)) }},
		{"claim", func(d *pair) { d.claim(a, 4, plain, at(2)) }},
		{"second claim", func(d *pair) { d.claim(a, 2, plain, at(2)) }},
		{"refused claim", func(d *pair) { d.claim(a, 2, plain, at(2)) }},
		{"claim in order", func(d *pair) { d.claim(o, 4, ordered, at(3)) }},
		{"shrink", func(d *pair) { d.shrink(a, 0, failed, at(8), plain, at(4)) }},
		{"shrink in order", func(d *pair) { d.shrink(o, 0, failed, at(8), ordered, at(4)) }},
		{"append behind", func(d *pair) { d.append(at(5), part(o, ordered, at(5), 7, 1, 5), part(a, plain, at(5), 9, 2, 5)) }},
		{"release", func(d *pair) { d.release(a, 1, at(9), plain, at(6)) }},
		{"check", func(d *pair) {
			d.update("check", a, func(g *core.Group) error { g.Check(plain, at(7)); return nil })
		}},
		{"nudge", func(d *pair) {
			d.update("nudge", o, func(g *core.Group) error { g.Nudge(at(70)); return nil })
		}},
		{"recover", func(d *pair) { d.recover(a, 0, plain, at(8)) }},
		{"recover in order", func(d *pair) { d.recover(o, 0, ordered, at(8)) }},
		{"shrink again", func(d *pair) { d.shrink(a, 0, failed.With(0), at(12), plain, at(9)) }},
		{"ack in order", func(d *pair) { d.ack(o, 0, ordered, at(9)) }},
		{"claim the rest", func(d *pair) { d.claim(b, 5, plain, at(10)) }},
		{"empty a group", func(d *pair) { d.ack(b, 0, plain, at(11)) }},
		{"begin it anew", func(d *pair) { d.append(at(12), part(b, plain, at(12), 2, 2, 3)) }},
		{"take over", func(d *pair) { d.recover(a, 1, plain, at(12).Add(2*time.Minute)) }},
		{"ack", func(d *pair) { d.ack(a, 1, plain, at(200)) }},
		{"advance", func(d *pair) { d.advance(a, 0, "rows", 3, plain, at(200)) }},
		{"append to a window", func(d *pair) { d.append(at(200), part(w, shut, at(200), 1, 3, 10)) }},
		{"close", func(d *pair) { d.shut(w, shut, at(200)) }},
		{"closed append", func(d *pair) { d.append(at(200), part(b, plain, at(200), 9, 1, 10), part(w, shut, at(200), 4, 1, 10)) }},
		{"claim the window", func(d *pair) { d.claim(w, 5, shut, at(201)) }},
		{"advance its rows", func(d *pair) { d.advance(w, 0, "rows", 2, shut, at(201)) }},
		{"release it", func(d *pair) { d.release(w, 0, at(900), shut, at(201)) }},
		{"hasten it", func(d *pair) { d.hasten(w, 0, at(202)) }},
		{"recover it", func(d *pair) { d.recover(w, 0, shut, at(202)) }},
		{"drain it", func(d *pair) { d.ack(w, 0, shut, at(202)) }},
		{"append too late", func(d *pair) { d.append(at(203), part(w, shut, at(203), 5, 1, 10)) }},
		{"claim at last", func(d *pair) { d.claim(o, 10, ordered, at(201)) }},
	}
}

// crashAnywhere runs the script with a crash after each prefix, and compares the
// store with the model after that and after every later call.
func crashAnywhere(t *testing.T, p *probe) {
	steps := script()
	for at := range len(steps) + 1 {
		d := newPair(t, t, p.h, "ordered", "plain")
		for i, s := range steps {
			if i == at {
				d.crash()
				d.compare(fmt.Sprintf("a crash before step %d (%s)", i, s.name))
			}
			s.call(d)
			d.compare(fmt.Sprintf("step %d (%s), with a crash before step %d", i, s.name, at))
		}
		if at == len(steps) {
			d.crash()
			d.compare("a crash at the end")
		}
		d.close()
	}
}

// crashEverywhere is the script with a crash after each and every call.
func crashEverywhere(t *testing.T, p *probe) {
	d := newPair(t, t, p.h, "ordered", "plain")
	defer d.close()
	for i, s := range script() {
		s.call(d)
		d.crash()
		d.compare(fmt.Sprintf("a crash after step %d (%s)", i, s.name))
	}
}
