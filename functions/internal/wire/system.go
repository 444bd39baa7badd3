package wire

import (
	"bufio"
	crand "crypto/rand"
	"math/rand/v2"
	"time"

	"github.com/oklog/ulid/v2"

	"sluice/core"
)

// SystemClock is the system's clock.
func SystemClock() core.Clock {
	return core.ClockFunc(func() core.Millis { return core.At(time.Now()) })
}

// NewIDs makes ULIDs: unique, and in order within a process. It is safe for
// concurrent use.
func NewIDs() core.IDs {
	entropy := &ulid.LockedMonotonicReader{
		MonotonicReader: ulid.Monotonic(bufio.NewReader(crand.Reader), 0),
	}
	return core.IDsFunc(func() string {
		for ms := ulid.Now(); ; ms++ {
			// fails only when a millisecond's ids are used up
			if id, err := ulid.New(ms, entropy); err == nil {
				return id.String()
			}
		}
	})
}

// jitter is the process's source of randomness for waits.
type jitter struct{}

func (jitter) Int64N(n int64) int64 { return rand.Int64N(n) }
