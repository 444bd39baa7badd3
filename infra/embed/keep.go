package embed

import (
	"cmp"
	"context"
	"slices"

	"sluice/core"
)

// keepLoop writes checkpoints and copies old items forward, until stop is closed.
func (s *Store) keepLoop(stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-s.log.notice:
		}
		if !s.wantsCheckpoint() {
			continue
		}
		if err := s.checkpoint(); err != nil && core.CodeOf(err) != core.Full {
			return // the store has failed
		}
		if err := s.copyForward(stop); err != nil && core.CodeOf(err) != core.Full {
			return
		}
	}
}

// wantsCheckpoint reports whether enough was written since the last one, or
// the disk is full and a checkpoint would set segments free.
func (s *Store) wantsCheckpoint() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.log.written >= s.opts.CheckpointBytes {
		return true
	}
	return s.log.full && s.log.cur.gen > s.log.replay.seg()
}

// A segment that only a few long-lived items keep is emptied by copying these
// to the log's end, when there are many such segments.
const (
	floorSegments     = 4 // as many may always be there
	floorWhenFull     = 1
	copyBytes         = 1 << 20 // about as much is copied in one record
	copyItems         = 1024
	copySegmentsAtOne = 16 // walk over the groups
)

// copyForward empties the emptiest old segments until what is left is at least
// half live.
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
		var bytes int64
		for more && bytes < min(copyBytes, s.opts.SegmentBytes/8) && len(items) < copyItems {
			more = c.step(stepItems/4, func(gr *group, _ bool, sp *span, from, to int) {
				for i := from; i < to; i++ {
					if p := sp.places[i]; sources[p.seg] {
						items = append(items, copied{gr: gr, life: gr.Life, spot: spot{seq: sp.first + uint64(i), place: p}})
						bytes += int64(p.len)
					}
				}
			})
			s.mu.Unlock() // let others in between the steps
			s.mu.Lock()
		}
		s.mu.Unlock()
		if err := s.copyItems(items); err != nil {
			return err
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
	slices.SortFunc(old, func(a, b *segment) int { return cmp.Or(cmp.Compare(a.bytes, b.bytes), cmp.Compare(a.gen, b.gen)) })
	floor := floorSegments
	if s.log.full {
		floor = floorWhenFull
	}
	sources := map[uint32]bool{}
	for n := len(old); len(sources) < min(copySegmentsAtOne, len(old)) && n > floor && int64(n)*s.log.size > 2*live; n-- {
		sources[old[len(sources)].gen] = true
	}
	return sources
}

// copied is an item on its way to the log's end.
type copied struct {
	gr   *group
	life string
	spot
}

// copyItems appends items once more, and files them there, but for those that
// were settled meanwhile. It waits until that is durable.
func (s *Store) copyItems(items []copied) error {
	if len(items) == 0 {
		return nil
	}
	spots := make([]spot, len(items))
	for i := range items {
		spots[i] = items[i].spot
	}
	s.mu.Lock()
	if err := s.read(spots); err != nil {
		return err
	}
	for i := range items {
		it := &items[i]
		if it.raw = spots[i].raw; it.raw == nil {
			s.lose(core.Ref{Buffer: it.gr.buf.name, Key: it.gr.key}, it.life, []uint64{it.seq})
		}
	}
	c, err := s.change(context.Background(), func() error { return s.moveItems(items) })
	if err != nil {
		return err
	}
	return c.wait()
}

// moveItems makes and applies the record. A part of it is a run of one group.
func (s *Store) moveItems(items []copied) error {
	kept := make([]copied, 0, len(items))
	for _, it := range items {
		if it.raw == nil || it.gr.slot < 0 || it.gr.Life != it.life {
			continue
		}
		if p := it.gr.at(it.seq); p != nil && *p == it.place {
			kept = append(kept, it)
		}
	}
	var parts int
	var meta, body []byte
	for i := 0; i < len(kept); parts++ {
		gr, n := kept[i].gr, 1
		for i+n < len(kept) && kept[i+n].gr == gr {
			n++
		}
		meta = appendPart(meta, gr, &gr.Group, n)
		prev := uint64(0)
		for _, it := range kept[i : i+n] {
			p := &it.place
			size := p.cum - gr.through(it.seq-1)
			meta = appendFiled(meta, &gr.Group, prev, &filed{seq: it.seq, len: p.len, crc: p.crc, at: p.at, cum: p.cum, size: size})
			body = append(body, it.raw...)
			prev = it.seq
		}
		i += n
	}
	s.meta = append(appendNumbers(s.meta[:0], uint64(parts)), meta...)
	if err := s.log.makeRoom(recordSize(len(s.meta)+len(body)), true); err != nil {
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
		if err := s.read(spots); err != nil {
			return err
		}
		if err := s.moveLetters(found, spots); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) moveLetters(found []*letter, spots []spot) error {
	var bad []*letter
	for len(spots) > 0 {
		var c *commit
		n := 0
		_, err := s.change(context.Background(), func() (err error) {
			var put []letter
			var body []byte
			bad = nil
			for n = 0; n < len(spots) && len(body) < int(min(copyBytes, s.opts.SegmentBytes/8)); n++ {
				switch l := found[n]; {
				case l.gone || l.place != spots[n].place:
				case spots[n].raw == nil:
					bad = append(bad, l)
				default:
					put, body = append(put, *l), append(body, spots[n].raw...)
				}
			}
			if c = s.log.barrier(); len(put) > 0 {
				c, err = s.writeLetters(put, body, true)
			}
			return err
		})
		if err != nil {
			return err
		}
		s.loseLetters(bad)
		if err := c.wait(); err != nil {
			return err
		}
		found, spots = found[n:], spots[n:]
	}
	return nil
}
