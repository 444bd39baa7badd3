// Package observe makes metrics and logs of what the core reports.
//
//	core.Observer ─▶ counters and histograms ─┐
//	              └▶ one log line an attempt  ├─▶ Handler: GET /metrics
//	Store.Stats ───▶ gauges, read at a scrape ┘
//
// Labels are names of the configuration, never a group's key: keys are client
// data without bound. Logs do carry keys, cut and quoted.
package observe
