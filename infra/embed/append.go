package embed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"sluice/core"
)

// payloads are items' payloads, one after the other, made before the mutex is
// taken.
type payloads struct {
	buf   []byte
	items []payload
	ids   []idHash // of the items whose part looks for doubles
}

type payload struct {
	len  uint32
	crc  uint32
	size int64 // what counts as the item's own bytes
	at   core.Millis
	out  bool // it is not stored
}

// keptPayloads is the largest buffer of payloads that is kept for another call.
const keptPayloads = 1 << 20

var payloadPool = sync.Pool{New: func() any { return new(payloads) }}

func newPayloads() *payloads { return payloadPool.Get().(*payloads) }

func (p *payloads) free() {
	if cap(p.buf) <= keptPayloads {
		p.buf, p.items, p.ids = p.buf[:0], p.items[:0], p.ids[:0]
		payloadPool.Put(p)
	}
}

// close ends the payload that began at start.
func (p *payloads) close(start int, e *core.Event) {
	b := p.buf[start:]
	p.items = append(p.items, payload{len: uint32(len(b)), crc: sumOf(b), size: e.Size(), at: e.ReceivedAt})
}

// kept is the payloads that are stored.
func (p *payloads) kept() []byte {
	if !slices.ContainsFunc(p.items, func(it payload) bool { return it.out }) {
		return p.buf
	}
	kept, off := make([]byte, 0, len(p.buf)), uint32(0)
	for i := range p.items {
		end := off + p.items[i].len
		if !p.items[i].out {
			kept = append(kept, p.buf[off:end]...)
		}
		off = end
	}
	return kept
}

