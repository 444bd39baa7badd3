package cloud

import (
	"context"

	"sluice/core"
)

// slots are, by destination, the sends that may be under way at a time.
type slots map[string]chan struct{}

func newSlots(c *core.Config) slots {
	s := make(slots, len(c.Destinations))
	for i := range c.Destinations {
		s[c.Destinations[i].Name] = make(chan struct{}, c.Destinations[i].Concurrency)
	}
	return s
}

// take waits for one of a destination's slots, unless it gets too late, and
// returns what gives it back. Those that wait come in turn, so a long group
// does not keep others from the destination. What was held until its time has
// come goes to the table, and needs none.
func (s slots) take(ctx context.Context, destination string) (free func(), ok bool) {
	slot := s[destination]
	if ctx.Err() != nil {
		return nil, false
	}
	if slot == nil {
		return func() {}, true
	}
	select {
	case slot <- struct{}{}:
		return func() { <-slot }, true
	case <-ctx.Done():
		return nil, false
	}
}

// hold is take as a port: for a send to a fallback.
func (s slots) hold(ctx context.Context, destination string) (free func(), err error) {
	free, ok := s.take(ctx, destination)
	if !ok {
		return nil, core.Errorf(core.Unavailable, "no send to %s has ended in time", destination)
	}
	return free, nil
}
