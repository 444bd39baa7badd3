package storetest

import (
	"fmt"
	"testing"
	"time"

	"sluice/core"
)

var crashTests = []test{
	{"a crash between any two calls", func(t *testing.T, p *probe) { crashAnywhere(t, p, script()) }},
	{"a crash after every call", func(t *testing.T, p *probe) { crashEverywhere(t, p, script()) }},
	{"a crash between any two calls of a window", func(t *testing.T, p *probe) { crashAnywhere(t, p, windowScript()) }},
	{"a crash after every call of a window", func(t *testing.T, p *probe) { crashEverywhere(t, p, windowScript()) }},
	{"a crash between any two calls of a relay", func(t *testing.T, p *probe) { crashAnywhere(t, p, relayScript()) }},
	{"a crash after every call of a relay", func(t *testing.T, p *probe) { crashEverywhere(t, p, relayScript()) }},
}

// step is one call of the crash script.
type step struct {
	name string
	call func(*pair)
}

// script is a life of three groups, with every kind of call.
func script() []step {
	plain, ordered := calm(), calm()
	plain.Concurrency, plain.MaxItems, plain.CapItems = 2, 4, 12
	ordered.Ordered = true
	a, b := core.Ref{Buffer: "plain", Key: "a"}, core.Ref{Buffer: "plain", Key: "b/ä"}
	o := core.Ref{Buffer: "ordered", Key: ""}
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
		{"claim at last", func(d *pair) { d.claim(o, 10, ordered, at(201)) }},
	}
}

// windowScript is a life of a window, beside a group of none.
func windowScript() []step {
	shut, plain := window(), calm()
	w, b := core.Ref{Buffer: "plain", Key: "window"}, core.Ref{Buffer: "plain", Key: "b"}
	at := func(s int) core.Millis { return start + core.Millis(s)*second }
	return []step{
		{"append", func(d *pair) { d.append(at(0), part(w, shut, at(0), 1, 3, 10)) }},
		{"close", func(d *pair) { d.shut(w, shut, at(1)) }},
		{"closed append", func(d *pair) { d.append(at(1), part(b, plain, at(1), 1, 1, 10), part(w, shut, at(1), 4, 1, 10)) }},
		{"claim", func(d *pair) { d.claim(w, 5, shut, at(2)) }},
		{"advance", func(d *pair) { d.advance(w, 0, "rows", 2, shut, at(2)) }},
		{"release", func(d *pair) { d.release(w, 0, at(900), shut, at(2)) }},
		{"hasten", func(d *pair) { d.hasten(w, 0, at(3)) }},
		{"recover", func(d *pair) { d.recover(w, 0, shut, at(3)) }},
		{"drain", func(d *pair) { d.ack(w, 0, shut, at(3)) }},
		{"append too late", func(d *pair) { d.append(at(4), part(w, shut, at(4), 5, 1, 10)) }},
		{"append of no window", func(d *pair) { d.append(at(4), part(w, plain, at(4), 6, 1, 10)) }},
	}
}

// relayScript is a life of a group whose events come twice, and whose claims
// fall back, wait and are held, beside one of copies.
func relayScript() []step {
	plain := calm()
	a, c := core.Ref{Buffer: "plain", Key: "a"}, core.Ref{Buffer: "copies", Key: "a"}
	at := func(s int) core.Millis { return start + core.Millis(s)*second }
	copied := func(s, from, n int) core.Part { return shed(part(c, plain, at(s), from, n, 10), 5) }
	return []step{
		{"append", func(d *pair) { d.append(at(0), once(part(a, plain, at(0), 1, 6, 10)), copied(0, 1, 4)) }},
		{"append again", func(d *pair) { d.append(at(1), once(part(a, plain, at(1), 1, 6, 10)), copied(1, 5, 2)) }},
		{"hold", func(d *pair) { d.hold(a, at(4), plain, at(1)) }},
		{"claim", func(d *pair) { d.claim(a, 3, plain, at(4)) }},
		{"fall", func(d *pair) { d.fall(a, 0, plain, at(4)) }},
		{"postpone", func(d *pair) { d.postpone(a, 0, at(6), true, plain, at(5)) }},
		{"append in part", func(d *pair) { d.append(at(5), once(part(a, plain, at(5), 4, 5, 10)), copied(5, 5, 1)) }},
		{"defer", func(d *pair) { d.putOff(a, 0, at(9), plain, at(6)) }},
		{"recover", func(d *pair) { d.recover(a, 0, plain, at(9)) }},
		{"shrink", func(d *pair) { d.shrink(a, 0, core.Bits(nil).With(2), at(12), plain, at(9)) }},
		{"append what is settled", func(d *pair) { d.append(at(10), once(part(a, plain, at(10), 1, 2, 10))) }},
		{"recover the rest", func(d *pair) { d.recover(a, 0, plain, at(12)) }},
		{"ack", func(d *pair) { d.ack(a, 0, plain, at(12)) }},
		{"empty it", func(d *pair) { d.claim(a, 9, plain, at(13)) }},
		{"ack all", func(d *pair) { d.ack(a, 0, plain, at(13)) }},
		{"append what is gone", func(d *pair) { d.append(at(14), once(part(a, plain, at(14), 1, 9, 10))) }},
		{"append after the window", func(d *pair) { d.append(at(600), once(part(a, plain, at(600), 5, 3, 10))) }},
	}
}

// crashAnywhere runs a script with a crash after each prefix, and compares the
// store with the model after that and after every later call.
func crashAnywhere(t *testing.T, p *probe, steps []step) {
	t.Helper()
	for at := range len(steps) + 1 {
		d := newPair(t, t, p.h, "copies", "ordered", "plain")
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

// crashEverywhere is a script with a crash after each and every call.
func crashEverywhere(t *testing.T, p *probe, steps []step) {
	t.Helper()
	d := newPair(t, t, p.h, "copies", "ordered", "plain")
	defer d.close()
	for i, s := range steps {
		s.call(d)
		d.crash()
		d.compare(fmt.Sprintf("a crash after step %d (%s)", i, s.name))
	}
}
