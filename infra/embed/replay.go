package embed

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// replay reads the used segments from a place on.
func (r *recovery) replay(from lsn) error {
	used := r.all[:r.used]
	start, ok := slices.BinarySearchFunc(used, from.seg(), func(s *segment, gen uint32) int {
		return int(int64(s.gen) - int64(gen))
	})
	if !ok && from > 0 {
		r.rep.missing(from.seg())
	}
	var seen uint64
	for i := start; i < len(used); i++ {
		b, err := r.load(used[i], used[i].size)
		if err != nil {
			return err
		}
		w := &reading{recovery: r, seg: used[i], b: b, off: dataStart, seen: seen,
			chained: r.rep.Broken == "" && (i > start || from == 0), final: i == len(used)-1}
		if used[i].gen == from.seg() {
			w.off = max(w.off, from.off())
		}
		if used[i].unmarked {
			r.damage(used[i], 0, dataStart, false)
		}
		if err := w.run(); err != nil {
			return err
		}
		seen = w.seen
		r.rep.Segments++
	}
	return nil
}

// reading is one segment on its way into memory.
type reading struct {
	*recovery
	seg  *segment
	b    []byte
	off  int64  // end of the last record that counts
	seen uint64 // number of the last commit so far

	chained bool // the one before it must be there
	final   bool // it is the log's last one
	ended   bool // its last record was read
}

func (w *reading) run() error {
	began, next := w.off, w.off
	for !w.ended {
		rec, ok := nextRecord(w.b, w.seg.gen, next, w.seen)
		if !ok {
			break
		}
		next = rec.at.off() + int64(rec.size)
		counts, err := w.take(&rec)
		if err != nil {
			return err
		}
		if !counts {
			continue // to the next one that counts
		}
		if gap := rec.at.off() - w.off; gap > 0 {
			if err := w.bad(w.off, gap, rec.commit == w.last); err != nil {
				return err
			}
		}
		w.seen, w.off = rec.commit, next
	}
	w.rep.Bytes += w.off - began
	w.recovery.end = position(w.seg.gen, w.off)
	switch {
	case w.final && w.ended:
		w.recovery.end = position(w.seg.gen, w.seg.size) // full: the next record goes into another
	case w.final:
		return w.cut(w.tail())
	case !w.ended:
		w.damage(w.seg, w.off, w.seg.size-w.off, w.seen == w.last)
	}
	return nil
}

// cut clears what a torn commit has left at the log's end.
func (w *reading) cut(n int64) error {
	if n == 0 {
		return nil
	}
	w.rep.Cut += n
	left := w.b[w.off : w.off+n]
	clear(left)
	if _, err := w.seg.file.WriteAt(left, w.off); err != nil {
		return err
	}
	return w.seg.file.Sync()
}

// bad notes a range without a record that verifies. What a torn commit left is
// covered up, so that the next start does not take it for damage.
func (w *reading) bad(off, n int64, torn bool) error {
	w.damage(w.seg, off, n, torn)
	if !torn || n < headerLen {
		return nil
	}
	b := make([]byte, headerLen)
	seal(b, kindSkip, int(n), 0, w.last, position(w.seg.gen, off))
	if _, err := w.seg.file.WriteAt(b, off); err != nil {
		return err
	}
	return w.seg.file.Sync()
}

func (r *recovery) damage(seg *segment, off, n int64, torn bool) {
	r.rep.Damaged = append(r.rep.Damaged, Damage{File: seg.name, Offset: off, Length: n, Torn: torn})
}

// tail is how many bytes at the log's end are what is left of a torn commit, as
// far as can be told: headers of this generation that do not verify, or
// anything but zeros in a file that was never used before.
func (w *reading) tail() int64 {
	off := w.off
	for off+headerLen <= int64(len(w.b)) && binary.LittleEndian.Uint32(w.b[off+4:]) == tagOf(w.seg.gen) {
		size := int64(binary.LittleEndian.Uint32(w.b[off+8:]))
		if size < headerLen || size%alignment != 0 || off+size > int64(len(w.b)) {
			break
		}
		off += size
	}
	if !w.seg.recycled {
		end := int64(len(w.b))
		for end-8 >= off && binary.LittleEndian.Uint64(w.b[end-8:]) == 0 {
			end -= 8
		}
		for end > off && w.b[end-1] == 0 {
			end--
		}
		off = end
	}
	return off - w.off
}

