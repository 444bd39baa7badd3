package embed

import (
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"

	"sluice/core"
)

// A checkpoint is a file of blocks: length, checksum, then as many bytes. The
// first says from where the log is to be read, the last that it is complete.
const (
	checkpointName   = "checkpoint"
	checkpointFormat = 1
	blockHeader      = 8
	blockTarget      = 64 << 10
	// stepItems is how many groups and items a walk visits before it lets go
	// of the mutex: well under a millisecond's worth.
	stepItems = 2048
)

// The kinds of entries in blocks.
const (
	entryStart   = iota + 1
	entryGroup   // a group with its first items
	entryItems   // more items of the group before
	entryLetter  // a dead letter
	entryCounter // the last entry: numbers given out
)

// checkpoint writes a checkpoint while the store works on. Each group in it is
// as it was at some place of the log, which is noted with it: reading the log
// again from the start of the checkpoint, what lies before that is skipped.
func (s *Store) checkpoint() error {
	s.mu.Lock()
	if s.log.failed != nil || s.log.end() == s.log.replay {
		defer s.mu.Unlock()
		return s.log.failed
	}
	from := s.log.end()
	s.log.written = 0
	s.mu.Unlock()

	err := s.writeCheckpoint(from)
	if noSpace(err) && s.sacrifice() {
		err = s.writeCheckpoint(from)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log.yielding = false
	if noSpace(err) {
		return core.Wrap(core.Full, err, "the disk has no room for a checkpoint")
	}
	if err != nil {
		return s.log.fail("write a checkpoint", err)
	}
	s.log.replay = from
	s.log.segs.deaths = true
	poke(s.log.spare)
	return nil
}

// sacrifice removes a spare so that a checkpoint, which sets dead segments
// free, fits on a full disk.
func (s *Store) sacrifice() bool {
	s.mu.Lock()
	n := len(s.log.spares)
	if n == 0 {
		s.mu.Unlock()
		return false
	}
	spare := s.log.spares[n-1]
	s.log.spares = s.log.spares[:n-1]
	s.log.yielding = true
	s.mu.Unlock()
	return errors.Join(spare.file.Close(), s.opts.FS.Remove(spare.name), s.opts.FS.SyncDir(s.dir)) == nil
}

// writeCheckpoint writes the file, and puts it in the place of the one before
// once all that it says of the log is durable.
func (s *Store) writeCheckpoint(from lsn) error {
	name := filepath.Join(s.dir, checkpointName)
	f, err := s.opts.FS.Create(name + tempSuffix)
	if err != nil {
		return err
	}
	w := &blockWriter{f: f}
	w.start(entryStart)
	w.buf = appendNumbers(w.buf, checkpointFormat, uint64(from))
	err = s.writeGroups(w)
	if err == nil {
		err = s.writeAllLetters(w)
	}
	if err == nil {
		err = s.writeCounters(w)
	}
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		s.opts.FS.Remove(name + tempSuffix) // gives the room back; a leftover is removed at the next start
		return err
	}
	s.mu.Lock()
	c := s.log.barrier()
	s.mu.Unlock()
	if err := c.wait(); err != nil {
		return err
	}
	if err := s.opts.FS.Rename(name+tempSuffix, name); err != nil {
		return err
	}
	return s.opts.FS.SyncDir(s.dir)
}

func (s *Store) writeGroups(w *blockWriter) error {
	s.mu.Lock()
	c := s.index.walk()
	for more := true; more; {
		end := s.log.end()
		more = c.step(stepItems, func(gr *group, more bool, sp *span, from, to int) {
			switch {
			case sp == nil:
				w.start(entryGroup)
				w.buf = appendNumbers(w.buf, uint64(end))
				w.buf = appendPart(w.buf, gr, &gr.Group, 0)
			default:
				w.items(gr, sp, from, to)
			}
		})
		s.mu.Unlock()
		if err := w.flush(false); err != nil {
			return err
		}
		s.mu.Lock()
	}
	s.mu.Unlock()
	return nil
}

// items lists places of a group's items. They may be newer than the group's
// entry: then the log that is read after it has them again.
func (w *blockWriter) items(gr *group, sp *span, from, to int) {
	w.start(entryItems)
	w.buf = appendString(w.buf, gr.buf.name)
	w.buf = appendString(w.buf, gr.key)
	w.buf = appendString(w.buf, gr.Life)
	w.buf = binary.AppendVarint(w.buf, sp.cumBefore(from))
	w.buf = appendNumbers(w.buf, sp.first+uint64(from), uint64(to-from))
	cum := sp.cumBefore(from)
	for i := from; i < to; i++ {
		p := &sp.places[i]
		w.buf = appendNumbers(w.buf, uint64(p.seg), uint64(p.off), uint64(p.len))
		w.buf = appendFixed32(w.buf, p.crc)
		w.buf = appendMillis(w.buf, p.at)
		w.buf = binary.AppendVarint(w.buf, p.cum-cum)
		cum = p.cum
	}
}

