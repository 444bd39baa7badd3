package embed

import (
	"cmp"
	"context"
	"slices"

	"sluice/core"
)

// A segment that only a few long-lived items keep is emptied by copying these
// to the log's end, when there are many such segments.
const (
	floorSegments = 4       // as many may always be there
	copySegments  = 16      // emptied in one walk over the groups
	copyItems     = 1024    // looked up at a time
	copyBytes     = 1 << 20 // about as much is copied in one record
	copyOverhead  = 512     // what a record may hold for an item besides its payload
)

// copyLimit is about the size of a record of copies.
func (s *Store) copyLimit() int { return int(min(copyBytes, s.opts.SegmentBytes/4)) }

// copyForward empties the emptiest old segments until what is left is at least
// half live; on a full disk, as long as that makes any room worth having.
func (s *Store) copyForward(stop <-chan struct{}) error {
	sources := s.sparse()
	if len(sources) == 0 {
		return nil
	}
	s.mu.Lock()
	c := s.index.walk()
	for more := true; more; {
		select {
		case <-stop:
			s.mu.Unlock()
			return nil
		default:
		}
		var items []copied
		for more && len(items) < copyItems {
			more = c.step(stepItems, func(gr *group, _ bool, sp *span, from, to int) {
				for i := from; i < to; i++ {
					if p := sp.places[i]; sources[p.seg] {
						items = append(items, copied{gr: gr, life: gr.Life, spot: spot{seq: sp.first + uint64(i), place: p}})
					}
				}
			})
			s.mu.Unlock() // let others in between the steps
			s.mu.Lock()
		}
		s.mu.Unlock()
		for len(items) > 0 {
			n := s.batch(len(items), func(i int) uint32 { return items[i].place.len })
			if err := s.copyItems(items[:n]); err != nil {
				return err
			}
			items = items[n:]
		}
		s.mu.Lock()
	}
	s.mu.Unlock()
	return s.copyLetters(sources, stop)
}

// sparse picks the segments to empty, by generation.
func (s *Store) sparse() map[uint32]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	var old []*segment
	var live int64
	for _, seg := range s.log.segs.byGen {
		if seg.gen < s.log.replay.seg() && seg.live > 0 && seg.file != nil && seg != s.log.cur {
			old = append(old, seg)
			live += seg.bytes
		}
	}
	room := int64(len(s.log.spares)) * s.log.size / 4 * 3
	slices.SortFunc(old, func(a, b *segment) int { return cmp.Or(cmp.Compare(a.bytes, b.bytes), cmp.Compare(a.gen, b.gen)) })
	sources := map[uint32]bool{}
	for i, seg := range old[:min(copySegments, len(old))] {
		left := len(old) - i
		sparse := left > floorSegments && int64(left)*s.log.size > 2*live
		worth := s.log.full && seg.bytes < seg.size/8*7
		room -= seg.bytes + int64(seg.live)*copyOverhead/4
		if (!sparse && !worth) || (s.log.full && room < 0) {
			break
		}
		sources[seg.gen] = true
	}
	return sources
}

// batch is how many of n payloads, at least one, go into one record of copies.
func (s *Store) batch(n int, length func(i int) uint32) int {
	total := 0
	for i := range n {
		if total += int(length(i)) + copyOverhead; i > 0 && total > s.copyLimit() {
			return i
		}
	}
	return n
}

// copied is an item on its way to the log's end.
type copied struct {
	gr   *group
	life string
	spot
}

// here reports whether the item is still needed, and where it was.
func (it *copied) here() bool {
	if it.gr.slot < 0 || it.gr.Life != it.life {
		return false
	}
	p := it.gr.at(it.seq)
	return p != nil && *p == it.place
}

