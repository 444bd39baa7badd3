package core

import (
	"slices"
	"time"
)

// Response is what a destination said to one batch. A [Sender] reports; what
// it means is for [Classify] alone.
type Response struct {
	Status     int           // the protocol's status; 0: none came
	Err        error         // why none came, or why it could not be read; its Code counts
	Failed     Bits          // positions in Batch.Items that were not taken, though the rest was
	Refused    Bits          // those of Failed that the destination will never take
	RetryAfter time.Duration // when the destination asked to be tried again; 0: it did not
	Answer     string        // the answer's body, cut, for dead letters
}

// MaxAnswer bounds the answer that a response and a dead letter keep, in bytes.
const MaxAnswer = 1 << 10

// Outcome is what comes of a send.
type Outcome uint8

// The outcomes.
const (
	Retry       Outcome = iota // send again later; also for every unknown kind of failure
	Delivered                  // the destination has the batch
	Partial                    // it has the batch but for Response.Failed
	Permanent                  // it will never take it
	Interrupted                // this process stopped the send: not the destination's failure
)

var outcomeNames = [...]string{"retry", "delivered", "partial", "permanent", "interrupted"}

// String is the outcome's stable name.
func (o Outcome) String() string { return outcomeNames[o] }

// Classify is the one place that turns what a destination said into what
// happens next. on adds statuses that are retried, such as 404.
func Classify(r *Response, on []int) Outcome {
	switch {
	case r.Err != nil:
		return classifyErr(r.Err)
	case r.Status >= 200 && r.Status < 300 && r.Failed.Len() > 0:
		return Partial
	case r.Status >= 200 && r.Status < 300:
		return Delivered
	case r.Status == 408 || r.Status == 425 || r.Status == 429,
		r.Status >= 500 || r.Status < 200,
		slices.Contains(on, r.Status):
		return Retry
	}
	return Permanent
}

func classifyErr(err error) Outcome {
	switch CodeOf(err) {
	case Invalid, Forbidden, TooLarge, Unsupported:
		return Permanent
	case Canceled:
		return Interrupted
	default:
		return Retry
	}
}
