package embed

import (
	"cmp"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"sluice/core"
)

const (
	lockName   = "lock"
	tempSuffix = ".tmp"
	// emptyScan is how far into a segment a start looks for a record before it
	// takes it for a spare.
	emptyScan = 1 << 20
	// commitGap is left between the numbers of commits of two runs, so that
	// nothing a torn commit has left behind is ever taken for a part of a later one.
	commitGap = 1 << 20
)

// recovery is a start under way.
type recovery struct {
	s    *Store
	log  *log
	ix   *index
	rep  *Report
	all  []*segment // by generation
	used int        // so many of them hold records; the others are spares
	last uint64     // number of the last commit in the log
	temp []string   // files that an earlier run has left half made
	buf  []byte     // a segment's bytes
	end  lsn        // of the log
}

// restore brings memory to the log's end: the checkpoint first, then what the
// log has behind it.
func (s *Store) restore() error {
	r := &recovery{s: s, log: s.log, ix: s.index, rep: &s.report}
	if err := r.openSegments(); err != nil {
		return err
	}
	c, err := r.loadCheckpoint()
	if err != nil {
		return err
	}
	r.log.gens = max(r.log.gens, c.gens)
	if err := r.findEnd(c.from); err != nil {
		return err
	}
	if err := r.replay(c.from); err != nil {
		return err
	}
	if err := r.settle(c.from, max(c.commits, r.last)); err != nil {
		return err
	}
	s.audit(r.rep)
	return nil
}

// openSegments opens every segment file.
func (r *recovery) openSegments() error {
	fs, dir := r.s.opts.FS, r.s.dir
	names, err := fs.List(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		path := filepath.Join(dir, name)
		if strings.HasSuffix(name, tempSuffix) {
			r.temp = append(r.temp, path)
		}
		gen, ok := segmentGen(name)
		if !ok {
			continue
		}
		seg := &segment{gen: gen, name: path}
		if seg.file, err = fs.Open(path); err != nil {
			return err
		}
		r.log.segs.byGen[gen] = seg
		r.all = append(r.all, seg)
		if seg.size, err = seg.file.Size(); err != nil {
			return err
		}
		if err := seg.readHeader(); err != nil {
			return err
		}
		r.log.gens = max(r.log.gens, gen)
	}
	slices.SortFunc(r.all, func(a, b *segment) int { return cmp.Compare(a.gen, b.gen) })
	return nil
}

