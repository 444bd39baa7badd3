package core

import "context"

// Store keeps groups and their items durably. Everything it answers for
// survives a crash of the process; nothing in it is a rule of its own.
//
// Every adapter passes [sluice/core/storetest]. Errors carry a [Code]:
// Unavailable when the store cannot answer now, Full when a limit or the disk
// is reached, Conflict when a transition said so.
type Store interface {
	// Append stores one request: every part, or none when it returns an
	// error. The answer has an element for each part, in order. Parts may
	// name the same group more than once.
	Append(ctx context.Context, now Millis, parts []Part) ([]Appended, error)

	// Group returns a group's record, or an empty one with no life if there
	// is none.
	Group(ctx context.Context, ref Ref) (Group, error)

	// Update applies a transition to a group atomically and durably, and
	// returns the record as it is then. It may run fn several times, each
	// time on a private copy of the newest record; when fn returns an error,
	// nothing changes and that error is returned as it is. A group that is
	// left empty may be forgotten, with its life.
	Update(ctx context.Context, ref Ref, fn func(*Group) error) (Group, error)

	// Items reads a span of a group's log.
	Items(ctx context.Context, ref Ref, span Span) (Page, error)

	// Due lists what wants attention at or before a time, by CheckAt and by
	// ClaimDue, at most limit entries (0: all). The order is not defined.
	Due(ctx context.Context, before Millis, limit int) ([]Hint, error)

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
	Life   string // used when the group is new
	Events []Event
	Policy *Policy
	Size   int64 // the most items that the buffer may hold, claimed ones included; 0: no limit
}

// Span is a range of a group's log.
type Span struct {
	From, To uint64 // both inclusive
	// MaxBytes ends the page before the item with which its payloads would
	// exceed this, but never before the first item. 0: no limit.
	MaxBytes int64
}

// Page is what a span holds. Numbers that a dead writer or a damaged disk
// left without an item are void.
type Page struct {
	Items   []Item
	Offsets []int64 // for each item, the log's payload bytes up to and including it
	End     uint64  // every number of the span up to here is in Items or void
	Through int64   // the log's payload bytes up to End
	NextAt  Millis  // arrival of the first item after End, or 0
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
	Oldest  Millis // arrival of the oldest pending item, or a lower bound; 0: none
}
