package memory

import (
	"context"
	"slices"
	"strconv"
	"sync"

	"sluice/core"
)

// DeadLetters is a [core.DeadLetterSink] and [core.DeadLetterQueue] in memory.
// It is safe for concurrent use. Its lists show taken letters too.
type DeadLetters struct {
	mu      sync.Mutex
	put     uint64    // letters ever put: each one's place in the order
	taken   uint64    // leases ever given: each one's receipt
	letters []*letter // oldest first
}

type letter struct {
	core.DeadLetter
	place   uint64
	until   core.Millis // end of the lease; 0: never taken, or given back
	receipt string      // of the newest lease
}

var (
	_ core.DeadLetterSink  = (*DeadLetters)(nil)
	_ core.DeadLetterQueue = (*DeadLetters)(nil)
)

func newDeadLetters() *DeadLetters { return &DeadLetters{} }

// Put implements [core.DeadLetterSink].
func (d *DeadLetters) Put(_ context.Context, letters []core.DeadLetter) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range letters {
		if d.find(letters[i].ID) >= 0 {
			continue
		}
		d.put++
		l := &letter{DeadLetter: letters[i], place: d.put}
		l.Item.Event = clone(l.Item.Event)
		l.Receipt = ""
		d.letters = append(d.letters, l)
	}
	return nil
}

// find is the index of a letter, or -1.
func (d *DeadLetters) find(id string) int {
	return slices.IndexFunc(d.letters, func(l *letter) bool { return l.ID == id })
}

// List implements [core.DeadLetterQueue]. A from that List never returned is Invalid.
func (d *DeadLetters) List(_ context.Context, f core.DeadLetterFilter, from string, limit int) ([]core.DeadLetter, string, error) {
	var after uint64
	if from != "" {
		var err error
		if after, err = strconv.ParseUint(from, 10, 64); err != nil {
			return nil, "", core.Wrap(core.Invalid, err, "%q is no place in the list; take one from an earlier answer's next", from)
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	var page []core.DeadLetter
	var last uint64
	var size int64
	for _, l := range d.letters {
		if l.place <= after || !picks(f, l) {
			continue
		}
		size += l.Size()
		if n := len(page); n == limit || f.MaxBytes > 0 && n > 0 && size > f.MaxBytes {
			return page, strconv.FormatUint(last, 10), nil
		}
		page = append(page, l.copy())
		last = l.place
	}
	return page, "", nil
}

// Count implements [core.DeadLetterQueue].
func (d *DeadLetters) Count(_ context.Context, f core.DeadLetterFilter) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := 0
	for _, l := range d.letters {
		if picks(f, l) {
			n++
		}
	}
	return n, nil
}

// Take implements [core.DeadLetterQueue].
func (d *DeadLetters) Take(_ context.Context, f core.DeadLetterFilter, limit int, now, until core.Millis) ([]core.DeadLetter, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var taken []core.DeadLetter
	for _, l := range d.letters {
		if len(taken) == limit {
			break
		}
		if l.until > now || !picks(f, l) {
			continue
		}
		d.taken++
		l.until, l.receipt = until, strconv.FormatUint(d.taken, 10)
		c := l.copy()
		c.Receipt = l.receipt
		taken = append(taken, c)
	}
	return taken, nil
}

// Settle implements [core.DeadLetterQueue]. Done removes even when the lease
// has passed on, since what was replayed must not be replayed again; back
// frees only what is still under the same lease.
func (d *DeadLetters) Settle(_ context.Context, done, back []core.DeadLetter) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range done {
		if at := d.find(done[i].ID); at >= 0 {
			d.letters = slices.Delete(d.letters, at, at+1)
		}
	}
	for i := range back {
		if at := d.find(back[i].ID); at >= 0 && d.letters[at].receipt == back[i].Receipt {
			d.letters[at].until = 0
		}
	}
	return nil
}

func (l *letter) copy() core.DeadLetter {
	c := l.DeadLetter
	c.Item.Event = clone(c.Item.Event)
	return c
}

// picks reports whether f picks l.
func picks(f core.DeadLetterFilter, l *letter) bool {
	return (f.Buffer == "" || f.Buffer == l.Buffer) &&
		(len(f.IDs) == 0 || slices.Contains(f.IDs, l.ID))
}