// take applies a record to memory. It reports whether the record counts. One
// that verifies and cannot be read is no damage: nothing is to be cut for it.
func (w *reading) take(rec *record) (counts bool, err error) {
	m := reader{b: rec.meta}
	counts = true
	switch rec.kind {
	case kindGroups:
		counts = w.takeGroups(rec, &m, format)
	case kindGroups2:
		counts = w.takeGroups(rec, &m, 2)
	case kindGroups1:
		counts = w.takeGroups(rec, &m, 1)
	case kindLetters:
		counts = w.takeLetters(rec, &m)
	case kindSettled:
		for range m.count() {
			if i, found := w.ix.letters.search(m.uint()); found {
				w.ix.removeLetter(w.ix.letters.order[i], rec.at)
			}
		}
	case kindBegin:
		if prev := uint32(m.uint()); prev != 0 && w.chained && !w.log.segs.present(prev) {
			w.rep.missing(prev)
		}
	case kindSkip:
	case kindEnd:
		w.ended = true
		if next := uint32(m.uint()); w.final && !w.log.segs.present(next) {
			w.rep.missing(next)
		}
	default:
		m.fail()
	}
	if m.bad || len(m.b) > 0 {
		return false, fmt.Errorf("%s has a record at %d, of kind %d, that is intact, but none that this version reads", w.seg.name, rec.at.off(), rec.kind)
	}
	return counts, nil
}

// intact reports which payloads of a record verify, and whether all do.
func intact(rec *record, n int, at func(i int) (length, crc uint32)) (good []bool, all bool) {
	good, all = make([]bool, n), true
	rest := rec.payload
	for i := range n {
		length, crc := at(i)
		if uint64(length) > uint64(len(rest)) {
			return good, false
		}
		good[i] = sumOf(rest[:length]) == crc
		all = all && good[i]
		rest = rest[length:]
	}
	return good, all
}

// takeGroups applies a record of groups of a format, if it can be read. Of one that
// is part of the last commit either all is there, or nothing counts; in an earlier
// one, which was durable as a whole, each payload counts for itself.
func (w *reading) takeGroups(rec *record, m *reader, format uint64) bool {
	parts := m.parts(format)
	if m.bad {
		return false
	}
	var items []*filed
	for i := range parts {
		for j := range parts[i].items {
			items = append(items, &parts[i].items[j])
		}
	}
	good, all := intact(rec, len(items), func(i int) (uint32, uint32) { return items[i].len, items[i].crc })
	if !all && rec.commit == w.last {
		return false
	}
	off := rec.payloadAt()
	for i := range parts {
		n := len(parts[i].items)
		if parts[i].dedupe > 0 {
			w.see(&parts[i], rec.payload, off-rec.payloadAt(), good[:n])
		}
		w.apply(rec, &parts[i], off, good[:n])
		for j := range parts[i].items {
			off += int64(parts[i].items[j].len)
		}
		good = good[n:]
	}
	if !all {
		w.damage(w.seg, rec.payloadAt(), int64(len(rec.payload)), false)
	}
	return true
}

// apply brings one group to what a record says of it, unless the checkpoint
// was newer, and files the items that are intact.
func (w *reading) apply(rec *record, p *part, off int64, good []bool) {
	gr := w.ix.find(p.ref)
	if gr != nil && rec.at < gr.skip {
		return
	}
	if gr == nil {
		if p.group.Empty() {
			w.ix.emptied(w.ix.buffer(p.ref.Buffer), p.ref.Key, &p.group)
			return
		}
		gr, _ = w.ix.obtain(p.ref)
	}
	w.ix.replace(gr, p.group, rec.at)
	if gr.slot < 0 {
		return
	}
	for i := range p.items {
		f := &p.items[i]
		if good[i] && gr.Live(f.seq) {
			w.ix.file(gr, f.seq, place{seg: w.seg.gen, off: uint32(off), len: f.len, crc: f.crc, at: f.at, cum: f.cum}, f.size, rec.at)
		}
		off += int64(f.len)
	}
}

// takeLetters files a record's dead letters; see takeGroups. A damaged one is
// found to be so when it is read.
func (w *reading) takeLetters(rec *record, m *reader) bool {
	var put []letter
	for range m.count() {
		put = append(put, m.letterEntry())
		if m.bad {
			return false
		}
	}
	_, all := intact(rec, len(put), func(i int) (uint32, uint32) { return put[i].place.len, put[i].place.crc })
	if !all && rec.commit == w.last {
		return false
	}
	off := rec.payloadAt()
	for i := range put {
		l := &put[i]
		l.place.seg, l.place.off = w.seg.gen, uint32(off)
		off += int64(l.place.len)
		w.ix.fileLetter(l, rec.at)
	}
	if !all {
		w.damage(w.seg, rec.payloadAt(), int64(len(rec.payload)), false)
	}
	return true
}
