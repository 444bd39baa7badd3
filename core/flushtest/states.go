package flushtest

import (
	"time"

	"sluice/core"
)

// state is a state of one buffer, and what each set of options does in it. here
// is what differs on a store that is one process's alone.
type state struct {
	name                      string
	shared                    bool // needs another process
	buffer                    string
	arrange                   func(*probe)
	plain, force, final, both string
	finalHere                 string // final, when no turn is to be waited for; "": the same
}

// fail answers that the destination does not work.
func fail(*core.Batch) core.Response { return core.Response{Status: 500} }

func states() []state {
	const (
		shipped     = "k1×2#1 k2×1#1 | rows 3 | here 54s | there 54s, last 0s"
		early       = " | skipped cadence 24s | here 24s | there 24s, last -30s"
		again       = "k1×1#1 | rows 1 | here 54s | there 54s, last 0s"
		held        = " | skipped cadence 54s | here 54s | there 54s, held"
		besideHeld  = "k2×1#1 | rows 1 | here 54s | there 54s, last 0s, held"
		recovered   = "k1×1#1 k2×1#1 | rows 2, recovered 1 of 1 | here 54s | there 54s, last 0s"
		fresh       = "k1×1#1 k2×1#1 | rows 2 | here 54s | there 54s, last 0s"
		retried     = "k1×1#1 k1×1#2 k2×1#1 | rows 3, recovered 1 of 1 | here 54s | there 54s, last 0s"
		emptyTurn   = " |  | here 0s | there 0s"
		inside      = "22:13×2#1 22:13×1#1 | rows 3, buckets 1 | here 54s | there 54s, last 0s"
		both        = "22:12×1#1 22:13×1#1 | rows 2, buckets 2 | here 54s | there 54s, last 0s"
		folded      = "22:13×2#1 22:13×1#1 | rows 3, buckets 1 | here 54s | there 54s, last 0s"
		afterBack   = "k1×1#1 | rows 1 | here 54s | there 54s, last 0s"
		withoutTurn = "k1×2#1 k2×1#1 | rows 3 | here 0s | there 0s"
	)
	all := func(s state, line string) state {
		s.plain, s.force, s.final, s.both = line, line, line, line
		return s
	}
	return []state{
		all(state{name: "nothing pending", buffer: "b", arrange: func(*probe) {}}, emptyTurn),
		all(state{name: "first flush ever", buffer: "b", arrange: func(p *probe) { p.put("b", "k1", "k2", "k1") }}, shipped),
		all(state{name: "pending and not due", buffer: "c", arrange: func(p *probe) { p.put("c", "k1", "k2", "k1") }}, withoutTurn),
		{
			name: "too early by cadence", buffer: "b", arrange: func(p *probe) {
				p.put("b", "k1")
				p.here.ships("b", 1)
				p.pass(30 * time.Second)
				p.put("b", "k1")
			},
			plain: early, force: again, final: early, finalHere: again, both: again,
		},
		{
			name: "just before the slack", buffer: "b", arrange: func(p *probe) {
				p.put("b", "k1")
				p.here.ships("b", 1)
				p.pass(floor - time.Millisecond)
				p.put("b", "k1")
			},
			plain: " | skipped cadence 1ms | here 1ms | there 1ms, last -53.999s",
			force: again, final: " | skipped cadence 1ms | here 1ms | there 1ms, last -53.999s", finalHere: again, both: again,
		},
		all(state{name: "within the slack", buffer: "b", arrange: func(p *probe) {
			p.put("b", "k1")
			p.here.ships("b", 1)
			p.pass(floor)
			p.put("b", "k1")
		}}, again),
		all(state{name: "an empty flush just before", buffer: "b", arrange: func(p *probe) {
			p.here.ships("b", 0)
			p.put("b", "k1")
		}}, again),
		{
			name: "another flush running here", buffer: "b", arrange: func(p *probe) {
				p.put("b", "k1")
				p.dies(p.here, "b", 1)
				p.put("b", "k2")
			},
			plain: held, force: besideHeld, final: held, finalHere: besideHeld, both: besideHeld,
		},
		all(state{name: "another flush running here, without a cadence", buffer: "c", arrange: func(p *probe) {
			p.put("c", "k1")
			p.dies(p.here, "c", 1)
			p.put("c", "k2")
		}}, "k2×1#1 | rows 1 | here 0s | there 0s"),
		{
			name: "turn held by another", shared: true, buffer: "b", arrange: func(p *probe) {
				p.put("b", "k1")
				p.dies(p.process(), "b", 1)
				p.put("b", "k2")
			},
			plain: held, force: besideHeld, final: held, both: besideHeld,
		},
		{
			name: "turn taken recently by another", shared: true, buffer: "b", arrange: func(p *probe) {
				p.put("b", "k1")
				p.process().ships("b", 1)
				p.pass(30 * time.Second)
				p.put("b", "k1")
			},
			plain: early, force: again, final: early, both: again,
		},
		{
			name: "expired claim of a dead flusher", buffer: "b", arrange: func(p *probe) {
				p.put("b", "k1")
				p.dies(p.process(), "b", 1)
				p.put("b", "k2")
				p.pass(turnLease)
			},
			plain: recovered, force: recovered + ", held", final: recovered, both: recovered + ", held",
		},
		{
			name: "claim waiting for its retry", buffer: "b", arrange: func(p *probe) {
				p.put("b", "k1")
				p.answers(fail)
				p.here.flush("b", core.FlushOptions{})
				p.answers(nil)
				p.taken()
				p.put("b", "k1", "k2")
			},
			plain: fresh, force: retried, final: retried, both: retried,
		},
		all(state{name: "open window", buffer: "w", arrange: func(p *probe) {
			p.put("w", "r1", "r2")
			p.pass(time.Minute - time.Millisecond)
		}}, emptyTurn),
		{
			name: "window inside its grace", buffer: "w", arrange: func(p *probe) {
				p.pass(-time.Second)
				p.put("w", "r1", "r2", "r3")
				p.pass(5*time.Second + 999*time.Millisecond)
				p.put("w", "r1") // into the one that is open
			},
			plain: emptyTurn, force: emptyTurn, final: inside, both: inside,
		},
		all(state{name: "window past its grace", buffer: "w", arrange: func(p *probe) {
			p.pass(-time.Second)
			p.put("w", "r1", "r2", "r3")
			p.pass(6 * time.Second)
			p.put("w", "r1")
		}}, inside),
		all(state{name: "two windows past their grace", buffer: "w", arrange: func(p *probe) {
			p.pass(-61 * time.Second)
			p.put("w", "r1")
			p.pass(time.Minute)
			p.put("w", "r1")
			p.pass(time.Minute)
		}}, both),
		all(state{name: "window ahead of a clock that was set back", buffer: "w", arrange: func(p *probe) {
			p.pass(10 * time.Minute)
			p.put("w", "r1")
			p.pass(-10 * time.Minute)
		}}, emptyTurn),
		all(state{name: "folded window past its grace", buffer: "f", arrange: func(p *probe) {
			p.pass(-time.Second)
			p.put("f", "r1", "r2", "r3", "r1", "r1")
			p.pass(6 * time.Second)
			p.put("f", "r1")
		}}, folded),
		all(state{name: "clock set back", buffer: "b", arrange: func(p *probe) {
			p.put("b", "k1")
			p.here.ships("b", 1)
			p.pass(-time.Hour)
			p.put("b", "k1")
		}}, afterBack),
	}
}
