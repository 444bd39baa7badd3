package api

import (
	"sync"

	"sluice/core"
)

// Attempts knows each buffer's last attempt to deliver.
type Attempts interface {
	Last(buffer string) (LastAttempt, bool)
}

// LastAttempt is an attempt, and of how many of its batch's items it was the last.
type LastAttempt struct {
	core.Attempt

	DeadLetters int // items that became some
}

// LastAttempts remembers each buffer's last attempt to deliver. Its zero value
// is ready, and it is safe for concurrent use. It outlives a reload.
type LastAttempts struct {
	mu   sync.Mutex
	last map[string]LastAttempt
}

var _ Attempts = (*LastAttempts)(nil)

// Observer remembers what it is told of.
func (l *LastAttempts) Observer() *core.Observer {
	return &core.Observer{Attempt: l.attempt, DeadLetters: l.deadLetters}
}

func (l *LastAttempts) attempt(a *core.Attempt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last == nil {
		l.last = make(map[string]LastAttempt)
	}
	l.last[a.Buffer] = LastAttempt{Attempt: *a}
}

func (l *LastAttempts) deadLetters(d *core.DeadLetter, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a := l.last[d.Buffer]; a.Batch == d.Batch && a.Batch != "" {
		a.DeadLetters += n
		l.last[d.Buffer] = a
	}
}

// Last is a buffer's last attempt, if there was one.
func (l *LastAttempts) Last(buffer string) (LastAttempt, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a, ok := l.last[buffer]
	return a, ok
}
