// Package system is what a process takes from the machine it runs on: the
// time, ids and randomness, behind the core's ports.
package system

import (
	"bufio"
	"context"
	crand "crypto/rand"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"

	"sluice/core"
)

// Clock is the system's clock.
func Clock() core.Clock {
	return core.ClockFunc(func() core.Millis { return core.At(time.Now()) })
}

// Sleep waits for d, or until ctx ends, whose error it then returns.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// IDs makes ULIDs: unique, and in order within a process, also when the clock
// is set back. It is safe for concurrent use.
func IDs() core.IDs { return newIDs(ulid.Now) }

// newIDs makes ULIDs by a clock in milliseconds.
func newIDs(now func() uint64) core.IDs {
	var mu sync.Mutex
	var last uint64
	entropy := ulid.Monotonic(bufio.NewReader(crand.Reader), 0)
	return core.IDsFunc(func() string {
		mu.Lock()
		defer mu.Unlock()
		for last = max(last, now()); ; last++ {
			// fails only when a millisecond's ids are used up
			if id, err := ulid.New(last, entropy); err == nil {
				return id.String()
			}
		}
	})
}

// Jitter is the process's source of randomness for waits.
type Jitter struct{}

// Int64N is a random number in [0, n).
func (Jitter) Int64N(n int64) int64 { return rand.Int64N(n) }
