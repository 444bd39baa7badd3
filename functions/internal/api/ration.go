package api

import (
	"sync/atomic"
	"time"

	"sluice/core"
)

// ration is what a request's body holds of the memory that all bodies
// together may have, so that many large requests at once can't fill it. It
// grows as bytes arrive, not as they are announced.
type ration struct {
	left *atomic.Int64 // shared, in bytes
	held int64
}

// take takes n more bytes, or says that there are none.
func (m *ration) take(n int64) error {
	if m.left.Add(-n) < 0 {
		m.left.Add(n)
		return &core.Error{Code: core.Unavailable, RetryAfter: time.Second,
			Detail: "too many large requests are under way; send it again in a moment"}
	}
	m.held += n
	return nil
}

// giveBack ends the request.
func (m *ration) giveBack() { m.left.Add(m.held) }
