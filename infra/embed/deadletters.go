package embed

import (
	"context"
	"slices"
	"strconv"

	"sluice/core"
)

// DeadLetters are the dead letters that the store keeps: records in its log,
// of which memory knows the id, the buffer and the place.
type DeadLetters struct{ s *Store }

var (
	_ core.DeadLetterSink  = (*DeadLetters)(nil)
	_ core.DeadLetterQueue = (*DeadLetters)(nil)
)

// DeadLetters returns the store's dead letters.
func (s *Store) DeadLetters() *DeadLetters { return &DeadLetters{s} }

// stepLetters is how many letters a walk visits before it lets go of the mutex.
const stepLetters = 2048

// recordLetters bounds one record of dead letters.
const recordLetters = 1 << 20

// Put stores letters durably; one whose id is there already is left alone.
func (d *DeadLetters) Put(ctx context.Context, put []core.DeadLetter) error {
	var c *commit
	for len(put) > 0 {
		p := newPayloads()
		n := 0
		for n < len(put) && (n == 0 || len(p.buf) < min(recordLetters, int(d.s.opts.SegmentBytes/4))) {
			start := len(p.buf)
			p.buf = appendLetter(p.buf, &put[n])
			p.close(start, &put[n].Item.Event)
			n++
		}
		_, err := d.s.change(ctx, func() (err error) {
			c, err = d.s.putLetters(put[:n], p)
			return err
		})
		p.free()
		if err != nil {
			return err
		}
		put = put[n:]
	}
	return c.wait() // commits are durable in order
}

// putLetters logs and files those of some letters that are new. It returns the
// commit to wait for.
func (s *Store) putLetters(put []core.DeadLetter, p *payloads) (*commit, error) {
	ls := &s.index.letters
	var fresh []letter
	seen := map[string]bool{}
	body := make([]byte, 0, len(p.buf))
	off := 0
	for i := range put {
		raw := p.buf[off : off+int(p.items[i].len)]
		off += len(raw)
		if id := put[i].ID; ls.byID[id] == nil && !seen[id] {
			seen[id] = true
			fresh = append(fresh, letter{number: ls.last + 1 + uint64(len(fresh)), id: id, buffer: put[i].Buffer,
				place: place{len: p.items[i].len, crc: p.items[i].crc}})
			body = append(body, raw...)
		}
	}
	if len(fresh) == 0 {
		return s.log.barrier(), nil
	}
	return s.writeLetters(fresh, body, leaveForAppend)
}

// writeLetters logs letters with their payloads, and files them.
func (s *Store) writeLetters(put []letter, body []byte, leave int) (*commit, error) {
	s.meta = appendNumbers(s.meta[:0], uint64(len(put)))
	for i := range put {
		s.meta = appendLetterEntry(s.meta, &put[i])
	}
	if err := s.log.makeRoom(recordSize(len(s.meta)+len(body)), leave); err != nil {
		return nil, err
	}
	at := s.log.add(kindLetters, s.meta, body) + lsn(headerLen+len(s.meta))
	for i := range put {
		l := &put[i]
		l.place.seg, l.place.off = at.seg(), uint32(at.off())
		at += lsn(l.place.len)
		s.index.fileLetter(l, s.log.end())
	}
	return s.log.fill, nil
}

// each visits the letters that a filter picks, by number from the one after a
// number on, in steps.
func (d *DeadLetters) each(ctx context.Context, f core.DeadLetterFilter, after uint64, visit func(*letter) bool) error {
	s := d.s
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	for {
		order := s.index.letters.order
		i, _ := s.index.letters.search(after + 1)
		for _, l := range order[i:min(len(order), i+stepLetters)] {
			after = l.number
			if !l.gone && picks(&f, l) && !visit(l) {
				s.mu.Unlock()
				return nil
			}
		}
		more := i+stepLetters < len(order)
		s.mu.Unlock()
		if err := ctx.Err(); err != nil {
			return core.Wrap(core.Canceled, err, "the caller has gone")
		}
		if !more {
			return nil
		}
		s.mu.Lock()
	}
}

func picks(f *core.DeadLetterFilter, l *letter) bool {
	return (f.Buffer == "" || f.Buffer == l.buffer) && (len(f.IDs) == 0 || slices.Contains(f.IDs, l.id))
}

