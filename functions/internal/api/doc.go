// Package api is Sluice's HTTP API, as one immutable [http.Handler] over one
// configuration. It relies on no listener: it reads requests, calls the core,
// and says what came of it.
//
//	POST /v1/sources/{source}         one event
//	POST /v1/sources/{source}/batch   many: NDJSON, a JSON array, a CloudEvents batch
//	GET  /v1/buffers                  state of every buffer
//	GET  /v1/buffers/{buffer}         of one
//	GET  /v1/buffers/{buffer}/groups  [?key=] [?after=&limit=]
//	POST /v1/flush                    {"force","final","only","strict","groups"}, all optional
//	POST /v1/buffers/{buffer}/flush   {"force","final","groups"}, all optional
//	GET  /v1/deadletters              [?buffer=] [&after=&limit=]
//	POST /v1/deadletters/replay       {"buffer","ids","to","max"}, all optional
//	GET  /healthz, /readyz, /metrics
//
// GET calls answer HEAD too. A list is {"<name>": [...], "next": "..."}: next
// is what to pass as after to go on, and empty at the end.
//
// A source answers 202 when its events are durable. One with ack: delivered waits
// for what becomes of them: 200 they are delivered, 502 one of them is a dead
// letter, 202 it is not known yet; the body is the same, with a status. Nothing
// is to be sent again for it.
//
// # Who may call
//
// A source says who may send to it: holders of a bearer token, senders that
// sign (Standard Webhooks, over the body as it is after content decoding),
// anybody, or, when it says nothing, loopback only. All other calls but
// /healthz and /readyz are control calls, for holders of a control token, or,
// when there is none, loopback only. A request is from loopback when its peer
// is, it names a loopback host, no proxy has marked it, and no browser says
// that another site made it.
//
// # Problems
//
// Errors are RFC 9457 problem documents. Their type is urn:sluice:problem:
// and one of these, which stay as they are:
//
//	invalid             400  the request is wrong; the detail says what would be right
//	unauthorized        401  no token or signature, or a wrong one
//	forbidden           403  not from here
//	not_found           404  no such path, source or buffer
//	method_not_allowed  405  the Allow header has the right ones
//	conflict            409  another call was faster
//	too_large           413  over a size limit, which the detail names
//	unsupported         415  a content type or encoding that is not understood
//	headers_too_large   431  the headers to keep are over their limit
//	internal            500  a fault of ours; the log has it
//	full, unavailable   503  try again later, after Retry-After
//	canceled            503  the process stops, or the caller went away
package api
