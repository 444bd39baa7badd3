package core

import "time"

// RetryPolicy says when a failed batch is sent again.
type RetryPolicy struct {
	MaxAttempts int           // sends in all, the first included; 1 to 1,000
	Initial     time.Duration // bound of the first wait
	Max         time.Duration // bound of every wait, also of a Retry-After
	On          []int         // statuses retried beyond the usual ones
}

// Rand is a source of randomness: Int64N returns a number in [0, n). It is
// safe for concurrent use.
type Rand interface {
	Int64N(n int64) int64
}

// Wait is how long to wait after so many attempts: what the destination asked
// for, or exponential backoff with full jitter, both at most Max.
//
// Source: M. Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
func (p *RetryPolicy) Wait(attempts int, asked time.Duration, r Rand) time.Duration {
	if asked > 0 {
		return min(asked, p.Max)
	}
	bound := p.Initial
	for i := 1; i < attempts && bound < p.Max; i++ {
		bound *= 2
	}
	bound = min(bound, p.Max)
	return time.Duration(r.Int64N(int64(bound) + 1))
}
