package model

import "fmt"

// Kind is what an exploration may find broken.
type Kind string

// What may be broken.
const (
	Lost       Kind = "an acknowledged item is lost"
	Stranded   Kind = "a writer could still put under a life that is gone"
	Misplaced  Kind = "an acknowledged item is not where its writer believes"
	Overlap    Kind = "claims overlap"
	Malformed  Kind = "the record is malformed"
	Doubled    Kind = "an item is delivered twice though no lease was taken over"
	Unstable   Kind = "a batch has other members than when it was claimed"
	Unarmed    Kind = "pending items without a check"
	LateCheck  Kind = "the check is later than the deadline"
	Unindexed  Kind = "the due index is later than what is due"
	Undrained  Kind = "something is never delivered"
	TwoHolders Kind = "two live leases on one claim"
	Disordered Kind = "two batches of an ordered group in flight"
	Waiting    Kind = "a full group that nobody delivers"
	Early      Kind = "a batch leaves before it is due"
	Spinning   Kind = "a group that is handed over again and again"
	Overcount  Kind = "more numbers recorded as void than are"
	Twice      Kind = "a time window is shipped twice"
	Overfull   Kind = "room and pending do not add up to the cap"
)

// check holds a state against every invariant.
func (m *Model) check(s *state) (Kind, string) {
	if s.fault != "" {
		return s.fault, ""
	}
	for _, holds := range []func(*state) (Kind, string){
		m.wellFormed, m.nothingLost, m.nothingStranded, m.leasesExclusive, m.checkInTime, m.fullIsSeen,
	} {
		if kind, detail := holds(s); kind != "" {
			return kind, detail
		}
	}
	return "", ""
}

// wellFormed: claims lie apart and behind the head, room adds up, void numbers
// are void.
func (m *Model) wellFormed(s *state) (Kind, string) {
	r := &s.record
	if r.life == 0 {
		return "", ""
	}
	if r.head > r.tail {
		return Malformed, fmt.Sprintf("head %d, tail %d", r.head, r.tail)
	}
	for i := range r.claims {
		c := &r.claims[i]
		if c.to > r.head {
			return Malformed, fmt.Sprintf("claim to %d, head %d", c.to, r.head)
		}
		for j := range i {
			if d := &r.claims[j]; c.from > 0 && d.from > 0 && c.from <= d.to && d.from <= c.to {
				return Overlap, fmt.Sprintf("%d..%d and %d..%d", c.from, c.to, d.from, d.to)
			}
		}
	}
	if m.Cap > 0 && (r.room < 0 || r.room+r.pending() != m.Cap) {
		return Overfull, fmt.Sprintf("room %d, pending %d, cap %d", r.room, r.pending(), m.Cap)
	}
	voids := int8(0)
	for q := r.head + 1; q <= r.tail; q++ {
		if m.read(s.log(r.life), 1, q).kind == void {
			voids++
		}
	}
	if r.void > voids {
		return Overcount, fmt.Sprintf("%d recorded, %d are", r.void, voids)
	}
	return "", ""
}

// nothingLost: what was acknowledged is pending, claimed or delivered.
func (m *Model) nothingLost(s *state) (Kind, string) {
	for i := range m.Items {
		w := &s.writers[i]
		if !w.acked {
			continue
		}
		for k := range w.n {
			if s.delivered[i]&(1<<k) != 0 {
				continue
			}
			if kind := m.kept(s, i, k); kind != "" {
				return kind, fmt.Sprintf("number %d of writer %d", w.seq+k, i)
			}
		}
	}
	return "", ""
}

// kept says what is wrong with an undelivered item.
func (m *Model) kept(s *state, i int, k int8) Kind {
	w, r := &s.writers[i], &s.record
	q := w.seq + k
	if w.life != r.life || q > r.tail {
		return Lost
	}
	if n := m.read(s.log(w.life), 1, q); n.kind != item || int(n.writer) != i || n.index != k {
		return Misplaced
	}
	if q > r.head {
		return ""
	}
	for j := range r.claims {
		if c := &r.claims[j]; c.from > 0 && c.from <= q && q <= c.to {
			return ""
		}
	}
	return Lost
}

