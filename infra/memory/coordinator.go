package memory

import (
	"context"
	"slices"
	"sync"

	"sluice/core"
)

// The bounds of what a [Coordinator] takes, in bytes.
const (
	maxName   = 200
	maxRecord = 4 << 10
)

// Coordinator is a [core.Coordinator] of one process. It is safe for
// concurrent use.
type Coordinator struct {
	mu      sync.Mutex
	records map[string][]byte
	failing error
}

var _ core.Coordinator = (*Coordinator)(nil)

// NewCoordinator makes a coordinator without records.
func NewCoordinator() *Coordinator { return &Coordinator{records: map[string][]byte{}} }

// Fail makes every call from here on change nothing and return err; nil ends that.
func (c *Coordinator) Fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failing = err
}

// Change implements [core.Coordinator]. It runs fn once, under the mutex: fn
// must not call the coordinator. Invalid: the name is too long; TooLarge: the
// record is; Canceled: ctx has ended.
func (c *Coordinator) Change(ctx context.Context, name string, fn func(old []byte) ([]byte, error)) error {
	if err := ctx.Err(); err != nil {
		return core.Wrap(core.Canceled, err, "the caller has gone")
	}
	if len(name) > maxName {
		return core.Errorf(core.Invalid, "a record's name of %d bytes; it has at most %d", len(name), maxName)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failing != nil {
		return c.failing
	}
	record, err := fn(slices.Clone(c.records[name]))
	switch {
	case err != nil:
		return err
	case len(record) > maxRecord:
		return core.Errorf(core.TooLarge, "record %q of %d bytes; it has at most %d", name, len(record), maxRecord)
	case record == nil:
		delete(c.records, name)
	default:
		c.records[name] = slices.Clone(record)
	}
	return nil
}
