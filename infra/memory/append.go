package memory

import (
	"fmt"
	"maps"
	"time"

	"sluice/core"
)

// name is an event's name in a buffer that looks for doubles.
type name struct{ buffer, id string }

// sighting is when an event was stored, and for how long that counts.
type sighting struct {
	at     core.Millis
	window time.Duration
}

// within reports whether it was stored within a window before now, or at what
// is yet to come since the clock was set back.
func (s sighting) within(window time.Duration, now core.Millis) bool { return now.Sub(s.at) < window }

// request is an append that may come to nothing: all that it changes is a copy.
type request struct {
	s       *Store
	now     core.Millis
	records map[core.Ref]*core.Group
	added   map[core.Ref][]core.Event
	stored  map[string]int64 // by buffer
	seen    map[name]sighting
}

// append numbers every part, and keeps what that has changed only when all went
// well and no part is closed.
func (s *Store) append(now core.Millis, parts []core.Part) ([]core.Appended, error) {
	r := request{s: s, now: now, records: map[core.Ref]*core.Group{}, added: map[core.Ref][]core.Event{},
		stored: map[string]int64{}, seen: map[name]sighting{}}
	answers := make([]core.Appended, len(parts))
	closed := false
	for i := range parts {
		if parts[i].Change != nil {
			continue
		}
		var err error
		if answers[i], err = r.number(&parts[i]); err != nil {
			return nil, err
		}
		closed = closed || answers[i].Closed
	}
	if closed {
		for i := range answers {
			answers[i] = core.Appended{Closed: answers[i].Closed}
		}
		return answers, nil
	}
	changed := make([]core.Group, len(parts))
	for i := range parts {
		if parts[i].Change == nil {
			continue
		}
		changed[i] = s.record(parts[i].Ref)
		if err := parts[i].Change(&changed[i]); err != nil {
			return nil, err
		}
		answers[i].Changed = true
	}
	r.keep()
	for i := range parts {
		if answers[i].Changed {
			s.replace(parts[i].Ref, &changed[i])
		}
	}
	return answers, nil
}

// number applies one part, but for what is left out of it.
func (r *request) number(p *core.Part) (core.Appended, error) {
	events, doubles, seen := r.sift(p)
	if len(events) == 0 && doubles != nil {
		return core.Appended{Doubles: doubles}, nil
	}
	n, buffer := int64(len(events)), core.Owner(p.Ref.Buffer)
	held := r.s.held(buffer) + r.stored[buffer]
	switch full := p.Size > 0 && held+n > p.Size; {
	case full && p.Shed:
		return r.shed(p, doubles, p.Size-held)
	case full:
		return core.Appended{}, &core.Error{Code: core.Full, RetryAfter: time.Second,
			Detail: fmt.Sprintf("buffer %s is full: it holds at most %d events (size)", buffer, p.Size)}
	}
	if r.records[p.Ref] == nil {
		g := r.s.record(p.Ref)
		r.records[p.Ref] = &g
	}
	a, err := r.records[p.Ref].Append(len(events), size(events), p.Life, p.Policy, r.now)
	if err != nil || a.Closed {
		return a, err
	}
	a.Doubles = doubles
	r.stored[buffer] += n
	r.added[p.Ref] = append(r.added[p.Ref], events...)
	maps.Copy(r.seen, seen)
	return a, nil
}

// shed applies what there is room for of a part.
func (r *request) shed(p *core.Part, doubles []int, room int64) (a core.Appended, err error) {
	fitting := *p
	fitting.Events = p.Events[:p.Fitting(doubles, room)]
	if room > 0 {
		a, err = r.number(&fitting)
	}
	if !a.Closed {
		a.Shed, a.Stored, a.Doubles = true, len(fitting.Events), doubles
	}
	return a, err
}

// sift parts a part's events from its doubles, whose positions it returns, and
// says what is seen by storing the former.
func (r *request) sift(p *core.Part) (events []core.Event, doubles []int, seen map[name]sighting) {
	if p.Dedupe <= 0 {
		return p.Events, nil, nil
	}
	seen = map[name]sighting{}
	for i := range p.Events {
		n := name{core.Owner(p.Ref.Buffer), p.Events[i].ID}
		if _, again := seen[n]; again || r.knows(n, p.Dedupe) {
			doubles = append(doubles, i)
			continue
		}
		events = append(events, p.Events[i])
		seen[n] = sighting{r.now, p.Dedupe}
	}
	return events, doubles, seen
}

// knows reports whether an event was stored within a window, or by the request.
func (r *request) knows(n name, window time.Duration) bool {
	_, here := r.seen[n]
	was, ok := r.s.seen[n]
	return here || ok && was.within(window, r.now)
}

// keep makes the changes those of the store.
func (r *request) keep() {
	for ref, g := range r.records {
		kept := r.s.group(ref)
		kept.add(r.added[ref])
		kept.Group = *g
	}
	maps.Copy(r.s.seen, r.seen)
	maps.DeleteFunc(r.s.seen, func(_ name, was sighting) bool { return !was.within(was.window, r.now) })
}
