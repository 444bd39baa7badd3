package embed

import (
	"encoding/binary"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

// dataStart is where a segment's records begin: its header has a page alone,
// so that no later write can tear it.
const dataStart = 4096

const (
	segmentMagic  = "sluicelg"
	segmentSuffix = ".log"
	segmentHeader = 32
)

// segment is one file of the log.
type segment struct {
	gen      uint32 // its place in the log's order; a recycled file has a new one
	name     string
	file     File // nil: the file is missing
	size     int64
	recycled bool // it may hold the stale bytes of an earlier generation
	unmarked bool // its header is damaged
	old      bool // its header says an earlier format

	live  int   // payloads filed here that are still needed
	bytes int64 // of these
	pins  int   // readers under way
	// died is the end of the log when the last payload was settled or moved
	// on: only when that is durable may the file be used again.
	died lsn
}

func segmentName(dir string, gen uint32) string {
	return filepath.Join(dir, fmt.Sprintf("%010d%s", gen, segmentSuffix))
}

// segmentGen is the generation that a file's name tells. A name that only
// resembles a segment's is not one: it would take the real one's place.
func segmentGen(name string) (gen uint32, ok bool) {
	digits, _ := strings.CutSuffix(name, segmentSuffix)
	n, err := strconv.ParseUint(digits, 10, 32)
	gen = uint32(n)
	return gen, err == nil && n > 0 && name == segmentName("", gen)
}

// writeHeader marks the file as a segment, durably. The generation counts by
// the file's name; here it only helps whoever looks into a file.
func (s *segment) writeHeader() error {
	var h [segmentHeader]byte
	copy(h[:], segmentMagic)
	binary.LittleEndian.PutUint32(h[8:], format)
	binary.LittleEndian.PutUint32(h[12:], s.gen)
	if s.recycled {
		h[16] = 1
	}
	binary.LittleEndian.PutUint32(h[28:], sumOf(h[:28]))
	if _, err := s.file.WriteAt(h[:], 0); err != nil {
		return err
	}
	return s.file.Sync()
}

// readHeader checks that the file is a segment that this version can read. Of
// one whose header is damaged the records may be well.
func (s *segment) readHeader() error {
	var h [segmentHeader]byte
	if n, _ := s.file.ReadAt(h[:], 0); n < len(h) ||
		string(h[:8]) != segmentMagic || sumOf(h[:28]) != binary.LittleEndian.Uint32(h[28:]) ||
		binary.LittleEndian.Uint32(h[12:]) != s.gen {
		s.recycled, s.unmarked = true, true
		return nil
	}
	v := binary.LittleEndian.Uint32(h[8:])
	if v < 1 || v > format {
		return fmt.Errorf("%s has format %d, and this version reads formats 1 to %d", s.name, v, format)
	}
	s.old = v < format
	s.recycled = h[16] == 1
	return nil
}

// segments are the files that hold, or may hold, something of the log, by
// generation; spares are not among them.
type segments struct {
	byGen  map[uint32]*segment
	deaths bool // some may have died
}

// get returns the segment of a generation. One that a payload is said to be
// in, but whose file is missing, is made up so that the count stays right.
func (s *segments) get(gen uint32) *segment {
	seg := s.byGen[gen]
	if seg == nil {
		seg = &segment{gen: gen}
		s.byGen[gen] = seg
	}
	return seg
}

// present reports whether a segment's file is there.
func (s *segments) present(gen uint32) bool {
	seg := s.byGen[gen]
	return seg != nil && seg.file != nil
}

// keep counts a payload as needed.
func (s *segments) keep(p *place) {
	seg := s.get(p.seg)
	seg.live++
	seg.bytes += int64(p.len)
}

// drop counts a payload as no longer needed from a point of the log on.
func (s *segments) drop(p *place, at lsn) {
	seg := s.get(p.seg)
	seg.live--
	seg.bytes -= int64(p.len)
	if seg.live == 0 {
		seg.died = at
		s.deaths = true
	}
}
