package model

import (
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"strings"
)

// Result is what an exploration has seen.
type Result struct {
	States      int
	Transitions int
	Complete    bool // false: the limit was reached
	Violation   *Violation
}

func (r Result) String() string {
	found := "no violation"
	if r.Violation != nil {
		found = r.Violation.String()
	}
	if !r.Complete && r.Violation == nil {
		found += " (not complete)"
	}
	return fmt.Sprintf("model: %d states, %d transitions, %s", r.States, r.Transitions, found)
}

// Violation is a broken invariant, and how it came to be.
type Violation struct {
	Kind   Kind
	Detail string
	Trace  []string
	State  string
}

func (v *Violation) String() string {
	return fmt.Sprintf("%s: %s\n  %s\n%s", v.Kind, v.Detail, strings.Join(v.Trace, "\n  "), v.State)
}

// explorer visits states breadth first. Of a state that was visited it keeps
// the fingerprint and its parent's, 16 bytes, as TLC does; two states of one
// fingerprint (about one chance in a million at ten million states) would be
// taken for one.
type explorer struct {
	m       *Model
	seed    maphash.Seed
	parent  map[uint64]uint64
	drained map[uint64]struct{}
	moves   []move
	result  Result
}

// Explore visits every state that can be reached, at most limit of them, and
// stops at the first violation.
func (m *Model) Explore(limit int) Result {
	e := explorer{m: m, seed: maphash.MakeSeed(), parent: map[uint64]uint64{}, drained: map[uint64]struct{}{}}
	start := m.start()
	e.parent[e.fingerprint(&start)] = 0
	var level, next frontier
	level.push(&start)
	for level.n > 0 {
		for s := range level.drain() {
			if !e.visit(s, &next) {
				return e.result
			}
		}
		e.result.States = len(e.parent)
		if len(e.parent) > limit {
			return e.result
		}
		level = next
		next = frontier{}
	}
	e.result.Complete = true
	return e.result
}

// visit checks a state and puts its new successors on the next level. It
// reports whether nothing is broken.
func (e *explorer) visit(s *state, next *frontier) bool {
	if kind, detail := e.broken(s); kind != "" {
		e.result.States = len(e.parent)
		e.result.Violation = &Violation{kind, detail, e.trace(s), describe(s)}
		return false
	}
	from := e.fingerprint(s)
	e.moves = e.m.moves(s, e.moves[:0])
	e.result.Transitions += len(e.moves)
	for i := range e.moves {
		t := &e.moves[i].to
		e.m.normalise(t)
		to := e.fingerprint(t)
		if _, seen := e.parent[to]; !seen {
			e.parent[to] = from
			next.push(t)
		}
	}
	return true
}

// fingerprint stands for a state. Which of the actors is which makes no
// difference.
func (e *explorer) fingerprint(s *state) uint64 {
	t := *s
	if a, b := &t.actors[0], &t.actors[1]; maphash.Comparable(e.seed, *a) > maphash.Comparable(e.seed, *b) {
		*a, *b = *b, *a
	}
	return maphash.Comparable(e.seed, t)
}

// broken checks a state, and what would become of it. Many states have the
// same future once all is quiet; it is looked at once.
func (e *explorer) broken(s *state) (Kind, string) {
	if kind, detail := e.m.check(s); kind != "" {
		return kind, detail
	}
	q := e.m.quiet(s)
	e.m.normalise(&q)
	future := maphash.Comparable(e.seed, q)
	if _, done := e.drained[future]; done {
		return "", ""
	}
	e.drained[future] = struct{}{}
	return e.m.drain(&q)
}

// trace finds the way to a state again by its ancestors' fingerprints.
func (e *explorer) trace(s *state) []string {
	var way []uint64
	for p := e.fingerprint(s); p != 0; p = e.parent[p] {
		way = append(way, p)
	}
	var steps []string
	at := e.m.start()
	for i := len(way) - 2; i >= 0; i-- {
		for _, v := range e.m.moves(&at, nil) {
			t := v.to
			e.m.normalise(&t)
			if e.fingerprint(&t) == way[i] {
				steps = append(steps, v.step.String())
				at = t
				break
			}
		}
	}
	return steps
}

// Walk takes one random way from the start to an end, checking every state.
// Time passes more slowly than it might, so that more happens at once.
func (m *Model) Walk(rng *rand.Rand) Result {
	var r Result
	var trace []string
	var out []move
	s := m.start()
	for {
		kind, detail := m.check(&s)
		if kind == "" {
			q := m.quiet(&s)
			kind, detail = m.drain(&q)
		}
		if kind != "" {
			r.Violation = &Violation{kind, detail, trace, describe(&s)}
			return r
		}
		r.States++
		out = m.moves(&s, out[:0])
		if len(out) == 0 {
			r.Complete = true
			return r
		}
		k := rng.IntN(len(out))
		if len(out) > 1 && out[k].step.what == "tick" && rng.IntN(3) > 0 {
			k = len(out) - 1
		}
		r.Transitions++
		trace = append(trace, out[k].step.String())
		s = out[k].to
		m.normalise(&s)
	}
}

func describe(s *state) string {
	return fmt.Sprintf("now %d\nrecord %+v\nlog %+v", s.now, s.record, s.logs[0][1:])
}
