package api

import (
	"sync/atomic"
	"time"

	"sluice/core"
)

// ration is what a request holds of what all together may have. Of the memory
// for their bodies it grows as bytes arrive, not as they are announced, so that
// many large requests at once can't fill it.
type ration struct {
	left *atomic.Int64 // shared
	held int64
}

// take takes n more, or says that there are none.
func (m *ration) take(n int64) error {
	if m.left.Add(-n) < 0 {
		m.left.Add(n)
		return &core.Error{Code: core.Unavailable, RetryAfter: time.Second,
			Detail: "too many large requests are under way; send it again in a moment"}
	}
	m.held += n
	return nil
}

// giveBack gives back all of it.
func (m *ration) giveBack() {
	m.left.Add(m.held)
	m.held = 0
}
