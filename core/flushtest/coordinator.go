package flushtest

import (
	"context"
	"sync"

	"sluice/core"
)

// NewCoordinator makes a coordinator in memory, for processes that are one.
func NewCoordinator() core.Coordinator { return &coordinator{records: map[string][]byte{}} }

type coordinator struct {
	mu      sync.Mutex
	records map[string][]byte
}

func (c *coordinator) Change(_ context.Context, name string, fn func([]byte) ([]byte, error)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	next, err := fn(c.records[name])
	if err == nil {
		c.records[name] = next
	}
	return err
}
