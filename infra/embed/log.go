package embed

import (
	"errors"
	"sync"
	"syscall"
	"time"

	"sluice/core"
)

// log is the segmented log: records go into the commit that fills, in the
// order in which they were applied to memory, and one goroutine takes commit
// after commit to the disk.
type log struct {
	mu    *sync.Mutex // the store's; guards all that follows but the constants
	fs    FS
	dir   string
	sync  bool
	size  int64 // of a segment
	every int64 // bytes from one checkpoint to the next

	segs   segments
	cur    *segment
	off    int64      // where in it the next record goes
	spares []*segment // ready to be used, in order of generation
	gens   uint32     // last generation given out

	fill    *commit // takes records
	busy    *commit // on its way to the disk, or nil
	free    []byte  // a buffer to fill next
	commits uint64  // number of the commit that fills
	durable lsn     // everything before is on the disk
	written int64   // bytes of records since the last checkpoint began
	replay  lsn     // where a start reads from: the last checkpoint's place

	rolled   bool // more than the first segment was used: spares are kept ready
	making   bool // a spare is being made
	starving bool // somebody waits for a spare
	full     bool // the disk had no room for another segment
	stuck    bool // and nothing can be done about it
	yielding bool // what room the disk has is for a checkpoint
	failed   error

	room   chan struct{} // closed when spares, full or failed change
	wake   chan struct{} // the committer
	spare  chan struct{} // the preparer
	notice chan struct{} // the keeper, when a checkpoint is due or the disk is full
}

func newLog(mu *sync.Mutex, fs FS, dir string, o *Options) *log {
	return &log{
		mu: mu, fs: fs, dir: dir, sync: o.Sync, size: o.SegmentBytes, every: o.CheckpointBytes,
		segs: segments{byGen: map[uint32]*segment{}},
		fill: &commit{done: make(chan struct{})}, commits: 1,
		room: make(chan struct{}), wake: make(chan struct{}, 1),
		spare: make(chan struct{}, 1), notice: make(chan struct{}, 1),
	}
}

// poke wakes the owner of a channel of one.
func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// end is where the next record goes.
func (l *log) end() lsn { return position(l.cur.gen, l.off) }

// errWait says that there is no room yet: try again when l.room closes.
var errWait = errors.New("wait for a segment")

// How many spares a record leaves to those that are more urgent: on a full disk
// deliveries go on when appends are refused, and copies, which make room, when
// deliveries wait.
const (
	leaveForAppend = 2
	leaveForUpdate = 1
	leaveForCopy   = 0
)

// endSize is the size of the record that ends a segment, and of the one that
// begins it.
var endSize = int64(recordSize(16))

// makeRoom makes the next record of size bytes fit into the current segment.
func (l *log) makeRoom(size, leave int) error {
	if l.off+int64(size)+endSize <= l.cur.size {
		if l.full && leave == leaveForAppend && len(l.spares) < leave {
			return l.refuse() // this segment is of the reserve: an update has opened it
		}
		return nil
	}
	if dataStart+int64(size)+2*endSize > l.size {
		return core.Errorf(core.TooLarge, "a request of %d bytes is more than the store takes at once, which is about %d; send fewer events at a time", size, l.size)
	}
	if len(l.spares) > leave {
		l.roll()
		return nil
	}
	if l.full && (leave != leaveForUpdate || l.stuck) {
		return l.refuse()
	}
	poke(l.spare)
	if l.full {
		poke(l.notice)
	}
	l.starving = true
	return errWait
}

// refuse has the log look whether the disk is still full, and says that it is.
func (l *log) refuse() error {
	poke(l.spare)
	poke(l.notice)
	return &core.Error{Code: core.Full, Detail: "the disk is full", RetryAfter: time.Second}
}

// start begins a log in a first segment, which is empty.
func (l *log) start(seg *segment) {
	l.segs.byGen[seg.gen] = seg
	l.cur, l.off = seg, dataStart
	l.durable, l.replay = l.end(), l.end()
	l.add(kindBegin, appendNumbers(nil, 0), nil)
}

// roll goes on in the next spare.
func (l *log) roll() {
	was, next := l.cur, l.spares[0]
	if l.off+endSize <= l.cur.size {
		l.add(kindEnd, appendNumbers(nil, uint64(next.gen)), nil)
	}
	l.spares = l.spares[1:]
	l.segs.byGen[next.gen] = next
	l.cur, l.off = next, dataStart
	l.rolled = true
	l.add(kindBegin, appendNumbers(nil, uint64(was.gen)), nil)
	l.diedAt(was)
	poke(l.spare)
}

// diedAt notes that a segment which holds nothing can go from here on.
func (l *log) diedAt(seg *segment) {
	if seg.live == 0 {
		seg.died = l.end()
	}
}

// add puts a record, for which there is room, at the end of the log.
func (l *log) add(k kind, meta, payload []byte) lsn {
	size := recordSize(len(meta) + len(payload))
	c := l.chunk()
	n := len(c.buf)
	c.buf = extend(c.buf, size)
	b := c.buf[n:]
	copy(b[headerLen:], meta)
	tail := b[headerLen+len(meta):]
	clear(tail[copy(tail, payload):])
	at := l.end()
	seal(b, k, size, len(meta), l.commits, at)
	l.off += int64(size)
	l.written += int64(size)
	l.fill.end = l.end()
	poke(l.wake)
	return at
}

// chunk is the run of the filling commit that the next record belongs to.
func (l *log) chunk() *chunk {
	c := l.fill
	if n := len(c.chunks); n > 0 && c.chunks[n-1].seg == l.cur {
		return &c.chunks[n-1]
	}
	c.chunks = append(c.chunks, chunk{seg: l.cur, off: l.off, buf: l.free[:0]})
	l.free = nil
	return &c.chunks[len(c.chunks)-1]
}

func extend(b []byte, n int) []byte {
	if len(b)+n <= cap(b) {
		return b[:len(b)+n]
	}
	grown := make([]byte, len(b)+n, max(2*cap(b), len(b)+n, 64<<10))
	copy(grown, b)
	return grown
}

// fail ends the log for good: after a failed write or fsync nobody knows what
// the disk holds, and asking again would not tell. What was answered for stays
// as it is; the next start reads it.
func (l *log) fail(doing string, err error) error {
	if l.failed == nil {
		l.failed = &core.Error{Code: core.Unavailable, Err: errors.Join(errors.New(doing), err),
			Detail: "the store has failed, and accepts nothing until it is started again"}
		l.fill.err = l.failed
		close(l.fill.done)
		l.changed()
	}
	return l.failed
}

// changed wakes those who wait for room.
func (l *log) changed() {
	close(l.room)
	l.room = make(chan struct{})
}

// noSpace reports whether a file can't be made for now, for want of room on
// the disk or of the process's own: not a failure of the disk.
func noSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) ||
		errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ENOMEM)
}
