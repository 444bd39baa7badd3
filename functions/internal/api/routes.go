package api

import (
	"net/http"
	"net/url"
	"strings"
)

// endpoint is what a path leads to.
type endpoint struct {
	methods string // as the Allow header has them
	part    part
	serve   func(h *handler, w http.ResponseWriter, r *http.Request, name string) error
}

// part is a part of the API, by who may call it.
type part uint8

const (
	probe   part = iota // anybody
	intake              // whom the source lets in
	control             // whom the control gate lets in
)

const (
	get  = "GET, HEAD"
	post = "POST"
)

// The endpoints whose paths hold a name.
var (
	single      = &endpoint{methods: post, part: intake, serve: (*handler).ingest}
	batch       = &endpoint{methods: post, part: intake, serve: (*handler).ingestBatch}
	bufferState = &endpoint{methods: get, part: control, serve: (*handler).buffer}
	groupStates = &endpoint{methods: get, part: control, serve: (*handler).groups}
	bufferFlush = &endpoint{methods: post, part: control, serve: (*handler).flushBuffer}
)

// fixed are the endpoints whose paths hold none.
var fixed = map[string]*endpoint{
	"/v1/buffers":            {methods: get, part: control, serve: (*handler).buffers},
	"/v1/flush":              {methods: post, part: control, serve: (*handler).flush},
	"/v1/deadletters":        {methods: get, part: control, serve: (*handler).deadLetters},
	"/v1/deadletters/replay": {methods: post, part: control, serve: (*handler).replay},
	"/healthz":               {methods: get, part: probe, serve: (*handler).health},
	"/readyz":                {methods: get, part: probe, serve: (*handler).ready},
	"/metrics":               {methods: get, part: control, serve: (*handler).metrics},
}

// find is the endpoint of a URL's path, and the name in it. nil: there is none.
func find(u *url.URL) (*endpoint, string) {
	path := u.Path
	if strings.Contains(strings.ToLower(u.RawPath), "%2f") {
		return nil, "" // a slash in a name, which none has: orders%2Fbatch is no batch
	}
	if rest, ok := strings.CutPrefix(path, "/v1/sources/"); ok {
		return named(rest, "/batch", single, batch)
	}
	if rest, ok := strings.CutPrefix(path, "/v1/buffers/"); ok {
		if strings.HasSuffix(rest, "/flush") {
			return named(rest, "/flush", nil, bufferFlush)
		}
		return named(rest, "/groups", bufferState, groupStates)
	}
	return fixed[path], ""
}

// named tells name from name/suffix.
func named(rest, suffix string, plain, suffixed *endpoint) (*endpoint, string) {
	e := plain
	name, ok := strings.CutSuffix(rest, suffix)
	if ok {
		e = suffixed
	}
	if name == "" || strings.IndexByte(name, '/') >= 0 {
		return nil, ""
	}
	return e, name
}

func (e *endpoint) allows(method string) bool {
	if e.methods == post {
		return method == http.MethodPost
	}
	return method == http.MethodGet || method == http.MethodHead
}
