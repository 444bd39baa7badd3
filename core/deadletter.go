package core

import (
	"context"
	"fmt"
)

// DeadLetter is one item whose delivery has finally failed.
type DeadLetter struct {
	ID           string // <batch id>/<seq>: the same however often it is put
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

// The reasons for which an item becomes a dead letter.
const (
	DeadPermanent = "permanent" // the destination refused it for good
	DeadExhausted = "exhausted" // every attempt failed
)

// DeadLetterFilter picks dead letters; an empty field picks all.
type DeadLetterFilter struct {
	Buffer string
	IDs    []string
}

// DeadLetterSink takes dead letters durably. Putting one again, by ID,
// changes nothing. Every adapter passes [sluice/core/deadlettertest].
type DeadLetterSink interface {
	Put(ctx context.Context, letters []DeadLetter) error
}

// DeadLetterQueue is where dead letters wait to be looked at and replayed.
type DeadLetterQueue interface {
	// List peeks at letters, oldest first, at most limit from the place that
	// an earlier call returned as next ("": the first). next is "" at the end.
	List(ctx context.Context, f DeadLetterFilter, from string, limit int) (letters []DeadLetter, next string, err error)

	// Count is how many letters there are.
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
	first := s.claim.FirstErrorAt
	if first == 0 {
		first = now
	}
	for i := range items {
		letters[i] = DeadLetter{
			ID:    fmt.Sprintf("%s/%d", s.claim.ID, items[i].Seq),
			Batch: s.claim.ID, Buffer: s.ref.Buffer, Group: s.ref.Key, Destination: s.sub.Destination.Name,
			Reason: reason, Status: r.Status, Answer: r.Answer, Attempts: s.claim.Attempt,
			FirstErrorAt: first, LastErrorAt: now, LastError: Cut(cause(r), MaxAnswer), Item: items[i],
		}
	}
	return letters
}
