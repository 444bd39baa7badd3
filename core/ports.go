package core

import "context"

// Timer hands a [Hint] to the checker at its time, or later; it may lose or
// double one, as the sweep finds what it lost.
type Timer interface {
	Arm(ctx context.Context, h Hint) error
}

// Queue hands a [Delivery] to a deliverer, soon. It may lose or double one.
// It keeps one busy buffer or destination from starving the others.
type Queue interface {
	Hand(ctx context.Context, d Delivery) error
}

// Delivery says that a group may have something to deliver.
type Delivery struct {
	Ref         Ref
	Destination string
	Seen        *Group // the group as the sender has read it, which may save a reading; nil: it has not
}

// Coordinator keeps small records that all processes on a store share, each
// changed atomically.
//
// Every adapter passes [sluice/core/coordinatortest].
type Coordinator interface {
	// Change makes of a record, which is nil when there is none, what fn makes
	// of it; nil removes it. It may run fn several times, each time on the
	// newest record; when fn returns an error, nothing changes and that error is
	// returned as it is. A name has at most 200 bytes, a record at most 4 KiB.
	// Unavailable: the coordinator cannot answer now.
	Change(ctx context.Context, name string, fn func(old []byte) ([]byte, error)) error
}

// Sender sends one batch to one destination and says what came of it. It
// returns when the outcome is known, or its own timeout or ctx has ended.
type Sender interface {
	Send(ctx context.Context, b *Batch) Response
}

// Batch is a claim's items on their way to a destination.
type Batch struct {
	ID      string // the same on every attempt
	Buffer  string
	Group   string
	Reason  Reason
	Attempt int // from 1
	Items   []Item
	Shadow  bool    // a copy on the side
	Window  *Window // of which the batch is a part; nil: none

	leave *leave // of a batch of held events; nil: of any other
}

// Window is the time window [Start, End) of a group.
type Window struct {
	ID         string // the same for all batches of the window
	Start, End Millis
}

// FirstAt is the arrival of the batch's oldest item.
func (b *Batch) FirstAt() Millis {
	var at Millis
	for i := range b.Items {
		at = earliest(at, b.Items[i].ReceivedAt)
	}
	return at
}

// LastAt is the arrival of the batch's newest item.
func (b *Batch) LastAt() Millis {
	var at Millis
	for i := range b.Items {
		at = max(at, b.Items[i].ReceivedAt)
	}
	return at
}

// Bytes is the payload of the batch.
func (b *Batch) Bytes() int64 {
	var n int64
	for i := range b.Items {
		n += b.Items[i].Size()
	}
	return n
}

// IDs makes ids that are unique, sort by time, and hold no more than letters
// and digits.
type IDs interface {
	New() string
}

// IDsFunc makes an [IDs] of a function.
type IDsFunc func() string

// New calls f.
func (f IDsFunc) New() string { return f() }
