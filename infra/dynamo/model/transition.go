package model

// sending is how many claims are held under a lease that has not passed.
func (r *record) sending(now int8) int {
	n := 0
	for i := range r.claims {
		if c := &r.claims[i]; c.from > 0 && c.held() && c.due > now {
			n++
		}
	}
	return n
}

// slots is how many claims the group may have.
func (m *Model) slots() int {
	if m.Ordered && m.Rules.OneClaimInOrder {
		return 1
	}
	return m.Claims
}

// parallel is how many claims may be sent at a time.
func (m *Model) parallel() int {
	if m.Ordered && m.Rules.OneClaimInOrder {
		return 1
	}
	return m.Concurrency
}

// blocked reports whether no new claim may be opened.
func (m *Model) blocked(r *record, now int8) bool {
	return r.claimed() >= m.slots() || r.sending(now) >= m.parallel()
}

// blockedUntil is when what blocks a new claim changes by itself.
func (m *Model) blockedUntil(r *record, now int8) int8 {
	if r.sending(now) < m.parallel() {
		return max(r.claimDue(), now)
	}
	due := none
	for i := range r.claims {
		if c := &r.claims[i]; c.from > 0 && c.held() && c.due > now {
			due = min(due, c.due)
		}
	}
	return due
}

// expired is the index of a claim that wants a deliverer, or -1.
func (m *Model) expired(r *record, now int8) int {
	oldest := -1
	if r.sending(now) >= m.parallel() {
		return oldest
	}
	for i := range r.claims {
		c := &r.claims[i]
		if c.from > 0 && c.due <= now && (oldest < 0 || c.from < r.claims[oldest].from) {
			oldest = i
		}
	}
	return oldest
}

// full reports whether the count condition holds, known void numbers left out.
func (m *Model) full(r *record) bool { return m.Ship == 0 && r.pending()-r.void >= m.MaxItems }

func (m *Model) waited(r *record, now int8) bool {
	return m.Ship == 0 && r.pending() > 0 && r.firstAt+m.Wait <= now
}

func (m *Model) idled(r *record, now int8) bool {
	return m.Ship == 0 && r.pending() > 0 && r.lastAt+m.Idle <= now
}

// over reports whether the group is a time window that is to be shipped.
func (m *Model) over(r *record, now int8) bool {
	return m.Ship > 0 && r.pending() > 0 && (r.closed || m.Ship <= now)
}

// timely reports whether time alone makes the group due.
func (m *Model) timely(r *record, now int8) bool {
	return m.waited(r, now) || m.idled(r, now) || m.over(r, now)
}

func (m *Model) due(r *record, now int8) bool { return m.full(r) || m.timely(r, now) }

// deadline is when a group that is not full is due.
func (m *Model) deadline(r *record) int8 {
	if m.Ship > 0 {
		return m.Ship
	}
	return min(r.lastAt+m.Idle, r.firstAt+m.Wait)
}

// wanted reports whether a deliverer would find something to do.
func (m *Model) wanted(r *record, now int8) bool {
	return m.expired(r, now) >= 0 || (!m.blocked(r, now) && m.due(r, now))
}

// changed finishes a transition: checkAt becomes the true deadline.
func (m *Model) changed(r *record, now int8) {
	switch {
	case r.pending() == 0:
		r.firstAt, r.checkAt = none, none
	case !m.due(r, now):
		r.checkAt = m.deadline(r)
	case m.blocked(r, now):
		r.checkAt = m.blockedUntil(r, now)
	default:
		r.checkAt = now
	}
}

// append is the UpdateItem that numbers a writer's items. It reports whether
// it may.
func (m *Model) append(s *state, w *writer) bool {
	r := &s.record
	if r.life == 0 && !m.create(s) {
		return false
	}
	if r.tail+w.n > m.Numbers || (m.Cap > 0 && m.Rules.RoomCondition && r.room < w.n) {
		return false
	}
	was := m.full(r)
	w.life, w.seq, w.at = r.life, r.tail+1, s.now
	r.tail += w.n
	r.lastAt = s.now
	if m.Cap > 0 {
		r.room -= w.n
	}
	if m.Rules.AppendKeeps {
		r.expires = none
	}
	r.firstAt = earlierIfNone(r.firstAt, s.now)
	first := min(m.Idle, m.Wait)
	if !m.Rules.FirstCheckBoth {
		first = m.Idle
	}
	first += s.now
	if m.Ship > 0 {
		first = max(m.Ship, s.now)
	}
	r.checkAt = earlierIfNone(r.checkAt, first)
	if !m.Rules.TwoIndexes {
		r.due = earlierIfNone(r.due, first)
	}
	was = was && !(w.unsure && m.Rules.UnsureHands)
	w.reached = m.Rules.ReachedHands && !was && m.full(r)
	return true
}

// earlierIfNone is DynamoDB's if_not_exists.
func earlierIfNone(at, other int8) int8 {
	if at == none {
		return other
	}
	return at
}

// create makes the record anew, if another life may begin.
func (m *Model) create(s *state) bool {
	if s.lives == 0 || m.Rules.FreshLife {
		if s.lives == m.Lives {
			return false
		}
		s.lives++
	}
	s.record = record{life: s.lives, mark: 1, room: m.Cap, firstAt: none, checkAt: none, expires: none, due: none}
	return true
}

// commit writes a transition from seen to next, if its condition holds.
func (m *Model) commit(s *state, seen, next *record) bool {
	r := &s.record
	emptied := next.pending() == 0
	switch {
	case r.life == 0,
		m.Rules.ConditionLife && r.life != seen.life,
		m.Rules.ConditionRev && r.rev != seen.rev,
		m.Rules.ConditionTail && emptied && r.tail != seen.tail:
		return false
	}
	w := *next
	w.life, w.rev = r.life, r.rev+1
	if m.Rules.OwnFieldsOnly {
		w.tail, w.lastAt = r.tail, r.lastAt
	}
	if m.Cap > 0 {
		w.room = next.room + next.head - seen.head
		if m.Rules.RoomAdds {
			w.room = r.room + next.head - seen.head
		}
	}
	w.expires = none
	if m.Lives > 1 && emptied && (next.claimed() == 0 || !m.Rules.ExpireSettled) {
		w.expires = s.now + m.Expire
		if next.closed && m.Rules.ClosedStays {
			w.expires = max(w.expires, m.Kept)
		}
	}
	if !m.Rules.TwoIndexes {
		w.due = min(next.checkAt, next.claimDue())
	}
	*r = w
	return true
}
