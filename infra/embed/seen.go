package embed

import (
	"crypto/sha256"
	"slices"

	"sluice/core"
)

// seen are the ids of the events that a buffer has stored of late, in sightings
// by time, the newest last. Of one id only a hash is kept, and when it was.
//
// The log has ids in the events themselves, of which a part says for how long
// they count. Checkpoints list them, as what is settled leaves the log: that
// takes about 20 bytes an id.
type seen struct {
	all []*sightings
}

// sightings are ids that were stored within an eighth of a window. They are
// forgotten together.
type sightings struct {
	at          map[idHash]core.Millis
	first, last core.Millis // of these
	until       core.Millis // when nobody asks for them any more
}

// idHash is the start of an id's SHA-256: no client finds two ids with the same.
type idHash [16]byte

func hashID(id string) idHash {
	sum := sha256.Sum256([]byte(id))
	return idHash(sum[:])
}

// has reports whether an id was stored within a window before now, or at what
// is yet to come since the clock was set back.
func (s *seen) has(id idHash, now, window core.Millis) bool {
	for _, some := range slices.Backward(s.all) {
		if at, ok := some.at[id]; ok && now-at < window {
			return true
		}
	}
	return false
}

// keep makes what was stored within a window of now be kept for that long: the
// window may have been shorter before.
func (s *seen) keep(window core.Millis) {
	for _, some := range s.all {
		some.until = max(some.until, some.last+window)
	}
}

// forget forgets what is kept until now.
func (s *seen) forget(now core.Millis) {
	s.all = slices.DeleteFunc(s.all, func(some *sightings) bool {
		return now >= some.until
	})
}

// add notes an id.
func (s *seen) add(id idHash, now, window core.Millis) sighting {
	some := s.newest(now, window)
	was, again := some.at[id]
	some.note(id, now)
	some.until = max(some.until, some.last+window)
	return sighting{some: some, id: id, was: was, again: again}
}

// newest is where ids of now go.
func (s *seen) newest(now, window core.Millis) *sightings {
	if n := len(s.all); n > 0 {
		if age := now - s.all[n-1].first; -window/8 < age && age < window/8 {
			return s.all[n-1]
		}
	}
	return s.begin(now)
}

func (s *seen) begin(now core.Millis) *sightings {
	some := &sightings{at: map[idHash]core.Millis{}, first: now, last: now}
	s.all = append(s.all, some)
	return some
}

func (s *sightings) note(id idHash, at core.Millis) {
	s.at[id] = at
	s.first, s.last = min(s.first, at), max(s.last, at)
}

// sighting is one id that was noted, and what was known of it before.
type sighting struct {
	some  *sightings
	id    idHash
	was   core.Millis
	again bool
}

func (s *sighting) undo() {
	if s.again {
		s.some.at[s.id] = s.was
		return
	}
	delete(s.some.at, s.id)
}

// seenBy is what a buffer has seen.
func (ix *index) seenBy(b *buffer) *seen {
	if b.seen == nil {
		b.seen = new(seen)
		ix.seeing = append(ix.seeing, b)
	}
	return b.seen
}

// forgetSeen forgets the ids that are kept until now.
func (ix *index) forgetSeen(now core.Millis) {
	for _, b := range ix.seeing {
		b.seen.forget(now)
	}
}

// sift marks the events of a part that are to be left out as doubles, and notes
// the ids of the others. It returns the positions of the former.
func (s *Store) sift(now core.Millis, part *core.Part, items []payload, ids []idHash) (doubles []int) {
	for i := range items {
		items[i].out = false
	}
	if part.Dedupe <= 0 {
		return nil
	}
	known, window := s.index.seenBy(s.index.buffer(core.Owner(part.Ref.Buffer))), windowOf(part)
	known.keep(window)
	for i, id := range ids {
		if known.has(id, now, window) {
			items[i].out = true
			doubles = append(doubles, i)
			continue
		}
		s.sighted = append(s.sighted, known.add(id, now, window))
	}
	return doubles
}

// windowOf is for how long a part looks back for doubles.
func windowOf(part *core.Part) core.Millis { return core.Millis(max(part.Dedupe, 0).Milliseconds()) }

// unsee takes back the ids that were noted from the n-th on.
func (s *Store) unsee(n int) {
	for i := len(s.sighted) - 1; i >= n; i-- {
		s.sighted[i].undo()
	}
	clear(s.sighted[n:])
	s.sighted = s.sighted[:n]
}

// writeSeen lists the ids that were seen. It goes through maps that may change
// when it lets go of the mutex, as writeClosed does.
func (s *Store) writeSeen(w *blockWriter) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, b := range slices.Clone(s.index.seeing) {
		for _, some := range slices.Clone(b.seen.all) {
			base := some.first
			w.start(entrySightings)
			w.buf = appendString(w.buf, b.name)
			w.buf = appendMillis(appendMillis(w.buf, base), some.until)
			for id, at := range some.at {
				w.start(entrySighting)
				w.buf = appendMillis(append(w.buf, id[:]...), at-base)
				if n++; n%stepItems == 0 {
					s.mu.Unlock()
					err := w.flush(false)
					s.mu.Lock()
					if err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

// sightings begins a run of ids, which follow it.
func (l *loader) sightings(r *reader) {
	b, base, until := r.str(), r.millis(), r.millis()
	if !r.bad {
		l.base, l.some = base, l.ix.seenBy(l.ix.buffer(b)).begin(base)
		l.some.until = until
	}
}

func (l *loader) sighting(r *reader) {
	raw, after := r.take(len(idHash{})), r.millis()
	if l.some == nil {
		r.fail()
	}
	if !r.bad {
		l.some.note(idHash(raw), l.base+after)
	}
}

// see notes the ids of a part's intact items, which lie in a record's payload
// from an offset on.
func (w *reading) see(p *part, payload []byte, off int64, good []bool) {
	known, now := w.ix.seenBy(w.ix.buffer(core.Owner(p.ref.Buffer))), p.group.LastAt
	for i := range p.items {
		n := int64(p.items[i].len)
		if good[i] {
			r := reader{b: payload[off : off+n]}
			if e := r.event(); !r.bad {
				known.add(hashID(e.ID), now, p.dedupe)
			}
		}
		off += n
	}
	known.keep(p.dedupe)
	known.forget(now)
}
