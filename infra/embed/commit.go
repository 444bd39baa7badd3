package embed

import "runtime"

// A commit is what one fdatasync makes durable.
type commit struct {
	chunks []chunk
	end    lsn // the log's end with it
	done   chan struct{}
	err    error // valid once done is closed
}

// chunk is a run of records in one segment.
type chunk struct {
	seg *segment
	off int64
	buf []byte
}

// keptBuffer is the largest commit buffer that is kept for a later commit: as
// much as many writers of large requests fill while one commit is on its way.
const keptBuffer = 16 << 20

// covering is the commit that makes a place of the log durable, or nil when
// it is.
func (l *log) covering(at lsn) *commit {
	switch {
	case at < l.durable:
		return nil
	case l.busy != nil && at < l.busy.end:
		return l.busy
	}
	return l.fill
}

// barrier is the commit after which everything applied so far is durable, or
// nil when it is.
func (l *log) barrier() *commit {
	if l.end() <= l.durable {
		return nil
	}
	return l.covering(l.end() - 1)
}

// wait waits until a commit is durable; nil is.
func (c *commit) wait() error {
	if c == nil {
		return nil
	}
	<-c.done
	return c.err
}

// commitLoop takes commits to the disk until stop is closed.
func (l *log) commitLoop(stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-l.wake:
		}
		l.mu.Lock()
		c := l.fill
		if len(c.chunks) == 0 || l.failed != nil {
			l.mu.Unlock()
			continue
		}
		l.busy, l.fill = c, &commit{done: make(chan struct{})}
		l.commits++
		l.mu.Unlock()

		err := l.write(c)

		l.mu.Lock()
		l.busy = nil
		if err != nil {
			c.err = l.fail("write the log", err)
		} else {
			l.durable = c.end
			if buf := c.chunks[0].buf; cap(buf) <= keptBuffer {
				l.free = buf
			}
			if l.segs.deaths {
				poke(l.spare)
			}
			if l.written >= l.every {
				poke(l.notice)
			}
		}
		l.mu.Unlock()
		close(c.done)
		// Those who have waited run now, and add to the next commit, before
		// this goroutine takes its processor into another system call.
		runtime.Gosched()
	}
}

// write puts a commit on the disk.
func (l *log) write(c *commit) error {
	for i := range c.chunks {
		ch := &c.chunks[i]
		if _, err := ch.seg.file.WriteAt(ch.buf, ch.off); err != nil {
			return err
		}
	}
	if !l.sync {
		return nil
	}
	for i := range c.chunks {
		if err := c.chunks[i].seg.file.Sync(); err != nil {
			return err
		}
	}
	return nil
}