// copyItems appends items once more, and files them there, but for those that
// were settled meanwhile. It waits until that is durable.
func (s *Store) copyItems(items []copied) error {
	s.mu.Lock()
	items = slices.DeleteFunc(items, func(it copied) bool { return !it.here() })
	spots := make([]spot, len(items))
	for i := range items {
		spots[i] = items[i].spot
	}
	if err := s.read(spots); err != nil {
		return err
	}
	for i := range items {
		it := &items[i]
		if it.raw = spots[i].raw; it.raw == nil {
			s.lose(core.Ref{Buffer: it.gr.buf.name, Key: it.gr.key}, it.life, spots[i:i+1])
		}
	}
	if _, err := s.change(context.Background(), func() error { return s.moveItems(items) }); err != nil {
		return err
	}
	return s.durable()
}

// durable waits until all that was applied so far is.
func (s *Store) durable() error {
	s.mu.Lock()
	c := s.log.barrier()
	s.mu.Unlock()
	return c.wait()
}

// moveItems makes and applies the record. A part of it is a run of one group.
func (s *Store) moveItems(items []copied) error {
	kept := make([]copied, 0, len(items))
	for _, it := range items {
		if it.raw != nil && it.here() {
			kept = append(kept, it)
		}
	}
	if len(kept) == 0 {
		return nil
	}
	s.meta = s.meta[:0]
	var body []byte
	for i := 0; i < len(kept); {
		gr, n := kept[i].gr, 1
		for i+n < len(kept) && kept[i+n].gr == gr {
			n++
		}
		s.meta = appendPart(s.meta, gr, &gr.Group, n, 0)
		prev := uint64(0)
		for _, it := range kept[i : i+n] {
			p := &it.place
			size := p.cum - gr.through(it.seq-1)
			s.meta = appendFiled(s.meta, &gr.Group, prev, &filed{seq: it.seq, len: p.len, crc: p.crc, at: p.at, cum: p.cum, size: size})
			body = append(body, it.raw...)
			prev = it.seq
		}
		i += n
	}
	if err := s.log.makeRoom(recordSize(len(s.meta)+len(body)), leaveForCopy); err != nil {
		return err
	}
	at := s.log.add(kindGroups, s.meta, body) + lsn(headerLen+len(s.meta))
	for _, it := range kept {
		p := it.place
		p.seg, p.off = at.seg(), uint32(at.off())
		s.index.file(it.gr, it.seq, p, 0, s.log.end())
		at += lsn(p.len)
	}
	return nil
}

// copyLetters does for dead letters what copyForward does for items: they are
// put again under their numbers.
func (s *Store) copyLetters(sources map[uint32]bool, stop <-chan struct{}) error {
	after := uint64(0)
	for more := true; more; {
		select {
		case <-stop:
			return nil
		default:
		}
		s.mu.Lock()
		ls := &s.index.letters
		i, _ := ls.search(after + 1)
		j := min(len(ls.order), i+copyItems)
		var found []*letter
		var spots []spot
		for _, l := range ls.order[i:j] {
			if after = l.number; !l.gone && sources[l.place.seg] {
				spots = append(spots, spot{seq: uint64(len(found)), place: l.place})
				found = append(found, l)
			}
		}
		more = j < len(ls.order)
		s.mu.Unlock()
		for len(found) > 0 {
			n := s.batch(len(found), func(i int) uint32 { return spots[i].place.len })
			if err := s.moveLetters(found[:n], spots[:n]); err != nil {
				return err
			}
			found, spots = found[n:], spots[n:]
		}
	}
	return nil
}

func (s *Store) moveLetters(found []*letter, spots []spot) error {
	s.mu.Lock()
	if err := s.read(spots); err != nil {
		return err
	}
	var lost []*letter
	var bad []spot
	_, err := s.change(context.Background(), func() error {
		var put []letter
		var body []byte
		lost, bad = nil, nil
		for i, l := range found {
			switch {
			case l.gone || l.place != spots[i].place:
			case spots[i].raw == nil:
				lost, bad = append(lost, l), append(bad, spots[i])
			default:
				put, body = append(put, *l), append(body, spots[i].raw...)
			}
		}
		if len(put) == 0 {
			return nil
		}
		_, err := s.writeLetters(put, body, leaveForCopy)
		return err
	})
	if err != nil {
		return err
	}
	s.loseLetters(lost, bad)
	return s.durable()
}
