package api

import (
	"sync"

	"sluice/core"
)

// Attempts knows each buffer's last attempt to deliver.
type Attempts interface {
	Last(buffer string) (core.Attempt, bool)
}

// LastAttempts remembers each buffer's last attempt to deliver. Its zero value
// is ready, and it is safe for concurrent use. It outlives a reload.
type LastAttempts struct {
	mu   sync.Mutex
	last map[string]core.Attempt
}

var _ Attempts = (*LastAttempts)(nil)

// Record remembers an attempt; it is a [core.Observer]'s Attempt.
func (l *LastAttempts) Record(a *core.Attempt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last == nil {
		l.last = make(map[string]core.Attempt)
	}
	l.last[a.Buffer] = *a
}

// Last is a buffer's last attempt, if there was one.
func (l *LastAttempts) Last(buffer string) (core.Attempt, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a, ok := l.last[buffer]
	return a, ok
}
