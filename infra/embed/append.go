package embed

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"sluice/core"
)

// payloads are items' payloads, one after the other, made before the mutex is
// taken.
type payloads struct {
	buf   []byte
	items []payload
}

type payload struct {
	len  uint32
	crc  uint32
	size int64 // what counts as the item's own bytes
	at   core.Millis
}

// keptPayloads is the largest buffer of payloads that is kept for another call.
const keptPayloads = 1 << 20

var payloadPool = sync.Pool{New: func() any { return new(payloads) }}

func newPayloads() *payloads { return payloadPool.Get().(*payloads) }

func (p *payloads) free() {
	if cap(p.buf) <= keptPayloads {
		p.buf, p.items = p.buf[:0], p.items[:0]
		payloadPool.Put(p)
	}
}

// close ends the payload that began at start.
func (p *payloads) close(start int, e *core.Event) {
	b := p.buf[start:]
	p.items = append(p.items, payload{len: uint32(len(b)), crc: sumOf(b), size: e.Size(), at: e.ReceivedAt})
}

// undo is what one part of an append has changed.
type undo struct {
	gr    *group
	was   core.Group
	fresh bool
	n     int
}

// errClosed says that a part's group is closed, and nothing has changed.
var errClosed = errors.New("closed")

// Append stores a request as one record: a crash leaves all of it or nothing,
// and a part whose group is closed keeps all of it out.
func (s *Store) Append(ctx context.Context, now core.Millis, parts []core.Part) ([]core.Appended, error) {
	if len(parts) == 0 {
		return nil, nil
	}
	p := newPayloads()
	defer p.free()
	for i := range parts {
		for j := range parts[i].Events {
			e := &parts[i].Events[j]
			start := len(p.buf)
			p.buf = appendEvent(p.buf, e)
			p.close(start, e)
		}
	}
	answers := make([]core.Appended, 0, len(parts))
	c, err := s.change(ctx, func() error {
		s.undo = s.undo[:0]
		err := s.append(now, parts, p, &answers)
		if err != nil {
			s.rollBack()
		}
		clear(s.undo)
		return err
	})
	if errors.Is(err, errClosed) {
		for i := range answers {
			answers[i] = core.Appended{Closed: answers[i].Closed}
		}
		return answers, nil
	}
	if err != nil {
		return nil, err
	}
	return answers, c.wait()
}

// append numbers every part, makes the record, and files the items.
func (s *Store) append(now core.Millis, parts []core.Part, p *payloads, answers *[]core.Appended) error {
	*answers = (*answers)[:0]
	s.index.closed.forget(now)
	open := true
	s.meta = appendNumbers(s.meta[:0], uint64(len(parts)))
	items := p.items
	for i := range parts {
		a, err := s.number(now, &parts[i], items[:len(parts[i].Events)])
		if err != nil {
			return err
		}
		*answers = append(*answers, a)
		open = open && !a.Closed
		items = items[len(parts[i].Events):]
	}
	if !open {
		return errClosed
	}
	if err := s.log.makeRoom(recordSize(len(s.meta)+len(p.buf)), leaveForAppend); err != nil {
		return err
	}
	at := s.log.add(kindGroups, s.meta, p.buf)
	s.fileAll(p.items, at+lsn(headerLen+len(s.meta)))
	return nil
}

// number applies one part to its group's record, and lists it in the meta.
func (s *Store) number(now core.Millis, part *core.Part, items []payload) (core.Appended, error) {
	gr, fresh := s.index.obtain(part.Ref)
	u := undo{gr: gr, was: gr.Group, fresh: fresh, n: len(items)}
	s.undo = append(s.undo, u)
	var size int64
	for i := range items {
		size += items[i].size
	}
	if part.Size > 0 && gr.buf.pending+gr.buf.claimed+int64(len(items)) > part.Size {
		return core.Appended{}, &core.Error{Code: core.Full, RetryAfter: time.Second,
			Detail: fmt.Sprintf("buffer %s is full: it holds at most %d events (size)", part.Ref.Buffer, part.Size)}
	}
	a, err := gr.Append(len(items), size, part.Life, part.Policy, now)
	if err != nil || a.Closed {
		return a, err
	}
	gr.buf.pending += int64(len(items))
	gr.buf.bytes += size
	s.meta = appendPart(s.meta, gr, &gr.Group, len(items))
	f := filed{seq: u.was.Tail, cum: u.was.TailBytes}
	prev := uint64(0)
	for i := range items {
		f.seq++
		f.len, f.crc, f.at, f.size = items[i].len, items[i].crc, items[i].at, items[i].size
		f.cum += f.size
		s.meta = appendFiled(s.meta, &gr.Group, prev, &f)
		prev = f.seq
	}
	return a, nil
}

// rollBack takes back what the parts of a refused append have changed, the
// last one first, as parts may share a group.
func (s *Store) rollBack() {
	for i := len(s.undo) - 1; i >= 0; i-- {
		u := &s.undo[i]
		u.gr.buf.count(&u.gr.Group, -1)
		u.gr.Group = u.was
		u.gr.buf.count(&u.gr.Group, 1)
		if u.fresh {
			s.index.forget(u.gr, 0)
		}
	}
}

// fileAll notes where the items of an append lie, from a place of the log on.
func (s *Store) fileAll(items []payload, at lsn) {
	for i := range s.undo {
		u := &s.undo[i]
		seq, cum := u.was.Tail, u.was.TailBytes
		for j := range items[:u.n] {
			it := &items[j]
			seq++
			cum += it.size
			s.index.file(u.gr, seq, place{seg: at.seg(), off: uint32(at.off()), len: it.len, crc: it.crc, at: it.at, cum: cum}, it.size, at)
			at += lsn(it.len)
		}
		items = items[u.n:]
	}
}
