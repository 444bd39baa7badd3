package core

import "time"

// Observer is told what happens, for metrics and logs. Any of its functions
// may be nil, and so may the observer. They must not block.
type Observer struct {
	// Events: a source's events were accepted, unrouted or refused.
	Events func(source, outcome string, n int)
	// Late: so many events came after their window had shipped, and were moved
	// on into a later one.
	Late func(buffer string, n int)
	// Breaker: a destination's breaker has opened, or closed.
	Breaker func(destination string, open bool)
	// Shadow: so many copies of a shadow buffer were delivered, failed or dropped.
	Shadow func(buffer, outcome string, n int)
	// Attempt: a batch was sent; one call an attempt, with its whole outcome.
	Attempt func(a *Attempt)
	// DeadLetters: so many items of a buffer became dead letters for l's reason, of
	// which l is the first. One call for those of a batch, or of a request whose
	// events could not be stored. Its error may tell of the payload.
	DeadLetters func(l *DeadLetter, n int)
	// Failed: something in the background did not work; it will be tried again.
	Failed func(op string, err error)
}

// The outcomes of events at a source.
const (
	EventsAccepted = "accepted"
	EventsUnrouted = "unrouted"
	EventsRefused  = "refused"
	EventsFiltered = "filtered"
	EventsDoubled  = "duplicate"
)

// What becomes of a shadow buffer's copies.
const (
	ShadowDelivered = "delivered"
	ShadowFailed    = "failed"
	ShadowDropped   = "dropped"
)

// Attempt is one send of one batch.
type Attempt struct {
	Buffer, Group, Batch, Destination string

	Items    int
	Bytes    int64
	Reason   Reason
	Number   int // from 1
	Outcome  Outcome
	Status   int
	Err      error
	At       Millis        // when it began
	Took     time.Duration // whole milliseconds
	Lateness time.Duration // from the deadline to the begin of the send
}

// Refused tells of events that were refused before an [Ingester] saw them.
func (o *Observer) Refused(source string, n int) { o.events(source, EventsRefused, n) }

func (o *Observer) events(source, outcome string, n int) {
	if o != nil && o.Events != nil && n > 0 {
		o.Events(source, outcome, n)
	}
}

func (o *Observer) late(buffer string, n int) {
	if o != nil && o.Late != nil && n > 0 {
		o.Late(buffer, n)
	}
}

func (o *Observer) breaker(destination string, open bool) {
	if o != nil && o.Breaker != nil {
		o.Breaker(destination, open)
	}
}

func (o *Observer) shadow(buffer, outcome string, n int) {
	if o != nil && o.Shadow != nil && n > 0 {
		o.Shadow(buffer, outcome, n)
	}
}

func (o *Observer) attempt(a *Attempt) {
	if o != nil && o.Attempt != nil {
		o.Attempt(a)
	}
}

// deadLetters tells of letters once for each buffer and reason.
func (o *Observer) deadLetters(letters []DeadLetter) {
	if o == nil || o.DeadLetters == nil {
		return
	}
	type kind struct{ buffer, reason string }
	kindOf := func(l *DeadLetter) kind { return kind{l.Buffer, l.Reason} }
	left := make(map[kind]int)
	for i := range letters {
		left[kindOf(&letters[i])]++
	}
	for i := range letters {
		l := &letters[i]
		if n := left[kindOf(l)]; n > 0 {
			o.DeadLetters(l, n)
			left[kindOf(l)] = 0
		}
	}
}

func (o *Observer) failed(op string, err error) {
	if o != nil && o.Failed != nil && err != nil {
		o.Failed(op, err)
	}
}