// nothingStranded: a writer whose life is gone finds its number taken, and so
// appends again under the new one.
func (m *Model) nothingStranded(s *state) (Kind, string) {
	for i := range m.Items {
		w := &s.writers[i]
		if w.pc == toPut && w.life != s.record.life && s.log(w.life)[w.seq].kind == nothing {
			return Stranded, fmt.Sprintf("number %d of writer %d", w.seq, i)
		}
	}
	return "", ""
}

// leasesExclusive: no two deliverers send under leases that both still live,
// if they send the same claim, or the group is ordered.
func (m *Model) leasesExclusive(s *state) (Kind, string) {
	a, b := &s.actors[0], &s.actors[1]
	live := func(a *actor) bool { return a.pc == toSend && a.ends > s.now }
	if !live(a) || !live(b) || a.seen.life != b.seen.life {
		return "", ""
	}
	detail := fmt.Sprintf("claims %d and %d", a.from, b.from)
	switch {
	case a.from == b.from:
		return TwoHolders, detail
	case m.Ordered:
		return Disordered, detail
	}
	return "", ""
}

// checkInTime: while acknowledged items are pending a check is armed, and not
// later than their true deadline unless the group is blocked, or waits for a
// young hole.
func (m *Model) checkInTime(s *state) (Kind, string) {
	r := &s.record
	first := none
	for i := range m.Items {
		w := &s.writers[i]
		if last := w.n - 1; w.acked && w.life == r.life && w.seq+last > r.head && s.delivered[i]&(1<<last) == 0 {
			first = min(first, w.at)
		}
	}
	if first == none {
		return "", ""
	}
	if r.checkAt == none {
		return Unarmed, ""
	}
	detail := fmt.Sprintf("checkAt %d, due index %d", r.checkAt, r.due)
	if !m.Rules.TwoIndexes && r.due > min(r.checkAt, r.claimDue()) {
		return Unindexed, detail
	}
	deadline := min(r.lastAt+m.Idle, first+m.Wait)
	if m.Ship > 0 {
		deadline = m.Ship
	}
	if r.checkAt > max(deadline, s.now) && !m.excused(s) {
		return LateCheck, fmt.Sprintf("%s, deadline %d", detail, deadline)
	}
	return "", ""
}

// excused reports whether a check may be later than the deadline: a blocked
// group waits for its claims, and a hole for its timeout.
func (m *Model) excused(s *state) bool {
	r := &s.record
	if r.checkAt <= r.lastAt+m.Hole {
		return true
	}
	latest := int8(0)
	for i := range r.claims {
		if c := &r.claims[i]; c.from > 0 {
			latest = max(latest, c.due)
		}
	}
	return m.blocked(r, s.now) && r.checkAt <= latest
}

// fullIsSeen: when all is quiet and nothing has failed, a group with maxItems
// real items and a free slot has been handed over.
func (m *Model) fullIsSeen(s *state) (Kind, string) {
	r := &s.record
	if m.Ship > 0 || s.dropped || s.queue.there || r.life == 0 || m.blocked(r, s.now) || r.checkAt <= max(s.now, r.lastAt+m.Hole) {
		return "", ""
	}
	for i := range s.writers {
		w := &s.writers[i]
		if w.reached && (w.pc == toPut || w.pc == toHand) || w.unsure && w.pc == toNumber {
			return "", "" // it will
		}
	}
	for i := range s.actors {
		if s.actors[i].pc != asleep {
			return "", ""
		}
	}
	items := int8(0)
	for q := r.head + 1; q <= r.tail; q++ {
		if m.read(s.log(r.life), 1, q).kind == item {
			items++
		}
	}
	if items >= m.MaxItems {
		return Waiting, fmt.Sprintf("%d items, checkAt %d", items, r.checkAt)
	}
	return "", ""
}
