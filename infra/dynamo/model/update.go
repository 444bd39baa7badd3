package model

// update runs the transition that the actor has in hand on the record that it
// has seen, and writes it. If another was faster, the failed condition returns
// the record as it is, and what that means is decided anew.
func (m *Model) update(s *state, i int, out []move) []move {
	t := *s
	a := &t.actors[i]
	by := act(i, doing[a.pc])
	by.from, by.to = a.from, a.to
	next := a.seen
	if !m.transition(&next, a, s.now) || !m.commit(&t, &a.seen, &next) {
		by.what += ": lost the race"
		a.seen = t.record
		if a.seen.life != s.actors[i].seen.life || !m.stillApplies(a, s.now) {
			m.again(&t, a)
		}
		return append(out, move{by, t})
	}
	wanted := m.wanted(&t.record, s.now)
	if !m.Rules.HandWritten {
		wanted = m.wanted(&next, s.now)
	}
	wanted = wanted && a.pc != toPark && a.pc != toClose
	m.proceed(&t, a, &next)
	if wanted {
		return hand(&t, t.record, by, out)
	}
	return append(out, move{by, t})
}

var doing = map[actorPC]string{
	toClose: "closes", toClaim: "claims", toSkip: "skips void", toArrive: "corrects firstAt", toNote: "records void",
	toPark: "waits for a hole", toRearm: "re-arms", toRecover: "recovers", toSettle: "settles",
}

// transition is the pure function: it changes a record, or reports that it
// does not apply to it.
func (m *Model) transition(r *record, a *actor, now int8) bool {
	k := r.find(a.from)
	if a.pc >= toClaim && a.pc <= toPark && r.head+1 != a.from {
		return false
	}
	switch a.pc {
	case toClose:
		r.closed = true
	case toClaim, toSkip:
		if a.to > r.tail || (a.pc == toClaim && m.blocked(r, now)) {
			return false
		}
		m.take(r, a, now)
	case toArrive:
		r.firstAt = max(r.firstAt, a.at)
	case toNote:
		r.void = max(r.void, a.items)
	case toPark:
		m.changed(r, now)
		r.checkAt = a.at
		return true
	case toRecover:
		if k < 0 || r.claims[k].due > now || r.sending(now) >= m.parallel() {
			return false
		}
		c := &r.claims[k]
		c.lease += 1 + c.lease%2
		c.due = now + m.Lease
	case toSettle:
		if k < 0 || (m.Rules.LeaseToSettle && r.claims[k].lease != a.lease) {
			return false
		}
		if c := &r.claims[k]; a.sent {
			*c = claim{}
		} else {
			c.lease++
			c.due = now + 1
		}
	default: // a re-armed check
	}
	m.changed(r, now)
	return true
}

// take moves the head over a prefix, as a claim if there are items in it.
func (m *Model) take(r *record, a *actor, now int8) {
	if a.pc == toClaim {
		for k := range r.claims {
			if r.claims[k].from == 0 {
				r.claims[k] = claim{from: a.from, to: a.to, mark: r.mark, items: a.items, lease: 1, due: now + m.Lease}
				break
			}
		}
	}
	r.head, r.mark = a.to, a.mark
	if m.Rules.ClaimResetVoid {
		r.void = 0
	}
	r.firstAt = max(r.firstAt, a.at)
	if !m.Rules.TrailFromRead && r.pending() > 0 {
		r.firstAt = now
	}
}

// stillApplies reports whether an actor that lost a race may write its
// transition on the newer record.
func (m *Model) stillApplies(a *actor, now int8) bool {
	r := a.seen
	return a.pc != toRearm && a.pc != toClose && m.transition(&r, a, now)
}

// again looks at the record anew, if what the actor had in hand is not of the
// kind that others see to.
func (m *Model) again(s *state, a *actor) {
	switch {
	case a.pc == toRearm, a.pc == toSettle, !m.Rules.LookAgain:
		a.sleep()
	default:
		a.seen = s.record
		m.next(s, a)
	}
}

// proceed is what follows a transition that was written.
func (m *Model) proceed(s *state, a *actor, next *record) {
	k := next.find(a.from)
	switch a.pc {
	case toRecover:
		if before := a.seen.find(a.from); before >= 0 && a.seen.claims[before].held() {
			s.taken = true
		}
	case toClaim:
		switch {
		case m.Ship > 0 && s.shipped:
			s.fault = Twice
		case !a.flush && !a.late && a.items < m.MaxItems:
			s.fault = Early
		}
		s.shipped = m.Ship > 0
	case toClose:
		a.seen, a.pc = s.record, toQuery
		return
	case toSkip:
		a.seen = s.record
		m.next(s, a)
		return
	default:
		a.sleep()
		return
	}
	c := &next.claims[k]
	*a = actor{pc: toSend, seen: s.record, from: c.from, to: c.to, items: c.items, mark: c.mark,
		lease: c.lease, ends: s.now + m.Lease}
}
