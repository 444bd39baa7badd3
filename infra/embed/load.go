package embed

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"sluice/core"
)

// loaded is what a checkpoint says besides the index.
type loaded struct {
	number  uint32
	format  uint64
	from    lsn // where the log is to be read from
	gens    uint32
	commits uint64
}

var errBroken = errors.New("damaged")

// loadCheckpoint reads the newest checkpoint into memory. When that is damaged,
// the one before it serves, or all the log that is there: that may bring back
// what was settled, but loses nothing. One that is intact and cannot be read fails
// the start.
func (r *recovery) loadCheckpoint() (loaded, error) {
	var found []checkpointAt
	defer func() {
		for _, c := range found {
			_ = c.f.Close() // it was only read
		}
	}()
	for slot := range uint32(2) {
		f, err := r.s.opts.FS.Open(checkpointFile(r.s.dir, slot))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return loaded{}, err
		}
		c := checkpointAt{f: f}
		if err := c.readFirst(); err != nil {
			return loaded{}, errors.Join(err, f.Close())
		}
		found = append(found, c)
	}
	slices.SortFunc(found, func(a, b checkpointAt) int { return cmp.Compare(b.number, a.number) })
	for i := range found {
		c := &found[i]
		if c.number == 0 {
			continue // a crash has cut it short
		}
		r.s.checkpoints = max(r.s.checkpoints, c.number)
		err := c.load(r.ix)
		if err == nil {
			r.rep.Checkpoint = true
			return c.loaded, nil
		}
		if !errors.Is(err, errBroken) {
			return loaded{}, err
		}
		r.rep.Broken = fmt.Sprintf("checkpoint %d is damaged", c.number)
		for _, seg := range r.log.segs.byGen {
			seg.live, seg.bytes = 0, 0
		}
		*r.ix = *newIndex(&r.log.segs)
	}
	return loaded{}, nil
}

// checkpointAt is a checkpoint's file.
type checkpointAt struct {
	f File
	loaded
}

// readFirst reads the first block. Without one that verifies the number stays 0.
func (c *checkpointAt) readFirst() error {
	b := make([]byte, firstBlock)
	if n, _ := c.f.ReadAt(b, 0); n < len(b) || int(binary.LittleEndian.Uint32(b)) != firstBlock-blockHeader {
		return nil
	}
	r := reader{b: b[blockHeader:]}
	f, number, from := r.uint(), uint32(r.uint()), lsn(r.uint())
	if checksum(b[blockHeader:], position(number, 0)) != binary.LittleEndian.Uint32(b[4:]) {
		return nil
	}
	if f < 1 || f > format {
		return fmt.Errorf("checkpoint %d has format %d, and this version reads formats 1 to %d", number, f, format)
	}
	c.number, c.format, c.from = number, f, from
	return nil
}

// load reads the other blocks into an index.
func (c *checkpointAt) load(ix *index) error {
	size, err := c.f.Size()
	if err != nil {
		return err
	}
	l := &loader{ix: ix, format: c.format}
	var header [blockHeader]byte
	var buf []byte
	for off := int64(firstBlock); !l.done; {
		if _, err := c.f.ReadAt(header[:], off); err != nil {
			return errBroken
		}
		n := int64(binary.LittleEndian.Uint32(header[:]))
		if n > size-off-blockHeader {
			return errBroken
		}
		buf = extend(buf[:0], int(n))
		if _, err := c.f.ReadAt(buf, off+blockHeader); err != nil ||
			checksum(buf, position(c.number, off)) != binary.LittleEndian.Uint32(header[4:]) {
			return errBroken
		}
		if !l.block(&reader{b: buf}) {
			return fmt.Errorf("checkpoint %d is intact, but none that this version reads", c.number)
		}
		off += blockHeader + n
	}
	c.gens, c.commits = l.gens, l.commits
	return nil
}

// loader takes the entries of a checkpoint into an index.
type loader struct {
	ix      *index
	format  uint64
	gens    uint32
	commits uint64
	done    bool

	some *sightings // the run of ids under way
	base core.Millis
}

// block takes a block's entries. It reports whether all could be read.
func (l *loader) block(r *reader) bool {
	for len(r.b) > 0 && !l.done {
		switch kind := r.take(1)[0]; kind {
		case entryGroup:
			l.group(r)
		case entryItems:
			l.items(r)
		case entryClosed:
			l.closed(r)
		case entrySightings:
			l.sightings(r)
		case entrySighting:
			l.sighting(r)
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
			r.fail()
		}
	}
	return !r.bad
}

func (l *loader) group(r *reader) {
	skip := lsn(r.uint())
	p := r.part(l.format)
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

func (l *loader) closed(r *reader) {
	buffer, key, until := r.str(), r.str(), r.millis()
	if !r.bad {
		l.ix.closed.add(l.ix.buffer(buffer), key, until)
	}
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
