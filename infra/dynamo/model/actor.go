package model

// actorMoves appends what actor i may do next.
func (m *Model) actorMoves(s *state, i int, out []move) []move {
	a := &s.actors[i]
	if a.pc == asleep {
		return m.begin(s, i, out)
	}
	if s.crashes > 0 {
		t := *s
		t.crashes--
		t.dropped = true
		t.actors[i].sleep()
		out = append(out, move{act(i, "crashes"), t})
	}
	switch a.pc {
	case toQuery:
		return m.look(s, i, out)
	case toFence:
		return m.fence(s, i, out)
	case toSend:
		return m.send(s, i, out)
	default:
		return m.update(s, i, out)
	}
}

func act(i int, what string) step { return step{who: "a", index: i, what: what} }

func (a *actor) sleep() { *a = actor{} }

// begin appends the ways in which an actor may begin: as the check of any
// hint, however late, as the deliverer of what was handed over, or as a flush.
func (m *Model) begin(s *state, i int, out []move) []move {
	if s.runs == 0 {
		return out
	}
	t := *s
	t.runs--
	if r := &s.record; r.life > 0 {
		if m.wanted(r, s.now) {
			out = hand(&t, *r, act(i, "checks and hands over"), out)
		} else if next := *r; m.refresh(&next, s.now) {
			u := t
			u.actors[i].seen, u.actors[i].pc = *r, toRearm
			out = append(out, move{act(i, "checks"), u})
		}
		if m.Flush && r.pending() > 0 {
			u := t
			u.actors[i].seen, u.actors[i].flush = *r, true
			if m.next(&u, &u.actors[i]); u.actors[i].pc != asleep {
				out = append(out, move{act(i, "flushes"), u})
			}
		}
	}
	if s.queue.there {
		seen := s.queue.seen
		if seen.life == 0 {
			seen = s.record
		}
		t.actors[i].seen = seen
		m.next(&t, &t.actors[i])
		if s.doubles > 0 {
			u := t
			u.doubles--
			out = append(out, move{act(i, "delivers, doubled,"), u})
		}
		t.queue = message{}
		out = append(out, move{act(i, "delivers"), t})
	}
	return out
}

// refresh brings a record up to date, and reports whether that moves checkAt.
func (m *Model) refresh(r *record, now int8) bool {
	was := r.checkAt
	m.changed(r, now)
	return r.checkAt != was
}

// next decides what to do about the record that the actor has seen.
func (m *Model) next(s *state, a *actor) {
	r := &a.seen
	*a = actor{flush: a.flush, seen: a.seen}
	if r.life == 0 {
		a.sleep()
		return
	}
	if c := m.expired(r, s.now); c >= 0 {
		a.pc, a.from = toRecover, r.claims[c].from
		return
	}
	switch due := r.pending() > 0 && (a.flush || m.due(r, s.now)); {
	case due && !m.blocked(r, s.now):
		if a.pc = toQuery; m.Ship > 0 && !r.closed && m.Rules.CloseFirst {
			a.pc = toClose
		}
	case r.checkAt <= s.now:
		a.pc = toRearm
	default:
		a.sleep()
	}
}

// look reads the log and appends what may follow from it.
func (m *Model) look(s *state, i int, out []move) []move {
	r := &s.actors[i].seen
	p := m.query(s.log(r.life), r)
	late := m.timely(r, s.now)
	confirmed := late || s.actors[i].flush || p.items >= m.MaxItems || !m.Rules.ConfirmCount

	to := func(what string, pc actorPC, set func(a *actor)) {
		t := *s
		a := &t.actors[i]
		a.pc = pc
		set(a)
		out = append(out, move{act(i, what), t})
	}
	old := p.hole > 0 && s.now-p.holeAt >= m.Hole
	if old {
		to("finds an old hole", toFence, func(a *actor) { a.from, a.to = p.hole, p.holeTo })
	}
	prefix := func(a *actor) {
		a.from, a.to, a.items, a.mark, a.at, a.late = r.head+1, p.to, p.items, p.mark, p.nextAt, late
		if p.to == r.tail {
			a.at = r.lastAt // what is behind by now has arrived since
		}
	}
	switch {
	case old && m.Ship > 0 && m.Rules.WholeWaits: // nothing else before it is fenced
	case p.hole > 0 && m.Ship > 0 && m.Rules.WholeWaits:
		to("finds a young hole", toPark, func(a *actor) { a.from, a.at = r.head+1, p.holeAt+m.Hole })
	case p.items == 0 && p.to > r.head:
		to("finds void numbers", toSkip, prefix)
	case m.onlyWaited(s, &s.actors[i]) && p.firstAt != none && p.firstAt > r.firstAt:
		to("finds a later arrival", toArrive, func(a *actor) { a.from, a.at = r.head+1, p.firstAt })
	case p.items > 0 && confirmed:
		to("finds a batch", toClaim, prefix)
	case p.voids > r.void && m.Rules.RecordVoid:
		to("finds numbers void", toNote, func(a *actor) { a.from, a.items = r.head+1, p.voids })
	case p.hole > 0 && !old:
		to("finds a young hole", toPark, func(a *actor) { a.from, a.at = r.head+1, p.holeAt+m.Hole })
	case p.hole == 0:
		to("finds nothing to do", asleep, func(a *actor) { a.sleep() })
		out[len(out)-1].to.fault = Spinning
	}
	return out
}

// onlyWaited reports whether the wait for the oldest item is the actor's only
// reason.
func (m *Model) onlyWaited(s *state, a *actor) bool {
	r := &a.seen
	return !a.flush && !m.full(r) && !m.idled(r, s.now) && m.waited(r, s.now)
}

// fence puts the next tombstone of a hole. One that loses means that a segment
// has arrived, and leaves it alone.
func (m *Model) fence(s *state, i int, out []move) []move {
	t := *s
	a := &t.actors[i]
	by := act(i, "fences")
	by.from = a.from
	switch at := &t.log(a.seen.life)[a.from]; {
	case at.kind != nothing:
		by.what = "fences in vain"
	case m.Rules.FenceEach:
		*at = slot{kind: tombstone}
	default:
		*at = slot{kind: voidSegment, n: a.to - a.from + 1}
	}
	if a.from < a.to && m.Rules.FenceEach {
		a.from++
	} else {
		a.pc, a.from, a.to = toQuery, 0, 0
	}
	return append(out, move{by, t})
}

// send sends the claim's batch, with either outcome.
func (m *Model) send(s *state, i int, out []move) []move {
	if s.fails > 0 {
		t := *s
		t.fails--
		t.actors[i].pc = toSettle
		out = append(out, move{act(i, "fails to send"), t})
	}
	t := *s
	a := &t.actors[i]
	t.fault = m.materialise(&t, a)
	a.pc, a.sent = toSettle, true
	return append(out, move{act(i, "sends"), t})
}
