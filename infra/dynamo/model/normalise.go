package model

// normalise makes states equal whose difference nothing can tell, so that
// fewer have to be visited.
func (m *Model) normalise(s *state) {
	if s.record.pending() == 0 {
		s.record.lastAt = 0
	}
	for i := range s.writers {
		w := &s.writers[i]
		switch {
		case w.pc == gone:
			*w = writer{pc: gone, n: w.n}
		case w.pc == written && s.delivered[i] == 1<<w.n-1:
			w.at, w.tries, w.unsure, w.reached = 0, 0, false, false
		case w.pc == written:
			w.tries, w.unsure, w.reached = 0, false, false
		}
	}
	if m.Rules.ConditionRev && m.Rules.ConditionLife && m.Rules.FreshLife {
		m.forget(s)
	}
}

// forget drops what is known to be stale: revs are only ever compared with the
// record's, and one that has passed on never returns. So an actor that is about
// to write on a stale record will do so on the one that its failed condition
// returns.
func (m *Model) forget(s *state) {
	rev := s.record.rev
	relative := func(r *record) bool {
		stale := r.life != s.record.life || r.rev != rev
		r.rev = 1
		if stale {
			r.rev = 0
		}
		return stale
	}
	for i := range s.actors {
		a := &s.actors[i]
		if a.pc == asleep {
			continue
		}
		if relative(&a.seen) && a.pc != toQuery && a.pc != toFence {
			a.seen = record{life: a.seen.life}
		}
	}
	if s.queue.seen.life > 0 {
		relative(&s.queue.seen)
	}
	if s.record.life > 0 {
		s.record.rev = 1
	}
}
