package model

import "fmt"

// afterAll is later than every time of an exploration.
const afterAll int8 = 60

// quiet is a state once every process has died, nothing fails any more and
// all timeouts have passed: what is left is for the sweep to find.
func (m *Model) quiet(s *state) state {
	q := *s
	for i := range q.writers {
		w := &q.writers[i]
		w.pc, w.tries, w.at, w.unsure, w.reached = after(w), 0, 0, false, false
		if !w.acked {
			*w = writer{pc: gone, n: w.n}
		}
	}
	q.actors = [maxActors]actor{}
	q.queue = message{}
	q.runs, q.doubles, q.fails, q.crashes, q.losses, q.now = 0, 0, 0, 0, 0, afterAll
	q.taken, q.dropped, q.fault = true, true, ""
	return q
}

// drain sweeps a quiet state until its indexes are empty. Everything
// acknowledged must then be delivered, and nothing be left.
func (m *Model) drain(s *state) (Kind, string) {
	var out []move
	for range 60 {
		r := &s.record
		due := min(r.checkAt, r.claimDue())
		if !m.Rules.TwoIndexes {
			due = r.due
		}
		if r.life == 0 || due == none {
			break
		}
		s.actors[0] = actor{pc: toQuery, seen: *r}
		m.next(s, &s.actors[0])
		for range 60 {
			a := &s.actors[0]
			if a.pc == asleep {
				break
			}
			out = m.actorMoves(s, 0, out[:0])
			*s = out[len(out)-1].to // a send succeeds
		}
		for i := range s.record.claims {
			s.record.claims[i].due = min(s.record.claims[i].due, afterAll) // leases end
		}
		s.record.rev %= 64
		s.queue = message{}
	}
	for i := range m.Items {
		if w := &s.writers[i]; w.acked && s.delivered[i] != 1<<w.n-1 {
			return Undrained, fmt.Sprintf("items of writer %d", i)
		}
	}
	if r := &s.record; r.life > 0 && (r.pending() > 0 || r.claimed() > 0) {
		return Undrained, fmt.Sprintf("the record stays at head %d, tail %d, %d claims", r.head, r.tail, r.claimed())
	}
	return "", ""
}
