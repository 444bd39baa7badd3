package emf

import (
	"sync"

	"sluice/core"
)

// maxSeries bounds the series that a process tells apart. Labels are
// configured names, so it is never reached unless somebody makes names up.
const maxSeries = 1000

// other stands for every label of what is beyond maxSeries.
const other = "other"

// Metrics are a function's metrics: they add up during an invocation, and are
// written at its end. They are safe for concurrent use.
type Metrics struct {
	environment string
	clock       core.Clock

	mu      sync.Mutex
	series  map[key]*series
	touched []*series // what the next flush writes
}

// key tells series apart. Labels stand in the order of the definition.
type key struct {
	metric metric
	labels [4]string
}

// series is what has been reported of one since the last flush.
type series struct {
	key
	touched bool
	value   float64   // of a counter or gauge
	values  []float64 // of a distribution
}

// New makes the metrics of a function. The environment is the name of the
// deployed stack, unique in its account; "" leaves that dimension out.
func New(environment string, clock core.Clock) *Metrics {
	m := &Metrics{clock: clock, series: make(map[key]*series)}
	if environment != "" {
		m.environment = dimensionValue(environment)
	}
	return m
}

// Observer counts what happens.
func (m *Metrics) Observer() *core.Observer {
	return &core.Observer{
		Events: func(source, outcome string, n int) {
			m.add(events, float64(n), source, outcome)
		},
		Late: func(buffer string, n int) {
			m.add(lateEvents, float64(n), buffer)
		},
		Shadow: func(buffer, outcome string, n int) {
			m.add(shadow, float64(n), buffer, outcome)
		},
		Breaker: func(destination string, open bool) {
			v := 0.0
			if open {
				v = 1
			}
			m.add(breakerOpen, v, destination)
		},
		Attempt: m.attempt,
		DeadLetters: func(l *core.DeadLetter, n int) {
			m.add(deadLetters, float64(n), l.Buffer, l.Reason)
		},
		Failed: func(op string, _ error) {
			m.add(failures, 1, op)
		},
	}
}

func (m *Metrics) attempt(a *core.Attempt) {
	m.add(batches, 1, a.Buffer, a.Destination, string(a.Reason), a.Outcome.String())
	m.add(deliverySeconds, a.Took.Seconds(), a.Destination)
	if a.Reason == core.ReasonReplay {
		return // it has no deadline, and its items were counted as batches before
	}
	m.add(latenessSeconds, a.Lateness.Seconds(), a.Buffer)
	if a.Number > 1 {
		m.add(retries, 1, a.Buffer, a.Destination)
		return
	}
	m.add(batchItems, float64(a.Items), a.Buffer)
	m.add(batchBytes, float64(a.Bytes), a.Buffer)
}

// Lost counts items that were accepted and then found to be gone. It stays zero
// unless something is badly wrong, and is what an alarm watches for that.
func (m *Metrics) Lost(items int64) { m.add(lostItems, float64(items)) }

// Gauges says what waits in the store, as [core.Store.Stats] sums it up.
func (m *Metrics) Gauges(stats []core.BufferStats) {
	now := m.clock.Now()
	delayed := make(map[string]int64) // beside its buffer, or in place
	for i := range stats {
		s := &stats[i]
		of, held := core.Held(s.Buffer)
		if delayed[of] += s.Held; held {
			delayed[of] += s.Pending + s.Claimed
		}
	}
	for i := range stats {
		s := &stats[i]
		of, held := core.Held(s.Buffer)
		if held || s.Held > 0 {
			m.add(delayedItems, float64(delayed[of]), of)
		}
		if held {
			continue
		}
		m.add(pendingItems, float64(s.Pending), s.Buffer)
		m.add(pendingBytes, float64(s.Bytes), s.Buffer)
		m.add(groups, float64(s.Groups), s.Buffer)
		age := 0.0
		if s.Oldest != 0 {
			age = max(0, now.Sub(s.Oldest).Seconds())
		}
		m.add(oldestSeconds, age, s.Buffer)
	}
}

// add reports a value of one of the metrics, whose labels are as many as its
// definition has.
func (m *Metrics) add(which metric, value float64, labels ...string) {
	k := key{metric: which}
	for i, l := range labels {
		k.labels[i] = dimensionValue(l)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.of(k)
	if !s.touched {
		s.touched = true
		m.touched = append(m.touched, s)
	}
	switch definitions[which].kind {
	case counter:
		s.value += value
	case gauge:
		s.value = value
	case distribution:
		s.values = append(s.values, value)
	}
}

// of is the series of k.
func (m *Metrics) of(k key) *series {
	if s := m.series[k]; s != nil {
		return s
	}
	if len(m.series) >= maxSeries {
		for i := range definitions[k.metric].Labels {
			k.labels[i] = other
		}
		if s := m.series[k]; s != nil {
			return s
		}
	}
	s := &series{key: k}
	m.series[k] = s
	return s
}

// take returns what has been reported since the last flush, and begins anew.
func (m *Metrics) take() ([]sample, core.Millis) {
	m.mu.Lock()
	defer m.mu.Unlock()
	samples := make([]sample, 0, len(m.touched))
	for _, s := range m.touched {
		samples = append(samples, s.samples()...)
		s.touched, s.value, s.values = false, 0, nil
	}
	m.touched = m.touched[:0]
	return samples, m.clock.Now()
}