// List peeks at letters, oldest first, taken ones too. Invalid: from is none
// that List has returned.
func (d *DeadLetters) List(ctx context.Context, f core.DeadLetterFilter, from string, limit int) ([]core.DeadLetter, string, error) {
	var after uint64
	if from != "" {
		var err error
		if after, err = strconv.ParseUint(from, 10, 64); err != nil {
			return nil, "", core.Wrap(core.Invalid, err, "%q is no place in the list; take one from an earlier answer's next", from)
		}
	}
	var found []*letter
	next, size := "", int64(0)
	err := d.each(ctx, f, after, func(l *letter) bool {
		size += int64(l.place.len) // more than its Size
		if n := len(found); limit > 0 && n == limit || f.MaxBytes > 0 && n > 0 && size > f.MaxBytes {
			next = strconv.FormatUint(found[n-1].number, 10)
			return false
		}
		found = append(found, l)
		return true
	})
	if err != nil {
		return nil, "", err
	}
	listed, err := d.load(ctx, found, nil)
	return listed, next, err
}

// Count is how many letters a filter picks, taken ones too.
func (d *DeadLetters) Count(ctx context.Context, f core.DeadLetterFilter) (int, error) {
	n := 0
	err := d.each(ctx, f, 0, func(*letter) bool { n++; return true })
	return n, err
}

// Take leases the oldest letters that are free. The lease is not durable: it
// ends with the process, as its holder does.
func (d *DeadLetters) Take(ctx context.Context, f core.DeadLetterFilter, limit int, now, until core.Millis) ([]core.DeadLetter, error) {
	var found []*letter
	var receipts []uint64
	err := d.each(ctx, f, 0, func(l *letter) bool {
		if l.until > now {
			return true
		}
		d.s.index.letters.receipts++
		l.until, l.receipt = until, d.s.index.letters.receipts
		found, receipts = append(found, l), append(receipts, l.receipt)
		return len(found) != limit
	})
	if err != nil {
		return nil, err
	}
	return d.load(ctx, found, receipts)
}

// load reads letters. One that is damaged is lost, and told of; one that has
// gone meanwhile is left out.
func (d *DeadLetters) load(ctx context.Context, found []*letter, receipts []uint64) ([]core.DeadLetter, error) {
	s := d.s
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.leave()
	spots := make([]spot, 0, len(found))
	for i, l := range found {
		if !l.gone {
			spots = append(spots, spot{seq: uint64(i), place: l.place})
		}
	}
	if err := s.read(spots); err != nil {
		return nil, err
	}
	loaded := make([]core.DeadLetter, 0, len(spots))
	var bad []spot
	var lost []*letter
	for i := range spots {
		r := reader{b: spots[i].raw}
		l := r.letter()
		if spots[i].raw == nil || r.bad {
			bad, lost = append(bad, spots[i]), append(lost, found[spots[i].seq])
			continue
		}
		if receipts != nil {
			l.Receipt = strconv.FormatUint(receipts[spots[i].seq], 10)
		}
		loaded = append(loaded, l)
	}
	s.loseLetters(lost, bad)
	return loaded, nil
}

// loseLetters does for letters what lose does for items.
func (s *Store) loseLetters(lost []*letter, bad []spot) {
	var losses []Loss
	s.mu.Lock()
	for i, l := range lost {
		if !l.gone && l.place == bad[i].place {
			s.index.removeLetter(l, s.log.end())
			s.lost++
			losses = append(losses, Loss{Letter: l.id})
		}
	}
	s.mu.Unlock()
	s.tell(losses)
}

// Settle removes the done letters durably, even those whose lease has passed
// on, since what was replayed must not be replayed again; it frees those of the
// others that are still under the same lease.
func (d *DeadLetters) Settle(ctx context.Context, done, back []core.DeadLetter) error {
	s := d.s
	var c *commit
	_, err := s.change(ctx, func() (err error) {
		if c, err = s.removeLetters(done); err != nil {
			return err
		}
		for i := range back {
			l := s.index.letters.byID[back[i].ID]
			if l != nil && strconv.FormatUint(l.receipt, 10) == back[i].Receipt {
				l.until = 0
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return c.wait()
}

// removeLetters logs that letters are gone, and forgets them. It returns the
// commit to wait for.
func (s *Store) removeLetters(done []core.DeadLetter) (*commit, error) {
	gone := map[uint64]*letter{}
	for i := range done {
		if l := s.index.letters.byID[done[i].ID]; l != nil {
			gone[l.number] = l
		}
	}
	if len(gone) == 0 {
		return s.log.barrier(), nil
	}
	s.meta = appendNumbers(s.meta[:0], uint64(len(gone)))
	for number := range gone {
		s.meta = appendNumbers(s.meta, number)
	}
	if err := s.log.makeRoom(recordSize(len(s.meta)), leaveForUpdate); err != nil {
		return nil, err
	}
	s.log.add(kindSettled, s.meta, nil)
	for _, l := range gone {
		s.index.removeLetter(l, s.log.end())
	}
	return s.log.fill, nil
}
