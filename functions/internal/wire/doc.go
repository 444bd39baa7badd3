// Package wire builds the core from a configuration and the adapters, and
// runs it. Entry points call it; tests run the same wiring.
//
//	sluice.yaml ─▶ services: catalog, ingester, checker, deliverer, senders, HTTP handler
//	                  │ replaced as a whole when the configuration is read again
//	                  ▼
//	node: store, timer, queue, sources that are read, sweep ── live as long as the process
//
// Because the node outlives the services, a new configuration drops no
// connection and no hint: requests and sends that have begun end on the old
// services, everything after goes by the new ones, on the same store.
package wire