// load reads up to limit bytes of a segment.
func (r *recovery) load(seg *segment, limit int64) ([]byte, error) {
	n := min(seg.size, limit)
	r.buf = extend(r.buf[:0], int(n))
	got, err := seg.file.ReadAt(r.buf, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return r.buf[:got], nil
}

// findEnd finds the last segment with records, and the last commit's number.
func (r *recovery) findEnd(from lsn) error {
	for r.used = len(r.all); r.used > 0; r.used-- {
		seg := r.all[r.used-1]
		if seg.gen <= from.seg() || seg.live > 0 {
			break // spares come after it
		}
		head, err := r.load(seg, emptyScan)
		if err != nil {
			return err
		}
		if _, ok := nextRecord(head, seg.gen, dataStart, 0); ok {
			break
		}
	}
	if r.used == 0 {
		return nil
	}
	for {
		next, err := r.scanLast(r.all[r.used-1])
		if err != nil || next == 0 || r.used == len(r.all) || r.all[r.used].gen != next {
			return err
		}
		r.used++ // it was in use, though its beginning is damaged
	}
}

// scanLast notes the number of the last commit in a segment, and returns the
// generation that follows it, or 0.
func (r *recovery) scanLast(seg *segment) (next uint32, err error) {
	b, err := r.load(seg, seg.size)
	if err != nil {
		return 0, err
	}
	off := int64(dataStart)
	for {
		rec, ok := nextRecord(b, seg.gen, off, r.last)
		if !ok {
			return next, nil
		}
		next = 0
		if rec.kind == kindEnd {
			m := reader{b: rec.meta}
			next = uint32(m.uint())
		}
		r.last = rec.commit
		off = rec.at.off() + int64(rec.size)
	}
}

// settle makes the log ready to go on, as all of it could be read.
func (r *recovery) settle(from lsn, commits uint64) error {
	l := r.log
	for _, name := range r.temp {
		if err := r.s.opts.FS.Remove(name); err != nil {
			return err
		}
	}
	l.commits = commits + commitGap
	l.rolled = len(r.all) > 1
	for _, seg := range r.all[r.used:] {
		delete(l.segs.byGen, seg.gen)
		if err := r.keepSpare(seg); err != nil {
			return err
		}
	}
	poke(l.spare)
	if r.used == 0 {
		return r.begin(from)
	}
	l.cur, l.off = r.all[r.used-1], r.end.off()
	if l.cur.old || l.cur.unmarked { // from here on it holds what only this format knows
		if err := l.cur.writeHeader(); err != nil {
			return err
		}
	}
	l.durable, l.replay, l.written = l.end(), from, r.rep.Bytes
	l.segs.deaths = true
	if l.written >= l.every {
		poke(l.notice)
	}
	return nil
}

// keepSpare keeps a segment without records as a spare, or removes it when it
// has not the size that segments now have.
func (r *recovery) keepSpare(seg *segment) error {
	if seg.size != r.log.size {
		return errors.Join(seg.file.Close(), r.s.opts.FS.Remove(seg.name))
	}
	r.log.spares = append(r.log.spares, seg)
	if seg.unmarked || seg.old {
		return seg.writeHeader()
	}
	return nil
}

// begin begins a log, as no segment holds any record.
func (r *recovery) begin(from lsn) error {
	l := r.log
	r.rep.Fresh = len(r.all) == 0 && from == 0 && r.rep.Broken == ""
	if len(l.spares) == 0 {
		l.gens++
		seg, err := l.create(l.gens, false, r.s.stop)
		if err != nil {
			return err
		}
		l.spares = append(l.spares, seg)
	}
	l.start(l.spares[0])
	l.spares = l.spares[1:]
	return nil
}

// audit ends every lease, since no deliverer has outlived the process before;
// and makes a list of what is gone: numbers that are needed, but of which no
// place is known, or one in a file that is not there.
func (s *Store) audit(rep *Report) {
	for _, b := range s.index.buffers {
		for _, gr := range b.all {
			gr.Abandon()
			rep.Items -= int64(s.auditGroup(gr, rep))
		}
		rep.Groups += len(b.all)
		rep.Items += b.pending + b.claimed
	}
	for _, l := range slices.Clone(s.index.letters.order) {
		if !l.gone && !s.log.segs.present(l.place.seg) {
			rep.missing(l.place.seg)
			s.index.removeLetter(l, 0)
			rep.Losses = append(rep.Losses, Loss{Letter: l.id})
			s.lost++
		}
	}
	rep.Letters = len(s.index.letters.byID)
	for gen, seg := range s.log.segs.byGen {
		if seg.file == nil {
			delete(s.log.segs.byGen, gen)
		}
	}
}

// auditGroup adds what is gone of a group to a report, and returns how many
// numbers that is.
func (s *Store) auditGroup(gr *group, rep *Report) (lost uint64) {
	ref := core.Ref{Buffer: gr.buf.name, Key: gr.key}
	check := func(seq uint64) {
		if p := gr.at(seq); p != nil && p.seg != 0 {
			if s.log.segs.present(p.seg) {
				return
			}
			rep.missing(p.seg)
			s.index.discard(gr, seq, 0)
		}
		lost++
		rep.Losses = addLoss(rep.Losses, ref, gr.Life, seq)
	}
	for i := range gr.Claims {
		c := &gr.Claims[i]
		for seq := c.From; seq <= c.To; seq++ {
			if c.Has(seq) {
				check(seq)
			}
		}
	}
	for seq := gr.Head + 1; seq <= gr.Tail; seq++ {
		check(seq)
	}
	s.lost += lost
	return lost
}
