// Package attemptlog logs what the core reports: one line a delivery attempt,
// with its whole outcome, and, sparingly, what fails in the background.
//
//	{"level":"WARN","msg":"delivery","buffer":"orders","group":"42","batch":"01H-1","destination":"crm","items":6,
//	 "bytes":5000,"reason":"wait","attempt":1,"outcome":"retry","status":503,"ms":40,"latenessMs":2}
//
// A batch of which items become dead letters has a line of its own, which names
// the first of them, and that letter says why:
//
//	{"level":"ERROR","msg":"dead letters","buffer":"orders","group":"42","batch":"01H-1","destination":"crm","items":6,
//	 "reason":"exhausted","attempts":5,"status":503,"letter":"01H-1/1"}
//
// A line carries the group's key, which is client data: it is cut, and the
// handler of the log quotes it. It carries no secret and no payload.
package attemptlog
