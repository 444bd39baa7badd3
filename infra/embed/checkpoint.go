package embed

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"sluice/core"
)

// A checkpoint is a file of blocks: length, checksum, then as many bytes. The
// first says from where the log is to be read, and is written last; the last
// says that it is complete. There are two files, which are written over in
// turn: so the older one's room on the disk is there when the disk is full.
const (
	checkpointPrefix = "checkpoint."
	blockHeader      = 8
	blockTarget      = 64 << 10
	firstBlock       = 64 // its size, header included
	// stepItems is how many groups and items a walk visits before it lets go
	// of the mutex: well under a millisecond's worth.
	stepItems = 2048
)

// checkpointFile is the file of a checkpoint's number.
func checkpointFile(dir string, number uint32) string {
	return filepath.Join(dir, fmt.Sprintf("%s%d", checkpointPrefix, number%2))
}

// The kinds of entries in blocks.
const (
	entryGroup     = iota + 1 // a group with its first items
	entryItems                // more items of the group before
	entryLetter               // a dead letter
	entryCounter              // the last entry: numbers given out
	entryClosed               // a group that is closed, and has nothing else
	entrySightings            // begins a run of ids that a buffer has seen
	entrySighting             // one of the run's ids
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

// writeCheckpoint writes the next checkpoint over the last but one. It counts
// once its first block is there: when all the others are, and all that they say
// of the log is durable.
//
// The one after it is due after at least four times its size: with very many
// items waiting, checkpoints do not outweigh the log.
func (s *Store) writeCheckpoint(from lsn) (err error) {
	f, err := s.openCheckpoint(s.checkpoints + 1)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	first := &blockWriter{f: f, number: s.checkpoints + 1}
	if err := first.clear(); err != nil {
		return err
	}
	w := &blockWriter{f: f, number: first.number, off: firstBlock}
	if err := errors.Join(s.writeGroups(w), s.writeClosed(w), s.writeSeen(w), s.writeAllLetters(w), s.writeCounters(w)); err != nil {
		return err
	}
	s.mu.Lock()
	c := s.log.barrier()
	s.log.every = max(s.opts.CheckpointBytes, 4*w.off)
	s.mu.Unlock()
	if err := errors.Join(c.wait(), f.Sync()); err != nil {
		return err
	}
	first.buf = appendNumbers(make([]byte, blockHeader), format, uint64(first.number), uint64(from))
	first.buf = append(first.buf, make([]byte, firstBlock-len(first.buf))...)
	if err := first.flush(true); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	s.checkpoints++
	return nil
}

// openCheckpoint opens the file of a checkpoint to write.
func (s *Store) openCheckpoint(number uint32) (File, error) {
	name := checkpointFile(s.dir, number)
	f, err := s.opts.FS.Open(name)
	if !errors.Is(err, fs.ErrNotExist) {
		return f, err
	}
	if f, err = s.opts.FS.Create(name); err != nil {
		return nil, err
	}
	if err := s.opts.FS.SyncDir(s.dir); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
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
				w.buf = appendPart(w.buf, gr, &gr.Group, 0, 0)
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

// writeClosed lists what is closed and empty. It goes through maps that may
// change when it lets go of the mutex: what comes meanwhile is in the log behind.
func (s *Store) writeClosed(w *blockWriter) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for buf, keys := range s.index.closed.until {
		for key, until := range keys {
			w.start(entryClosed)
			w.buf = appendString(w.buf, buf.name)
			w.buf = appendString(w.buf, key)
			w.buf = appendMillis(w.buf, until)
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
	f      File
	number uint32 // of the checkpoint: a part of every checksum
	off    int64
	buf    []byte // the block, with its header
}

// clear takes the first block away, durably, before any other changes.
func (w *blockWriter) clear() error {
	if _, err := w.f.WriteAt(make([]byte, firstBlock), 0); err != nil {
		return err
	}
	return w.f.Sync()
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
	binary.LittleEndian.PutUint32(w.buf[4:], checksum(w.buf[blockHeader:], position(w.number, w.off)))
	if _, err := w.f.WriteAt(w.buf, w.off); err != nil {
		return err
	}
	w.off += int64(len(w.buf))
	w.buf = w.buf[:0]
	return nil
}
