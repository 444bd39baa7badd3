package observe

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"sluice/core"
)

var (
	pendingItems = prometheus.NewDesc("sluice_pending_items", "Items that wait to be claimed.", []string{"buffer"}, nil)
	pendingBytes = prometheus.NewDesc("sluice_pending_bytes", "Payload bytes of the items that wait to be claimed.", []string{"buffer"}, nil)
	groups       = prometheus.NewDesc("sluice_groups", "Groups that hold anything.", []string{"buffer"}, nil)
	delayedItems = prometheus.NewDesc("sluice_delayed_items", "Items that are held until their time has come.", []string{"buffer"}, nil)
	oldest       = prometheus.NewDesc("sluice_oldest_seconds", "Age of the oldest item that waits to be claimed; 0: none waits.", []string{"buffer"}, nil)
)

// gauges is what the store held at one scrape.
type gauges struct {
	now   core.Millis
	stats []core.BufferStats
	err   error
}

// read asks the store. A buffer that has gone empty since an earlier scrape,
// which the store no longer lists, stays there with zeros.
func (m *Metrics) read(ctx context.Context) *gauges {
	stats, err := m.stats(ctx)
	g := &gauges{now: m.clock.Now(), stats: stats, err: err}
	if err != nil {
		return g
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	listed := make(map[string]bool, len(stats))
	for i := range stats {
		listed[stats[i].Buffer], m.known[stats[i].Buffer] = true, true
		if stats[i].Held > 0 {
			m.known[core.Holder(stats[i].Buffer)] = true
		}
	}
	for buffer := range m.known {
		if !listed[buffer] {
			g.stats = append(g.stats, core.BufferStats{Buffer: buffer})
		}
	}
	return g
}

// Describe implements [prometheus.Collector].
func (g *gauges) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{pendingItems, pendingBytes, groups, delayedItems, oldest} {
		ch <- d
	}
}

// Collect implements [prometheus.Collector].
func (g *gauges) Collect(ch chan<- prometheus.Metric) {
	if g.err != nil {
		ch <- prometheus.NewInvalidMetric(pendingItems, g.err)
		return
	}
	inPlace := make(map[string]int64) // held by buffers that keep their order
	for i := range g.stats {
		inPlace[g.stats[i].Buffer] = g.stats[i].Held
	}
	for i := range g.stats {
		s := &g.stats[i]
		buffer, held := core.Held(s.Buffer)
		gauge := func(d *prometheus.Desc, v float64) {
			ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, buffer)
		}
		if held {
			gauge(delayedItems, float64(inPlace[buffer]+s.Pending+s.Claimed))
			continue
		}
		gauge(pendingItems, float64(s.Pending))
		gauge(pendingBytes, float64(s.Bytes))
		gauge(groups, float64(s.Groups))
		age := 0.0
		if s.Oldest != 0 {
			age = max(0, g.now.Sub(s.Oldest).Seconds())
		}
		gauge(oldest, age)
	}
}
