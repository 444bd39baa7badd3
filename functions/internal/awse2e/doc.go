// Package awse2e tests the whole of Sluice on AWS, on one machine:
//
//	scenario ─HTTP─▶ Front ─▶ ingest ─┐                        ┌─▶ Sink
//	                    └───▶ control ├─▶ DynamoDB (dynalite)  │
//	a queue (fauxqs) ──▶ receive ─────┘                        │
//	Scheduler (fake) ─▶ check queue ─▶ check ─▶ deliver queue ─▶ deliver
//	the test ────────────────────────▶ flush
//
// The functions are the real bootstraps, as processes; their routes, event
// sources, timeouts, queues and variables are those of template.yaml, which the
// harness reads. Without Node.js and the stand-ins that `make standins`
// installs, its tests are skipped.
package awse2e
