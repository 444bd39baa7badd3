package report

import (
	"context"
	"errors"
	"time"

	"sluice/core"
)

// House is what came of a flush of all buffers.
type House struct {
	OK         bool     `json:"ok"` // false when any buffer has an error
	DurationMs int64    `json:"durationMs"`
	Buffers    Buffers  `json:"buffers"`
	Unmatched  []string `json:"unmatched"` // what `only` named and there is not, each once
}

// Buffer is what came of the flush of one buffer. Texts are for people.
type Buffer struct {
	Name string `json:"-"` // the key in its house's report

	Buckets int  `json:"buckets"` // time windows handed to the destination; 0 where there are none
	Rows    int  `json:"rows"`    // rows or items handed to it
	Skipped bool `json:"skipped"`

	Reason           string     `json:"reason,omitempty"`           // when skipped: cadence or not-selected
	NextEligibleInMs int64      `json:"nextEligibleInMs,omitempty"` // when skipped on cadence; rounded up
	Error            string     `json:"error,omitempty"`            // why a send or a claim failed
	Written          *Written   `json:"written,omitempty"`          // beside Error: what the destination took all the same
	ReleaseError     string     `json:"releaseError,omitempty"`     // why a claim whose send failed was not given back
	AckError         string     `json:"ackError,omitempty"`         // why one that was taken was not settled
	Recovered        *Recovered `json:"recovered,omitempty"`        // claims of before, sent before anything new
	RecoveryError    string     `json:"recoveryError,omitempty"`    // why one of those could not be taken over
}

// Written counts what a destination took.
type Written struct {
	Buckets int `json:"buckets"`
	Rows    int `json:"rows"`
}

// Recovered counts claims of before this flush, and their rows.
type Recovered struct {
	Claims int `json:"claims"`
	Rows   int `json:"rows"`
}

// Of is the report of a flush of all buffers.
func Of(r *core.FlushReport) House {
	h := House{
		OK: r.OK(), DurationMs: r.Took.Milliseconds(),
		Buffers: make(Buffers, len(r.Buffers)), Unmatched: append([]string{}, r.Unmatched...),
	}
	for i := range r.Buffers {
		h.Buffers[i] = OfBuffer(&r.Buffers[i])
	}
	return h
}

// OfBuffer is the report of the flush of one buffer.
func OfBuffer(r *core.BufferFlush) Buffer {
	return Buffer{
		Name: r.Buffer, Buckets: r.Buckets, Rows: r.Rows, Skipped: r.Skipped,
		Reason: string(r.Reason), NextEligibleInMs: int64((r.NextEligibleIn + time.Millisecond - 1) / time.Millisecond),
		Error: text(r.Err), Written: (*Written)(r.Written),
		ReleaseError: text(r.ReleaseErr), AckError: text(r.AckErr),
		Recovered: (*Recovered)(r.Recovered), RecoveryError: text(r.RecoverErr),
	}
}

// text is an error for its reader. Of a fault of ours it says no more than that.
func text(err error) string {
	switch detail := core.DetailOf(err); {
	case err == nil:
		return ""
	case detail != "" && core.CodeOf(err) != core.Internal:
		return detail
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return "it was ended before it was through"
	}
	return "something went wrong on our side; nothing that was accepted is lost"
}

// Faults are the errors of a flush of which its report says no more than that
// they are ours: they are for the log.
func Faults(r *core.BufferFlush) []error {
	var faults []error
	for _, err := range []error{r.Err, r.ReleaseErr, r.AckErr, r.RecoverErr} {
		if err != nil && core.CodeOf(err) == core.Internal {
			faults = append(faults, err)
		}
	}
	return faults
}
