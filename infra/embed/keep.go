package embed

import "sluice/core"

// keepLoop writes checkpoints and copies old items forward, until stop is closed.
func (s *Store) keepLoop(stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-s.log.notice:
		}
		var err error
		if s.wantsCheckpoint() {
			err = s.checkpoint()
		}
		if err == nil || core.CodeOf(err) == core.Full {
			err = s.copyForward(stop)
		}
		if err == nil || core.CodeOf(err) == core.Full {
			s.giveUp()
		}
	}
}

// wantsCheckpoint reports whether enough was written since the last one, or
// the disk is full and a checkpoint would set segments free.
func (s *Store) wantsCheckpoint() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.written >= s.log.every || (s.log.full && s.log.cur.gen > s.log.replay.seg())
}

// giveUp tells those who wait for room on a full disk when there is none to be had.
func (s *Store) giveUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.log
	if !l.full || l.making || len(l.spares) > leaveForUpdate {
		return
	}
	for _, seg := range l.segs.byGen {
		if l.dead(seg) {
			return // the preparer will make a spare of it
		}
	}
	l.stuck = true
	l.changed()
}
