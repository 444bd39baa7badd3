// Package httpsend sends batches to an HTTP endpoint.
//
//	batch ─▶ encode ─▶ sign ─▶ connect ─▶ POST ─▶ answer ─▶ core.Response
//	                              │ guard: every address, after DNS
//
// A batch goes out as one POST whose headers follow Standard Webhooks
// (webhook-id is the batch's id, the same on every attempt) and say what the
// batch is (sluice-buffer, sluice-group, ...). One send never outlives its
// timeout, whatever the endpoint does, and reads no more of an answer than a
// list of failed items can take.
//
// The endpoint's name is whatever a configuration or its DNS says, so the
// guard looks at each address at the moment of connecting: link-local,
// metadata and multicast ones are never dialled, private ones only when
// allowed. Redirects are not followed, and proxies of the environment are not
// used, since either would lead around the guard.
package httpsend
