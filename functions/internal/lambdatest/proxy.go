package lambdatest

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
)

// proxyPath is where an environment's server has the AWS services.
const proxyPath = "/aws/"

// Call is one request of a function to an AWS service.
type Call struct {
	Function, Service, Operation string
	// Nth counts the calls of this operation in the invocation, from 1.
	Nth int
}

// String is the call as it reads in a log: "deliver: dynamodb UpdateItem 2".
func (c Call) String() string {
	return fmt.Sprintf("%s: %s %s %d", c.Function, c.Service, c.Operation, c.Nth)
}

// Fate is what becomes of a call, and of the process that makes it.
type Fate int

// The fates.
const (
	Pass       Fate = iota
	KillBefore      // the process dies before the service hears of the call
	KillAfter       // the service has done it, and the process dies before it hears
	LoseAnswer      // the service has done it, and the connection breaks before the process hears
)

// upstream carries calls to the stand-ins. It has a connection for each call,
// as a stand-in may close an idle one at the moment of its next use, which
// would be a failure that nobody asked for.
var upstream = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// proxy forwards calls to one service.
func (e *environment) proxy(service, address string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler) // the process has ended amid it
		}
		fate := e.fate(service, r)
		if fate == KillBefore {
			e.shoot()
			panic(http.ErrAbortHandler)
		}
		status, header, answer, err := forward(r, address, strings.TrimPrefix(r.URL.EscapedPath(), proxyPath+service), body)
		if fate == KillAfter {
			e.shoot()
		}
		if fate != Pass || err != nil {
			panic(http.ErrAbortHandler)
		}
		maps.Copy(w.Header(), header)
		w.WriteHeader(status)
		_, _ = w.Write(answer) //nolint:gosec // it is the stand-in's, for the SDK; a process that has ended is noticed elsewhere
	})
}

// fate asks the hook about a call.
func (e *environment) fate(service string, r *http.Request) Fate {
	c := Call{Function: e.f.Name, Service: service, Operation: operation(r)}
	e.mu.Lock()
	name := service + c.Operation
	e.calls[name]++
	c.Nth = e.calls[name]
	e.mu.Unlock()
	if e.f.Hook == nil {
		return Pass
	}
	return e.f.Hook(c)
}

// operation is the name of a request's operation: what its target header says,
// or its method and the kind of thing that its path names.
func operation(r *http.Request) string {
	if target := r.Header.Get("X-Amz-Target"); target != "" {
		return target[strings.LastIndexByte(target, '.')+1:]
	}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	return r.Method + " " + parts[min(2, len(parts)-1)]
}

// forward sends a request on, and returns the whole answer. It does not end with the
// process: what a service has been asked, it does.
func forward(r *http.Request, address, path string, body []byte) (int, http.Header, []byte, error) {
	url := strings.TrimSuffix(address, "/") + path
	if r.URL.RawQuery != "" {
		url += "?" + r.URL.RawQuery
	}
	req, err := http.NewRequest(r.Method, url, bytes.NewReader(body)) //nolint:noctx,gosec // see above; where to is the test's own
	if err != nil {
		return 0, nil, nil, err
	}
	req.Header = r.Header.Clone()
	req.Header.Del("Connection")
	resp, err := upstream.Do(req) //nolint:gosec // the same
	if err != nil {
		return 0, nil, nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	resp.Header.Del("Connection")
	return resp.StatusCode, resp.Header, answer, err
}
