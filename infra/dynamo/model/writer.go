package model

// retries is how often a fenced writer numbers again before it gives up.
const retries = 1

// writerMoves appends what writer i may do next.
func (m *Model) writerMoves(s *state, i int, out []move) []move {
	by := func(what string) step {
		return step{who: "w", index: i, what: what, from: s.writers[i].seq}
	}
	switch s.writers[i].pc {
	case toNumber:
		return m.number(s, i, out)
	case toPut:
		out = m.put(s, i, out)
		if m.Voids {
			out = m.putVoid(s, i, out)
		}
	case toHand:
		t := *s
		t.writers[i].pc = after(&t.writers[i])
		t.writers[i].reached = false
		out = hand(&t, record{}, by("hands over"), out)
	case written, gone:
		return out
	}
	if s.crashes > 0 {
		t := *s
		t.crashes--
		t.dropped = true
		t.writers[i].pc = after(&t.writers[i])
		t.writers[i].reached = false
		out = append(out, move{by("crashes"), t})
	}
	return out
}

// after is where a writer ends.
func after(w *writer) writerPC {
	if w.acked {
		return written
	}
	return gone
}

// number hands out numbers. When its answer is lost they stay a hole, and the
// writer numbers again.
func (m *Model) number(s *state, i int, out []move) []move {
	t := *s
	w := &t.writers[i]
	if m.late(s) {
		w.pc = gone
		return append(out, move{step{who: "w", index: i, what: "is moved on"}, t})
	}
	if !m.append(&t, w) {
		return out
	}
	by := step{who: "w", index: i, what: "numbers", from: w.seq, to: w.seq + w.n - 1}
	w.pc = toPut
	out = append(out, move{by, t})
	if s.losses > 0 {
		t.losses--
		t.writers[i] = s.writers[i]
		t.writers[i].unsure = true
		by.what = "numbers, answer lost,"
		out = append(out, move{by, t})
	}
	return out
}

// late reports whether the time window takes no more: what is for it belongs to
// a later one, which is another group.
func (m *Model) late(s *state) bool {
	return m.Ship > 0 && (s.now >= m.Kept || s.record.closed && m.Rules.ClosedRefuses)
}

// put puts the segment.
func (m *Model) put(s *state, i int, out []move) []move {
	t := *s
	w := &t.writers[i]
	at := &t.log(w.life)[w.seq]
	by := step{who: "w", index: i, what: "puts", from: w.seq}
	switch {
	case at.kind == nothing || !m.Rules.WriteOnce:
		*at = slot{kind: segment, writer: int8(i), n: w.n, at: w.at}
		if s.losses > 0 {
			u := t
			u.losses--
			lost := by
			lost.what = "puts, answer lost,"
			out = append(out, move{lost, u})
		}
	case at.kind == segment && at.writer == int8(i) && m.Rules.KnowOwnPut:
		by.what = "finds its own put"
	case !m.Rules.HeedFence:
		by.what = "takes a tombstone for its put"
	default:
		w.pc, by.what = toNumber, "is fenced"
		if w.tries++; w.tries > retries {
			w.pc, by.what = gone, "gives up"
		}
		w.life, w.seq, w.at, w.reached = 0, 0, 0, false
		return append(out, move{by, t})
	}
	w.acked = true
	w.pc = written
	if w.reached {
		w.pc = toHand
	}
	return append(out, move{by, t})
}

// putVoid puts a void segment in place of the segment that will never be
// written, because the request was refused elsewhere.
func (m *Model) putVoid(s *state, i int, out []move) []move {
	t := *s
	w := &t.writers[i]
	at := &t.log(w.life)[w.seq]
	if at.kind == nothing || !m.Rules.VoidOnce {
		*at = slot{kind: voidSegment, writer: int8(i), n: w.n}
	}
	w.pc = gone
	if w.reached && m.Rules.RefusedHands {
		w.pc = toHand
	}
	return append(out, move{step{who: "w", index: i, what: "puts void", from: w.seq, to: w.seq + w.n - 1}, t})
}
