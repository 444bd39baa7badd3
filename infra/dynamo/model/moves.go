package model

import "fmt"

// step names a move in a trace.
type step struct {
	who      string
	index    int
	what     string
	from, to int8
}

func (s step) String() string {
	text := s.what
	if s.who != "" {
		text = fmt.Sprintf("%s%d %s", s.who, s.index, text)
	}
	switch {
	case s.to > 0:
		return fmt.Sprintf("%s %d..%d", text, s.from, s.to)
	case s.from > 0:
		return fmt.Sprintf("%s %d", text, s.from)
	}
	return text
}

// move is a step and where it leads.
type move struct {
	step step
	to   state
}

// moves appends everything that may happen next to out.
func (m *Model) moves(s *state, out []move) []move {
	if s.now < m.End {
		t := *s
		t.now++
		out = append(out, move{step{what: "tick"}, t})
	}
	if s.queue.there && s.losses > 0 {
		t := *s
		t.losses--
		t.dropped = true
		t.queue = message{}
		out = append(out, move{step{what: "delivery lost"}, t})
	}
	if s.record.life > 0 && s.record.expires <= s.now {
		t := *s
		t.record = record{}
		if !m.Rules.LogOutlives {
			*t.log(s.record.life) = journal{}
		}
		out = append(out, move{step{what: "record expires"}, t})
	}
	for i := range m.Items {
		out = m.writerMoves(s, i, out)
	}
	for i := range m.Actors {
		out = m.actorMoves(s, i, out)
	}
	return out
}

// hand hands a delivery over and appends where that leads. A queue that holds
// one already keeps either: a delivery may be old, and a single one stands for
// any number of them.
func hand(t *state, seen record, by step, out []move) []move {
	if t.queue.there && t.queue.seen != seen {
		out = append(out, move{by, *t})
	}
	u := *t
	u.queue = message{there: true, seen: seen}
	return append(out, move{by, u})
}
