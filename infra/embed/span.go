package embed

// end is the number after the span's last one.
func (sp *span) end() uint64 { return sp.first + uint64(len(sp.places)) }

// cumBefore is the group's payload bytes before the span's i-th item.
func (sp *span) cumBefore(i int) int64 {
	if i == 0 {
		return sp.before
	}
	return sp.places[i-1].cum
}

// at is the place of a number, or nil when none is known.
func (gr *group) at(seq uint64) *place {
	for i := len(gr.spans) - 1; i >= 0; i-- {
		if sp := &gr.spans[i]; seq >= sp.first {
			if seq < sp.end() {
				return &sp.places[seq-sp.first]
			}
			return nil
		}
	}
	return nil
}

// through is the group's payload bytes up to and including a number; a lower
// bound where damage has left nothing to tell.
func (gr *group) through(seq uint64) int64 {
	switch {
	case seq >= gr.Tail:
		return gr.TailBytes
	case seq == gr.Head:
		return gr.HeadBytes
	}
	var cum int64
	if seq > gr.Head {
		cum = gr.HeadBytes
	}
	for i := range gr.spans {
		switch sp := &gr.spans[i]; {
		case seq+1 < sp.first:
			return cum
		case seq+1 == sp.first:
			return sp.before
		case seq < sp.end():
			return sp.places[seq-sp.first].cum
		default:
			cum = max(cum, sp.places[len(sp.places)-1].cum)
		}
	}
	return cum
}

// manyVoid is from how many void places on a group's spans are made anew when
// most of them are void, and the largest hole that this leaves in a span.
const manyVoid = 64

// trim drops void places: those at the front at once, those behind a
// long-lived item when they are most.
func (gr *group) trim() {
	for len(gr.spans) > 0 && gr.spans[0].trimFront(&gr.void) {
		gr.spans = append(gr.spans[:0], gr.spans[1:]...)
	}
	if gr.void <= manyVoid {
		return
	}
	total := 0
	for i := range gr.spans {
		total += len(gr.spans[i].places)
	}
	if 2*gr.void > total {
		gr.rebuild()
	}
}

// trimFront drops the void places at the front of the span, and reports
// whether none is left. An array that has become far too large is let go.
func (sp *span) trimFront(void *int) (empty bool) {
	n := 0
	for n < len(sp.places) && sp.places[n].seg == 0 {
		n++
	}
	*void -= n
	if n == len(sp.places) {
		return true
	}
	if n > 0 {
		sp.first, sp.before, sp.places, sp.cut = sp.first+uint64(n), sp.places[n-1].cum, sp.places[n:], sp.cut+n
	}
	if sp.cut > 1024 && sp.cut > 4*len(sp.places) {
		sp.places, sp.cut = append([]place(nil), sp.places...), 0
	}
	return false
}

// rebuild copies the spans without their larger holes.
func (gr *group) rebuild() {
	was := gr.spans
	gr.spans, gr.void = nil, 0
	for i := range was {
		gr.addRuns(&was[i])
	}
}

// addRuns adds a span as runs between which it has only large holes.
func (gr *group) addRuns(sp *span) {
	start, hole := 0, 0
	flush := func(end int) {
		if end <= start {
			return
		}
		gr.spans = append(gr.spans, span{first: sp.first + uint64(start), before: sp.cumBefore(start),
			places: append([]place(nil), sp.places[start:end]...)})
	}
	for i := range sp.places {
		if sp.places[i].seg == 0 {
			if hole++; start == i {
				start, hole = i+1, 0
			}
			continue
		}
		if hole > manyVoid {
			flush(i - hole)
			start = i
		} else {
			gr.void += hole
		}
		hole = 0
	}
	flush(len(sp.places) - hole)
}
