// Package cloud wires the six Lambda functions: the core on a DynamoDB
// table, SQS queues and EventBridge Scheduler.
//
//	environment, sluice.yaml, secrets ─▶ setup ─▶ function: catalog, log, metrics
//	                                                 │
//	          ┌──────────┬──────────────┬────────────┼──────────┬─────────────┐
//	          ▼          ▼              ▼            ▼          ▼             ▼
//	        ingest     check         deliver       flush     control       receive
//	        events in  hints ─▶ due? deliveries,   sweep,    state, dead   events in
//	                                 redriven      gauges    letters,      by queue
//	                                 letters                 replay
//
// A function reads everything once, at its cold start: what is wrong with
// the environment is reported at once, so is what is wrong with the configuration
// and with the secrets that this function needs, and it does not start. The
// mains hand in the process and start what comes back; tests hand in their own.
//
// What was measured is written at the end of every invocation, before the
// process is frozen, also when the invocation fails, panics, or is about to run
// out of time.
package cloud
