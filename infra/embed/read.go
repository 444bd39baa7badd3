package embed

import (
	"context"

	"sluice/core"
)

const (
	// readGap is the largest gap between two payloads that are read at once.
	readGap = 4 << 10
	// readRun bounds one read of several payloads.
	readRun = 1 << 20
)

// spot is a payload to read.
type spot struct {
	seq   uint64
	place place
	raw   []byte // its bytes once read; nil when they are damaged
}

// Items reads a span of a group's log. It waits until what it reads is durable.
func (s *Store) Items(ctx context.Context, ref core.Ref, _ *core.Group, span core.Span) (core.Page, error) {
	if err := s.enter(ctx); err != nil {
		return core.Page{}, err
	}
	defer s.leave()
	gr := s.index.find(ref)
	if gr == nil {
		s.mu.Unlock()
		return core.Page{End: span.From - min(span.From, 1)}, nil
	}
	page, spots := gr.page(span)
	life := gr.Life
	if err := s.read(spots); err != nil {
		return core.Page{}, err
	}
	page.Items = make([]core.Item, 0, len(spots))
	page.Offsets = make([]int64, 0, len(spots))
	var bad []spot
	for i := range spots {
		sp := &spots[i]
		r := reader{b: sp.raw}
		e := r.event()
		if sp.raw == nil || r.bad {
			bad = append(bad, *sp)
			continue
		}
		page.Items = append(page.Items, core.Item{Event: e, Seq: sp.seq})
		page.Offsets = append(page.Offsets, sp.place.cum)
	}
	s.lose(ref, life, bad)
	return page, nil
}

// page plans the page of a span: which payloads to read, and all that memory
// knows about it.
func (gr *group) page(span core.Span) (core.Page, []spot) {
	from, to := max(span.From, 1), min(span.To, gr.Tail)
	page := core.Page{End: from - 1}
	var spots []spot
	var total int64
	for seq := from; seq <= to; seq++ {
		if p := gr.at(seq); p != nil && p.seg != 0 {
			size := p.cum - gr.through(seq-1)
			if span.Full(len(spots), total+size) {
				break
			}
			total += size
			spots = append(spots, spot{seq: seq, place: *p})
		}
		page.End = seq
	}
	page.Through = gr.through(page.End)
	page.NextAt = gr.arrivalAfter(page.End)
	return page, spots
}

// arrivalAfter is the arrival of the first item after a number, or 0.
func (gr *group) arrivalAfter(seq uint64) core.Millis {
	for i := range gr.spans {
		sp := &gr.spans[i]
		if sp.end() <= seq+1 {
			continue
		}
		first := 0
		if seq+1 > sp.first {
			first = int(seq + 1 - sp.first)
		}
		for _, p := range sp.places[first:] {
			if p.seg != 0 {
				return p.at
			}
		}
	}
	return 0
}

// read reads payloads, with the mutex held when it begins and free when it
// ends. Their segments cannot be recycled meanwhile.
func (s *Store) read(spots []spot) error {
	var newest lsn
	for i := range spots {
		newest = max(newest, position(spots[i].place.seg, int64(spots[i].place.off)))
	}
	files := s.pin(spots)
	c := s.log.covering(newest)
	s.mu.Unlock()
	defer s.unpin(files)
	if err := c.wait(); err != nil {
		return err
	}
	for i := 0; i < len(spots); {
		n := run(spots[i:])
		readSpots(files[spots[i].place.seg].file, spots[i:i+n])
		i += n
	}
	return nil
}

// pin keeps the segments of payloads from being recycled.
func (s *Store) pin(spots []spot) map[uint32]*segment {
	pinned := make(map[uint32]*segment, 2)
	for i := range spots {
		gen := spots[i].place.seg
		if pinned[gen] == nil {
			seg := s.log.segs.get(gen)
			seg.pins++
			pinned[gen] = seg
		}
	}
	return pinned
}

func (s *Store) unpin(pinned map[uint32]*segment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, seg := range pinned {
		if seg.pins--; seg.pins == 0 && seg.live == 0 {
			s.log.segs.deaths = true
			poke(s.log.spare)
		}
	}
}

// run is how many payloads from the first one on lie so close together that
// one read gets them all.
func run(spots []spot) int {
	first := &spots[0].place
	end := int64(first.off) + int64(first.len)
	n := 1
	for ; n < len(spots); n++ {
		p := &spots[n].place
		gap := int64(p.off) - end
		if p.seg != first.seg || gap < 0 || gap > readGap || int64(p.off+p.len-first.off) > readRun {
			break
		}
		end = int64(p.off) + int64(p.len)
	}
	return n
}

// readSpots reads one run, and verifies each payload. A read that fails leaves
// every one as damaged that it did not reach.
func readSpots(f File, spots []spot) {
	first, last := &spots[0].place, &spots[len(spots)-1].place
	buf := make([]byte, last.off+last.len-first.off)
	n := 0
	if f != nil {
		n, _ = f.ReadAt(buf, int64(first.off)) // what is missing fails its checksum
	}
	for i := range spots {
		p := &spots[i].place
		start := int(p.off - first.off)
		if end := start + int(p.len); end <= n && sumOf(buf[start:end]) == p.crc {
			spots[i].raw = buf[start:end:end]
		}
	}
}

// lose makes items that cannot be read void, unless they have gone or moved
// since, and tells of them.
func (s *Store) lose(ref core.Ref, life string, bad []spot) {
	if len(bad) == 0 {
		return
	}
	var losses []Loss
	s.mu.Lock()
	if gr := s.index.find(ref); gr != nil && gr.Life == life {
		for i := range bad {
			if p := gr.at(bad[i].seq); p != nil && *p == bad[i].place {
				s.index.discard(gr, bad[i].seq, s.log.end())
				s.lost++
				losses = addLoss(losses, ref, life, bad[i].seq)
			}
		}
	}
	s.mu.Unlock()
	s.tell(losses)
}

func (s *Store) tell(losses []Loss) {
	if s.opts.OnLoss == nil {
		return
	}
	for _, l := range losses {
		s.opts.OnLoss(l)
	}
}
