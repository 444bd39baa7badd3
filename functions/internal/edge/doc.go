// Package edge turns AWS events into what the core and its HTTP handler work
// on, and their answers back. It holds no rule of the domain, and guesses no
// event's type: each function has the one that it is wired to.
//
//	API Gateway HTTP API, function URL ─▶ HTTP ─▶ http.Request ─▶ handler ─▶ answer
//	SQS ────────────────────────────────▶ Queue ─▶ a message each, side by side ─▶ the ids of those that failed
//	SQS, of a source ───────────────────▶ ReceiveEvent ─▶ events ─▶ the ids of those that were not taken
//	EventBridge Scheduler, by hand ─────▶ FlushEvent
package edge