func (s *Store) writeAllLetters(w *blockWriter) error {
	after := uint64(0)
	for more := true; more; {
		s.mu.Lock()
		ls := &s.index.letters
		i, _ := ls.search(after + 1)
		j := min(len(ls.order), i+stepLetters)
		for _, l := range ls.order[i:j] {
			after = l.number
			if !l.gone {
				w.start(entryLetter)
				w.buf = appendLetterEntry(w.buf, l)
				w.buf = appendNumbers(w.buf, uint64(l.place.seg), uint64(l.place.off))
			}
		}
		more = j < len(ls.order)
		s.mu.Unlock()
		if err := w.flush(false); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) writeCounters(w *blockWriter) error {
	s.mu.Lock()
	w.start(entryCounter)
	w.buf = appendNumbers(w.buf, uint64(s.log.gens), s.log.commits, s.index.letters.last)
	s.mu.Unlock()
	return w.flush(true)
}

// blockWriter collects entries into blocks, and writes them one after the other.
type blockWriter struct {
	f   File
	off int64
	buf []byte // the block, with its header
}

// start begins an entry.
func (w *blockWriter) start(kind byte) {
	if len(w.buf) == 0 {
		w.buf = append(w.buf, make([]byte, blockHeader)...)
	}
	w.buf = append(w.buf, kind)
}

// flush writes the block when it is large enough, or in any case.
func (w *blockWriter) flush(always bool) error {
	if len(w.buf) == 0 || (len(w.buf) < blockTarget && !always) {
		return nil
	}
	binary.LittleEndian.PutUint32(w.buf, uint32(len(w.buf)-blockHeader))
	binary.LittleEndian.PutUint32(w.buf[4:], checksum(w.buf[blockHeader:], lsn(w.off)))
	if _, err := w.f.WriteAt(w.buf, w.off); err != nil {
		return err
	}
	w.off += int64(len(w.buf))
	w.buf = w.buf[:0]
	return nil
}

var errBroken = errors.New("damaged")

// loadCheckpoint reads a checkpoint into an index, and says from where the log
// is to be read and which numbers were given out.
func loadCheckpoint(f File, ix *index) (from lsn, gens uint32, commits uint64, err error) {
	size, err := f.Size()
	if err != nil {
		return 0, 0, 0, err
	}
	l := &loader{ix: ix}
	var header [blockHeader]byte
	var buf []byte
	for off := int64(0); !l.done; {
		if _, err := f.ReadAt(header[:], off); err != nil {
			return 0, 0, 0, errBroken
		}
		n := int64(binary.LittleEndian.Uint32(header[:]))
		if n > size-off-blockHeader {
			return 0, 0, 0, errBroken
		}
		buf = extend(buf[:0], int(n))
		if _, err := f.ReadAt(buf, off+blockHeader); err != nil ||
			checksum(buf, lsn(off)) != binary.LittleEndian.Uint32(header[4:]) {
			return 0, 0, 0, errBroken
		}
		if err := l.block(&reader{b: buf}); err != nil {
			return 0, 0, 0, err
		}
		off += blockHeader + n
	}
	return l.from, l.gens, l.commits, nil
}

// loader takes the entries of a checkpoint into an index.
type loader struct {
	ix      *index
	from    lsn
	gens    uint32
	commits uint64
	done    bool
}

func (l *loader) block(r *reader) error {
	for len(r.b) > 0 && !l.done {
		switch kind := r.take(1)[0]; kind {
		case entryStart:
			if format := r.uint(); format != checkpointFormat {
				return fmt.Errorf("it has format %d, and this version reads format %d", format, checkpointFormat)
			}
			l.from = lsn(r.uint())
		case entryGroup:
			l.group(r)
		case entryItems:
			l.items(r)
		case entryLetter:
			e := r.letterEntry()
			e.place.seg, e.place.off = uint32(r.uint()), uint32(r.uint())
			if !r.bad {
				l.ix.fileLetter(&e, 0)
			}
		case entryCounter:
			l.gens, l.commits, l.done = uint32(r.uint()), r.uint(), true
			l.ix.letters.last = max(l.ix.letters.last, r.uint())
		default:
			return errBroken
		}
	}
	if r.bad {
		return errBroken
	}
	return nil
}

func (l *loader) group(r *reader) {
	skip := lsn(r.uint())
	p := r.part()
	if r.bad || p.group.Empty() {
		return
	}
	gr, fresh := l.ix.obtain(p.ref)
	if !fresh {
		return // seen twice on the walk: the first is with the items
	}
	gr.Group, gr.skip = p.group, skip
	gr.buf.count(&gr.Group, 1)
}

func (l *loader) items(r *reader) {
	gr := l.ix.find(core.Ref{Buffer: r.str(), Key: r.str()})
	life, cum, seq := r.str(), r.int(), r.uint()
	for range r.count() {
		p := place{seg: uint32(r.uint()), off: uint32(r.uint()), len: uint32(r.uint()), crc: r.fixed32(), at: r.millis()}
		size := r.int()
		cum += size
		p.cum = cum
		if r.bad {
			return
		}
		if gr != nil && gr.Life == life && p.seg != 0 && gr.Group.Live(seq) {
			l.ix.file(gr, seq, p, size, 0)
		}
		seq++
	}
}
