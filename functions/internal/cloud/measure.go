package cloud

import (
	"context"
	"sync"
	"time"

	"sluice/core"
	"sluice/infra/emf"
)

// LongestRest is the longest time between two measurings of what waits. The
// alarm on its age looks back over a little more.
const LongestRest = time.Hour

const (
	// measuredAMinute is how many groups are read a minute, on average, to
	// measure what waits: with that many waiting, every run does.
	measuredAMinute = 1000
	// early is by how much a run may come early, or an earlier one be late.
	early = 30 * time.Second
)

// measuring measures what waits in a store. As that reads every group, it
// rests the longer the more there are: without that, a million groups that wait
// for a destination would cost more than all else.
type measuring struct {
	store   core.Store
	metrics *emf.Metrics
	clock   core.Clock

	mu   sync.Mutex
	next core.Millis
}

// measure measures, unless it has to rest.
func (m *measuring) measure(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.clock.Now()
	if now < m.next && m.next <= now.Add(LongestRest) { // else the clock was set back
		return nil
	}
	stats, err := m.store.Stats(ctx)
	if err != nil {
		return err
	}
	m.metrics.Gauges(stats)
	groups := 0
	for i := range stats {
		groups += stats[i].Groups
	}
	m.next = now.Add(rest(groups))
	return nil
}

// rest is how long to rest after so many groups were measured.
func rest(groups int) time.Duration {
	return max(0, min(LongestRest, time.Duration(groups)*time.Minute/measuredAMinute)-early)
}