// undo is what one part of an append has changed.
type undo struct {
	gr    *group
	was   core.Group
	fresh bool
	items []payload
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
			if parts[i].Dedupe > 0 {
				p.ids = append(p.ids, hashID(e.ID))
			}
		}
	}
	answers := make([]core.Appended, 0, len(parts))
	var c *commit
	_, err := s.change(ctx, func() (err error) {
		if c, err = s.append(now, parts, p, &answers); err != nil {
			s.rollBack()
		}
		clear(s.undo)
		clear(s.sighted)
		s.undo, s.sighted = s.undo[:0], s.sighted[:0]
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

// append numbers every part, makes the record, and files the items. It returns
// the commit to wait for: a double is as durable as what it doubles.
func (s *Store) append(now core.Millis, parts []core.Part, p *payloads, answers *[]core.Appended) (*commit, error) {
	*answers = (*answers)[:0]
	s.index.closed.forget(now)
	open := true
	s.meta = s.meta[:0]
	items, ids := p.items, p.ids
	for i := range parts {
		if parts[i].Change != nil {
			*answers = append(*answers, core.Appended{})
			continue
		}
		n, m := len(parts[i].Events), 0
		if parts[i].Dedupe > 0 {
			m = n
		}
		a, err := s.number(now, &parts[i], items[:n], ids[:m])
		if err != nil {
			return nil, err
		}
		*answers = append(*answers, a)
		open = open && !a.Closed
		items, ids = items[n:], ids[m:]
	}
	if !open {
		return nil, errClosed
	}
	s.index.forgetSeen(now)
	changed, err := s.transit(parts, *answers)
	if err != nil {
		return nil, err
	}
	if len(s.undo)+len(changed) == 0 {
		return s.log.barrier(), nil
	}
	body := p.kept()
	if err := s.log.makeRoom(recordSize(len(s.meta)+len(body)), leaveForAppend); err != nil {
		return nil, err
	}
	at := s.log.add(kindGroups, s.meta, body)
	s.fileAll(at + lsn(headerLen+len(s.meta)))
	for _, c := range changed {
		s.index.replace(c.gr, c.next, s.log.end())
	}
	return s.log.fill, nil
}

// changed is a transition that an append makes.
type changed struct {
	gr   *group
	next core.Group
}

// transit runs the transitions of parts that are nothing else, and lists what
// they lead to in the meta.
func (s *Store) transit(parts []core.Part, answers []core.Appended) (all []changed, err error) {
	for i := range parts {
		if parts[i].Change == nil {
			continue
		}
		gr := s.index.find(parts[i].Ref)
		if gr == nil {
			return nil, core.Errorf(core.Conflict, "group %s has gone", parts[i].Ref)
		}
		next := gr.Clone()
		if err := parts[i].Change(&next); err != nil {
			return nil, err
		}
		c := changed{gr, next.Clone()} // it may have kept its copy
		all = append(all, c)
		s.meta = appendPart(s.meta, gr, &c.next, 0, 0)
		answers[i].Changed = true
	}
	return all, nil
}

// number applies one part to its group's record, and lists it in the meta, but
// for what is left out.
func (s *Store) number(now core.Millis, part *core.Part, items []payload, ids []idHash) (core.Appended, error) {
	buf, sighted := s.index.buffer(part.Ref.Buffer), len(s.sighted)
	doubles := s.sift(now, part, items, ids)
	n := len(items) - len(doubles)
	if n == 0 && doubles != nil {
		return core.Appended{Doubles: doubles}, nil
	}
	held := s.index.held(core.Owner(part.Ref.Buffer))
	switch full := part.Size > 0 && held+int64(n) > part.Size; {
	case full && part.Shed:
		s.unsee(sighted)
		return s.shed(now, part, items, ids, doubles, part.Size-held)
	case full:
		return core.Appended{}, &core.Error{Code: core.Full, RetryAfter: time.Second,
			Detail: fmt.Sprintf("buffer %s is full: it holds at most %d events (size)", core.Owner(part.Ref.Buffer), part.Size)}
	}
	gr, fresh := s.index.obtain(part.Ref)
	u := undo{gr: gr, was: gr.Group, fresh: fresh, items: items}
	s.undo = append(s.undo, u)
	var size int64
	for i := range items {
		if !items[i].out {
			size += items[i].size
		}
	}
	a, err := gr.Append(n, size, part.Life, part.Policy, now)
	if err != nil || a.Closed {
		return a, err
	}
	a.Doubles = doubles
	buf.pending += int64(n)
	buf.bytes += size
	s.meta = appendPart(s.meta, gr, &gr.Group, n, windowOf(part))
	s.list(&u)
	return a, nil
}

// shed applies what there is room for of a part, of which nothing is sighted.
func (s *Store) shed(now core.Millis, part *core.Part, items []payload, ids []idHash, doubles []int, room int64) (a core.Appended, err error) {
	fitting := *part
	n := part.Fitting(doubles, room)
	fitting.Events = part.Events[:n]
	for i := range items[n:] {
		items[n+i].out = true
	}
	if room > 0 {
		a, err = s.number(now, &fitting, items[:n], ids[:min(n, len(ids))])
	}
	if !a.Closed {
		a.Shed, a.Stored, a.Doubles = true, n, doubles
	}
	return a, err
}

// list lists a part's items in the meta.
func (s *Store) list(u *undo) {
	f := filed{seq: u.was.Tail, cum: u.was.TailBytes}
	prev := uint64(0)
	for i := range u.items {
		it := &u.items[i]
		if it.out {
			continue
		}
		f.seq++
		f.len, f.crc, f.at, f.size = it.len, it.crc, it.at, it.size
		f.cum += f.size
		s.meta = appendFiled(s.meta, &u.gr.Group, prev, &f)
		prev = f.seq
	}
}

// rollBack takes back what the parts of a refused append have changed, the
// last one first, as parts may share a group.
func (s *Store) rollBack() {
	s.unsee(0)
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
func (s *Store) fileAll(at lsn) {
	for i := range s.undo {
		u := &s.undo[i]
		seq, cum := u.was.Tail, u.was.TailBytes
		for j := range u.items {
			it := &u.items[j]
			if it.out {
				continue
			}
			seq++
			cum += it.size
			s.index.file(u.gr, seq, place{seg: at.seg(), off: uint32(at.off()), len: it.len, crc: it.crc, at: it.at, cum: cum}, it.size, at)
			at += lsn(it.len)
		}
	}
}
