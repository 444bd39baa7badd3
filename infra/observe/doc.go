// Package observe makes Prometheus metrics of what the core reports.
//
//	core.Observer ─▶ counters and histograms ─┐
//	                                          ├─▶ Handler: GET /metrics
//	Store.Stats ───▶ gauges, read at a scrape ┘
//
// Labels are names of the configuration, never a group's key: keys are client
// data without bound.
package observe
