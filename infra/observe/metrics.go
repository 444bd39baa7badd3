package observe

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"sluice/core"
)

// statsTimeout bounds what a scrape waits for the store.
const statsTimeout = 5 * time.Second

var (
	// secondsBuckets reach from a millisecond, the resolution of every
	// deadline, to the longest timeout of a send.
	secondsBuckets = []float64{
		.001, .002, .003, .005, .01, .02, .03, .05, .1, .2, .3, .5, 1, 2, 3, 5, 10, 30, 60, 120, 300,
	}
	itemsBuckets = []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000}
	bytesBuckets = prometheus.ExponentialBuckets(256, 4, 10) // 256 B to 64 MiB
)

// Metrics are a process's metrics, in a registry of their own.
type Metrics struct {
	stats    func(context.Context) ([]core.BufferStats, error)
	clock    core.Clock
	registry *prometheus.Registry

	events      *children[prometheus.Counter]
	late        *children[prometheus.Counter]
	shadow      *children[prometheus.Counter]
	breaker     *children[prometheus.Gauge]
	batches     *children[prometheus.Counter]
	retries     *children[prometheus.Counter]
	deadLetters *children[prometheus.Counter]
	batchItems  *children[prometheus.Observer]
	batchBytes  *children[prometheus.Observer]
	delivery    *children[prometheus.Observer]
	lateness    *children[prometheus.Observer]

	mu    sync.Mutex
	known map[string]bool // buffers that have had a gauge
}

// NewMetrics makes the metrics of a process. stats sums up the store's
// buffers; it is called at every scrape, for 5 s at the most.
func NewMetrics(stats func(context.Context) ([]core.BufferStats, error), clock core.Clock) *Metrics {
	m := &Metrics{stats: stats, clock: clock, registry: prometheus.NewRegistry(), known: make(map[string]bool)}
	m.registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		collectors.NewBuildInfoCollector(),
	)
	m.events = m.counter("sluice_events_total", "Events that came to a source, by what became of them.", "source", "outcome")
	m.late = m.counter("sluice_late_events_total", "Events that came after their time window had shipped, and were moved on into a later one.", "buffer")
	m.shadow = m.counter("sluice_shadow_total", "Copies for shadow buffers, by what became of them.", "buffer", "outcome")
	m.breaker = m.gauge("sluice_breaker_open", "Whether a destination's breaker keeps batches from it.", "destination")
	m.batches = m.counter("sluice_batches_total", "Sends of batches, retries included, by their outcome.",
		"buffer", "destination", "reason", "outcome")
	m.retries = m.counter("sluice_retries_total", "Sends of batches that had been sent before.", "buffer", "destination")
	m.deadLetters = m.counter("sluice_dead_letters_total", "Items that became dead letters.", "buffer", "reason")
	m.batchItems = m.histogram("sluice_batch_items", "Items in a batch when it is first sent.", itemsBuckets, "buffer")
	m.batchBytes = m.histogram("sluice_batch_bytes", "Payload bytes in a batch when it is first sent.", bytesBuckets, "buffer")
	m.delivery = m.histogram("sluice_delivery_seconds", "How long a send took.", secondsBuckets, "destination")
	m.lateness = m.histogram("sluice_lateness_seconds", "From a batch's deadline to the start of its send.", secondsBuckets, "buffer")
	return m
}

func (m *Metrics) counter(name, help string, names ...string) *children[prometheus.Counter] {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, names)
	m.registry.MustRegister(v)
	return newChildren(len(names), v.WithLabelValues)
}

func (m *Metrics) gauge(name, help string, names ...string) *children[prometheus.Gauge] {
	v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, names)
	m.registry.MustRegister(v)
	return newChildren(len(names), v.WithLabelValues)
}

func (m *Metrics) histogram(name, help string, buckets []float64, names ...string) *children[prometheus.Observer] {
	v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, names)
	m.registry.MustRegister(v)
	return newChildren(len(names), v.WithLabelValues)
}

// Observer counts what happens. It is safe for concurrent use.
func (m *Metrics) Observer() *core.Observer {
	return &core.Observer{
		Events: func(source, outcome string, n int) {
			m.events.get(labels{source, outcome}).Add(float64(n))
		},
		Late: func(buffer string, n int) {
			m.late.get(labels{buffer}).Add(float64(n))
		},
		Shadow: func(buffer, outcome string, n int) {
			m.shadow.get(labels{buffer, outcome}).Add(float64(n))
		},
		Breaker: func(destination string, open bool) {
			v := 0.0
			if open {
				v = 1
			}
			m.breaker.get(labels{destination}).Set(v)
		},
		Attempt: m.attempt,
		DeadLetters: func(l *core.DeadLetter, n int) {
			m.deadLetters.get(labels{l.Buffer, l.Reason}).Add(float64(n))
		},
	}
}

func (m *Metrics) attempt(a *core.Attempt) {
	m.batches.get(labels{a.Buffer, a.Destination, string(a.Reason), a.Outcome.String()}).Inc()
	m.delivery.get(labels{a.Destination}).Observe(a.Took.Seconds())
	if a.Reason == core.ReasonReplay {
		return // it has no deadline, and its items were counted as batches before
	}
	m.lateness.get(labels{a.Buffer}).Observe(a.Lateness.Seconds())
	if a.Number > 1 {
		m.retries.get(labels{a.Buffer, a.Destination}).Inc()
		return
	}
	m.batchItems.get(labels{a.Buffer}).Observe(float64(a.Items))
	m.batchBytes.get(labels{a.Buffer}).Observe(float64(a.Bytes))
}

// Handler serves the metrics. When the store does not answer, the gauges of
// its buffers are missing and everything else is there.
func (m *Metrics) Handler() http.Handler {
	opts := promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError, Registry: m.registry}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), statsTimeout)
		defer cancel()
		gauges := prometheus.NewRegistry()
		gauges.MustRegister(m.read(ctx))
		promhttp.HandlerFor(prometheus.Gatherers{m.registry, gauges}, opts).ServeHTTP(w, r)
	})
}
