package model

// number is what one number of the log turns out to be.
type number struct {
	kind   numberKind
	start  int8 // of the segment that covers it
	writer int8
	index  int8 // in the writer's request
	at     int8
}

type numberKind int8

const (
	hole numberKind = iota
	void
	item
)

// read says what number q is to one who reads the log from a number on.
func (m *Model) read(log *journal, from, q int8) number {
	for start := q; start >= max(from, 1); start-- {
		at := &log[start]
		if (at.kind != segment && at.kind != voidSegment) || start+at.n <= q {
			continue
		}
		if at.kind == voidSegment || (!m.Rules.SkipWhole && start < q && log[q].kind == tombstone) {
			return number{kind: void, start: start}
		}
		return number{kind: item, start: start, writer: at.writer, index: q - start, at: at.at}
	}
	if log[q].kind == tombstone {
		return number{kind: void, start: q}
	}
	return number{kind: hole, start: q}
}

// prefix is what a deliverer may take of a group: the numbers up to the first
// hole, or up to maxItems items.
type prefix struct {
	to           int8
	items, voids int8
	mark         int8 // where the segment starts that holds to + 1
	firstAt      int8 // arrival of the first number if it is an item, else none
	nextAt       int8 // arrival of to + 1 if that is known, else 0
	hole         int8 // the first hole's first and last number; 0: there is none
	holeTo       int8
	holeAt       int8 // since when it has been one, at the latest
}

// query reads the log behind a record.
func (m *Model) query(log *journal, r *record) prefix {
	from := r.mark
	if !m.Rules.Mark {
		from = r.head + 1
	}
	p := prefix{to: r.head, firstAt: none}
	for q := r.head + 1; q <= r.tail && (m.Ship > 0 || p.items < m.MaxItems); q++ {
		n := m.read(log, from, q)
		if n.kind == hole && m.Rules.HoleEndsPrefix {
			m.measure(log, r, from, q, &p)
			break
		}
		if n.kind == item {
			p.items++
			if q == r.head+1 {
				p.firstAt = n.at
			}
		} else {
			p.voids++
		}
		p.to = q
	}
	p.mark = p.to + 1
	if p.to < r.tail {
		if n := m.read(log, from, p.to+1); n.kind == item {
			p.mark, p.nextAt = n.start, n.at
		}
	}
	return p
}

// measure finds the end and the age of the hole at q: it is as old as the next
// segment, or as the newest append.
func (m *Model) measure(log *journal, r *record, from, q int8, p *prefix) {
	p.hole, p.holeTo, p.holeAt = q, q, r.lastAt
	open := true
	for next := q + 1; next <= r.tail; next++ {
		n := m.read(log, from, next)
		if open = open && n.kind == hole; open {
			p.holeTo = next
		}
		if n.kind == item {
			p.holeAt = n.at
			return
		}
	}
}

// materialise marks the items of an actor's claim as delivered, and reports
// what is wrong with them.
func (m *Model) materialise(s *state, a *actor) Kind {
	from := a.mark
	if !m.Rules.Mark {
		from = a.from
	}
	var wrong Kind
	items := int8(0)
	for q := a.from; q <= a.to; q++ {
		n := m.read(s.log(a.seen.life), from, q)
		if n.kind != item {
			continue
		}
		items++
		bit := uint8(1) << n.index
		if s.delivered[n.writer]&bit != 0 && !s.taken {
			wrong = Doubled
		}
		s.delivered[n.writer] |= bit
	}
	if items != a.items {
		wrong = Unstable
	}
	return wrong
}
