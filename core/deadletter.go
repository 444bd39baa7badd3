package core

import (
	"context"
	"fmt"
)

// DeadLetter is one item whose delivery has finally failed.
type DeadLetter struct {
	ID           string // <claim id>/<seq>: the same however often it is put
	Batch        string
	Buffer       string
	Group        string
	Destination  string
	Reason       string // "permanent" or "exhausted"
	Status       int    // the last answer's; 0: none came
	Answer       string // the last answer's body, at most MaxAnswer bytes
	Attempts     int
	FirstErrorAt Millis
	LastErrorAt  Millis
	LastError    string // at most MaxAnswer bytes
	Item         Item

	Receipt string // an adapter's own handle on a taken letter; never shown
}

// Size is how many bytes a letter has: of its strings, and its item's.
func (l *DeadLetter) Size() int64 {
	n := len(l.ID) + len(l.Batch) + len(l.Buffer) + len(l.Group) + len(l.Destination) + len(l.Reason) + len(l.Answer) + len(l.LastError)
	e := &l.Item.Event
	n += len(e.ID) + len(e.Source) + len(e.ContentType) + len(e.Body)
	for _, h := range e.Headers {
		n += len(h.Name) + len(h.Value)
	}
	return int64(n)
}

// The reasons for which an item becomes a dead letter.
const (
	DeadPermanent = "permanent" // the destination refused it for good
	DeadExhausted = "exhausted" // every attempt failed
)

// DeadLetterFilter picks dead letters; an empty field picks all.
type DeadLetterFilter struct {
	Buffer string
	IDs    []string

	// MaxBytes bounds one call of List, which alone heeds it: the letters that
	// it returns are of so many bytes, by their Size, unless it is one letter
	// that is larger. 0: no limit.
	MaxBytes int64
}

// DeadLetterSink takes dead letters durably. Putting one again, by ID,
// changes nothing. Every adapter passes [sluice/core/deadlettertest].
type DeadLetterSink interface {
	Put(ctx context.Context, letters []DeadLetter) error
}

// DeadLetterQueue is where dead letters wait to be looked at and replayed.
type DeadLetterQueue interface {
	// List peeks at letters, oldest first, at most limit and f.MaxBytes, from
	// the place that an earlier call returned as next ("": the first). next is
	// "" at the end. A call may cost as much as a look at all letters, so ask for
	// a whole page at once.
	List(ctx context.Context, f DeadLetterFilter, from string, limit int) (letters []DeadLetter, next string, err error)

	// Count is how many letters there are; where to count is to look at each,
	// it is those that could be looked at in the time there was.
	Count(ctx context.Context, f DeadLetterFilter) (int, error)

	// Take leases the oldest letters that are not taken, at most limit: until
	// they are settled, or until has come, no other call takes them.
	Take(ctx context.Context, f DeadLetterFilter, limit int, now, until Millis) ([]DeadLetter, error)

	// Settle removes the done letters and makes the others free to be taken
	// again. Both must come from Take.
	Settle(ctx context.Context, done, back []DeadLetter) error
}

// letters makes dead letters of a shipment's items.
func (s *shipment) letters(items []Item, r *Response, reason string, now Millis) []DeadLetter {
	letters := make([]DeadLetter, len(items))
	id := s.claim.ID
	if s.claim.Fold != "" { // a row's number is its own under these settings alone
		id += "." + s.claim.Fold
	}
	first := s.claim.FirstErrorAt
	if first == 0 {
		first = now
	}
	for i := range items {
		letters[i] = DeadLetter{
			ID:    fmt.Sprintf("%s/%d", id, items[i].Seq),
			Batch: s.batchID(), Buffer: s.ref.Buffer, Group: s.ref.Key, Destination: s.sub.Destination.Name,
			Reason: reason, Status: r.Status, Answer: r.Answer, Attempts: s.claim.Attempt,
			FirstErrorAt: first, LastErrorAt: now, LastError: Cut(cause(r), MaxAnswer), Item: items[i],
		}
	}
	return letters
}
