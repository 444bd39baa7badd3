package core

import (
	"cmp"
	"context"
	"iter"
	"time"
)

// Store keeps groups and their items durably. Everything it answers for
// survives a crash of the process; nothing in it is a rule of its own.
//
// Every adapter passes [sluice/core/storetest]. Errors carry a [Code]:
// Unavailable when the store cannot answer now, Full when a limit or the disk
// is reached, Conflict when a transition said so.
type Store interface {
	// Append stores one request: every part, or none when it returns an
	// error; a store of many machines may, when it is Unavailable, have stored
	// some of them. The answer has an element for each part, in order; with an
	// error it is nil, or says what is to be armed and handed over all the
	// same. Parts may name the same group more than once. A part whose group
	// is closed is not stored, and its answer says so, or how far it was; of the
	// others, those are then stored whose answer has a number. Without a closed
	// one, all are stored but for what their answers leave out.
	Append(ctx context.Context, now Millis, parts []Part) ([]Appended, error)

	// Group returns a group's record, or an empty one with no life if there
	// is none.
	Group(ctx context.Context, ref Ref) (Group, error)

	// Update applies a transition to a group atomically and durably, and
	// returns the record as it is then. It may run fn several times, each
	// time on a private copy of the newest record; when fn returns an error,
	// nothing changes and that error is returned as it is. A group that is
	// left empty may be forgotten, with its life. seen is the record as the
	// caller has read it, or nil: it saves a store that would have to ask a
	// server for it the first reading.
	Update(ctx context.Context, ref Ref, seen *Group, fn func(*Group) error) (Group, error)

	// Items reads a span of a group's log. g is the group as the caller has
	// read it, and span lies within its pending items, or within one of its
	// claims.
	Items(ctx context.Context, ref Ref, g *Group, span Span) (Page, error)

	// Due goes through what wants attention at or before a time, by CheckAt
	// and by ClaimDue, in no order. What changes meanwhile may be seen or not.
	// An error is the last thing that it yields.
	Due(ctx context.Context, before Millis) iter.Seq2[Hint, error]

	// Groups lists a buffer's groups that are not empty, in order of their
	// keys, after a key (from the first one if after is nil), at most limit.
	Groups(ctx context.Context, buffer string, after *string, limit int) ([]NamedGroup, error)

	// Stats sums up every buffer that holds anything, whether it is
	// configured or not.
	Stats(ctx context.Context) ([]BufferStats, error)

	// Close ends the store. Calls under way finish first.
	Close() error
}

// Part is what one request appends to one group.
type Part struct {
	Ref    Ref
	Life   string // used when the group is new; no other group has it
	Events []Event
	Policy *Policy
	Size   int64 // the most items that the buffer may hold, claimed ones included; 0: no limit

	// Shed says that the part's last events are left out, alone, for which its buffer
	// has no room by Size, in which doubles do not count. A store of many machines
	// also leaves them out when anything else of the part's own fails, such as its group's
	// ceiling, or when another request has one of its ids in hand: some of it may
	// be stored then. Elsewhere what fails by other than Size fails the whole.
	Shed bool
	// Dedupe leaves out events whose id the buffer, or the one that holds its
	// events ([Owner]), has stored within so long before now, or after it when the
	// clock was set back, in any group; and those whose id stands further ahead in
	// the request, in a part for either that has Dedupe, too. 0: none, and the ids
	// are not remembered. What is refused, shed or closed is not remembered. While
	// another request with such an id is under way, or may have died on its way,
	// the whole is a Conflict.
	Dedupe time.Duration

	// Change, of a part without events, is a transition of its group that a store
	// which can makes in the same step as it stores the other parts: both survive,
	// or neither. Its answer says so. Where it is not made, or a part is closed,
	// nothing comes of it; its error is that of the whole. It may be run several
	// times, like that of an Update.
	Change func(*Group) error
}

// Span is a range of a group's log.
type Span struct {
	From, To uint64 // both inclusive
	MaxItems int    // ends the page with so many items; 0: no limit
	// MaxBytes ends the page before the item with which its payloads would
	// exceed this, but never before the first item. 0: no limit.
	MaxBytes int64

	// Mark is at which number the store is to begin to look for From, as the
	// page before it has said. 0: not known, so that it may take the longer the
	// further From lies behind the first pending item, or a claim's first.
	Mark uint64
}

// after moves the span on behind a page of it.
func (s *Span) after(p *Page) {
	s.From = p.End + 1
	s.Mark = cmp.Or(p.Mark, s.From)
}

// Full reports whether a page of n items ends before one more, with which its
// payload would be so many bytes.
func (s *Span) Full(n int, bytes int64) bool {
	return s.MaxItems > 0 && n >= s.MaxItems || s.MaxBytes > 0 && n > 0 && bytes > s.MaxBytes
}

// Page is what a span holds. Numbers that a dead writer or a damaged disk
// left without an item are void.
type Page struct {
	Items   []Item
	Offsets []int64 // for each item, the log's payload bytes up to and including it
	End     uint64  // every number of the span up to here is in Items or void
	Through int64   // the log's payload bytes up to End
	NextAt  Millis  // arrival of the first item after End, or a lower bound; 0 when not known

	// RetryAt is when the numbers behind End, whose writer may still be at
	// work, count as void. 0: no such number ends the page.
	RetryAt Millis

	// Marks says for each item, and Mark for number End + 1, at which number
	// the store is to begin to look for it; 0: at its own. A store that needs
	// no such help leaves them out.
	Marks []uint64
	Mark  uint64
}

// mark is where to look for the item after the n-th.
func (p *Page) mark(n int) uint64 {
	if n < len(p.Marks) {
		return p.Marks[n]
	}
	return p.Mark
}

// Hint says that a group wants attention at a time. It may be lost, late or
// doubled: the store decides what happens.
type Hint struct {
	Ref  Ref
	Life string
	At   Millis
	// Check orders the hints for the CheckAt of one life of a group: one
	// with a greater number makes the earlier ones pointless. 0: the hint is
	// for a claim, and stands for itself.
	Check uint64
}

// NamedGroup is a group with its name.
type NamedGroup struct {
	Ref Ref
	Group
}

// BufferStats sums up one buffer.
type BufferStats struct {
	Buffer  string
	Groups  int
	Pending int64  // items not yet claimed
	Bytes   int64  // their payload
	Claimed int64  // items in flight or waiting for a retry
	Held    int64  // those of the pending ones that are held in their groups
	Oldest  Millis // arrival of the oldest pending item, or a lower bound; 0: none
}
