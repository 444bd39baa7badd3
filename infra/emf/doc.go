// Package emf makes CloudWatch metrics of what the core reports, as lines in
// the Embedded Metric Format: CloudWatch reads them out of a function's log,
// so metrics cost no call and no wait.
//
//	core.Observer ─┐
//	Gauges, Lost  ─┼─▶ sums and values of one invocation ─▶ Flush: a few lines on standard output
//	                                                              │
//	                         log group ─▶ CloudWatch metrics, namespace Sluice
//
// The names, the labels and what is counted when are those of the Prometheus
// metrics of the local binary; a label is a dimension here. Two things differ:
//
//   - Every series has the dimension environment, because the metrics of all
//     stacks of an account share one namespace. It is what an alarm or a
//     dashboard tells them apart by.
//   - An alarm watches one series, and cannot sum over buffers. What alarms are
//     made of ([Definition.Rollup]) therefore also exists with no dimension but
//     the environment.
//
// Dimensions are names of the configuration, never a group's key: every new
// value of a dimension is a metric of its own, and is paid for. Counts and
// gauges that are zero are left out, so an idle environment has no metrics; an
// alarm treats missing data as not breaching.
//
// A line must reach the log as it is: with Lambda's JSON log format, the
// application log level must not be above INFO, at which lines without a level
// are taken.
package emf
