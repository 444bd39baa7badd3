package embed

import (
	"errors"
	"path/filepath"
	"time"
)

const (
	spareTarget = 2 + leaveForAppend
	// retryFull is how soon a full disk is tried again when somebody asks.
	retryFull = 100 * time.Millisecond
	zeroBlock = 1 << 20
	// zeroSync is how many zeros are written between two syncs: few enough
	// that the commits beside them hardly wait.
	zeroSync = 4
)

// prepareLoop keeps spares ready, out of dead segments where there are any,
// and gives the room of the other dead ones back, until stop is closed.
func (l *log) prepareLoop(stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-l.spare:
		}
		for l.prepare(stop) {
		}
		l.mu.Lock()
		full := l.full
		l.mu.Unlock()
		if !full {
			continue
		}
		select {
		case <-stop:
			return
		case <-time.After(retryFull):
		}
	}
}

// prepare makes one spare, or removes one dead segment. It reports whether
// there may be more to do.
func (l *log) prepare(stop <-chan struct{}) bool {
	select {
	case <-stop:
		return false
	default:
	}
	l.mu.Lock()
	var dead *segment
	want := false
	if l.failed == nil {
		dead, want = l.takeDead(), l.wantsSpare()
	}
	if dead == nil && (!want || l.yielding) {
		l.mu.Unlock()
		return false
	}
	if want {
		l.gens++
	}
	gen := l.gens
	l.making = want
	l.mu.Unlock()

	spare, err := l.obtain(dead, want, gen, stop)

	l.mu.Lock()
	defer l.mu.Unlock()
	l.making = false
	switch {
	case errors.Is(err, errStopped):
		return false
	case noSpace(err):
		l.full = true
		poke(l.notice) // a checkpoint may set dead segments free
		l.changed()
		return false
	case err != nil:
		_ = l.fail("prepare a segment", err) // whoever comes next hears of it
		return false
	case spare != nil:
		l.spares = append(l.spares, spare)
		l.starving, l.full, l.stuck = false, false, false
		l.changed()
	}
	return true
}

// obtain makes a spare of the dead segment, or a new one; or, when none is
// wanted, removes the dead one.
func (l *log) obtain(dead *segment, want bool, gen uint32, stop <-chan struct{}) (*segment, error) {
	switch {
	case dead == nil:
		return l.create(gen, true, stop)
	case want && dead.size == l.size:
		if err := l.recycle(dead, gen); err != nil {
			return nil, err
		}
		return dead, nil
	}
	if err := errors.Join(dead.file.Close(), l.fs.Remove(dead.name), l.fs.SyncDir(l.dir)); err != nil || !want {
		return nil, err
	}
	return l.create(gen, true, stop)
}

// wantsSpare reports whether another spare is needed. A store that has hardly
// been used takes none: a start on an empty folder is quick, and stays small.
func (l *log) wantsSpare() bool {
	return len(l.spares) < spareTarget && (l.rolled || l.starving || l.off >= l.size/4)
}

// takeDead takes a segment that nothing will ever read again out of the
// table, or returns nil.
func (l *log) takeDead() *segment {
	l.segs.deaths = false
	for gen, seg := range l.segs.byGen {
		switch {
		case !l.dead(seg):
		case seg.died > l.durable:
			l.segs.deaths = true // the next commit asks again
		default:
			delete(l.segs.byGen, gen)
			l.segs.deaths = true
			return seg
		}
	}
	return nil
}

// dead reports whether nothing in a segment is needed, and no start reads it.
func (l *log) dead(seg *segment) bool {
	return seg.live == 0 && seg.pins == 0 && seg != l.cur && seg.file != nil && seg.gen < l.replay.seg()
}

// recycle makes a dead segment a spare of a new generation, under which none
// of its stale records verifies.
func (l *log) recycle(seg *segment, gen uint32) error {
	name := segmentName(l.dir, gen)
	err := l.fs.Rename(seg.name, name)
	if err == nil {
		err = l.fs.SyncDir(l.dir)
	}
	seg.gen, seg.name, seg.recycled, seg.died = gen, name, true, 0
	if err == nil {
		err = seg.writeHeader()
	}
	if err != nil {
		return errors.Join(err, seg.file.Close())
	}
	return nil
}

var errStopped = errors.New("stopped")

// create makes a new segment. Room for all of it is taken now, so that no
// record ever meets a full disk. With zero it is also written once, unless
// somebody is waiting: a commit in a written file need not commit metadata.
func (l *log) create(gen uint32, zero bool, stop <-chan struct{}) (*segment, error) {
	temp := filepath.Join(l.dir, "segment"+tempSuffix)
	f, err := l.fs.Create(temp)
	if err != nil {
		return nil, err
	}
	seg := &segment{gen: gen, name: segmentName(l.dir, gen), file: f, size: l.size}
	err = f.Allocate(l.size)
	if must := errors.Is(err, errors.ErrUnsupported); must || (err == nil && zero) {
		err = l.writeZeros(f, must, stop)
	}
	if err == nil {
		err = seg.writeHeader()
	}
	if err == nil {
		err = l.fs.Rename(temp, seg.name)
	}
	if err == nil {
		err = l.fs.SyncDir(l.dir)
	}
	if err != nil {
		// What could not be made gives its room back, now or at the next start.
		return nil, errors.Join(err, f.Close(), l.fs.Remove(temp))
	}
	return seg, nil
}

// writeZeros fills a new file. It ends early when somebody waits for the
// file, unless the zeros are what keeps the room.
func (l *log) writeZeros(f File, must bool, stop <-chan struct{}) error {
	zeros := make([]byte, min(zeroBlock, l.size))
	for n, off := 0, int64(0); off < l.size; n, off = n+1, off+int64(len(zeros)) {
		select {
		case <-stop:
			return errStopped
		default:
		}
		l.mu.Lock()
		hurry := l.starving && !must
		l.mu.Unlock()
		if hurry {
			return nil
		}
		if _, err := f.WriteAt(zeros[:min(int64(len(zeros)), l.size-off)], off); err != nil {
			return err
		}
		if n%zeroSync == zeroSync-1 {
			if err := f.Sync(); err != nil {
				return err
			}
		}
	}
	return nil
}
