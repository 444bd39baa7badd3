package edge

import (
	"context"
	"encoding/base64"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"sluice/core"
)

// payloadFormat is the one version of HTTP events that is understood.
const payloadFormat = "2.0"

// HTTP answers the events of an HTTP API (payload format 2.0) or a function
// URL, which have the same shape, by a handler. refuse writes the answer that
// stands for one that is larger than Lambda lets through.
//
// It fails on events of another format: nothing in them can be relied on.
func HTTP(h http.Handler, refuse func(http.ResponseWriter, error)) func(context.Context, events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
	return func(ctx context.Context, e events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		if e.Version != payloadFormat || e.RequestContext.HTTP.Method == "" {
			return events.APIGatewayV2HTTPResponse{}, core.Errorf(core.Invalid,
				"not an HTTP event of payload format 2.0 (version %q); wire the function to an HTTP API with that format, or to a function URL", e.Version)
		}
		a := answer{header: make(http.Header)}
		h.ServeHTTP(&a, request(ctx, &e))
		r := a.response()
		if n := encodedSize(&r); n > maxPayload {
			a = answer{header: make(http.Header)}
			refuse(&a, core.Errorf(core.TooLarge, "the answer has %d bytes, more than the 6 MB that can be sent from here; ask for less at a time", n))
			r = a.response()
		}
		return r, nil
	}
}

// request is the request that an event tells of. It has the path and the
// query as they were sent, and no cookies: nothing here reads any.
func request(ctx context.Context, e *events.APIGatewayV2HTTPRequest) *http.Request {
	r := &http.Request{
		Method: e.RequestContext.HTTP.Method,
		URL:    target(e),
		Proto:  "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:     headers(e.Headers),
		RemoteAddr: peer(e.RequestContext.HTTP.SourceIP),
		Host:       e.RequestContext.DomainName,
	}
	for name, value := range e.Headers {
		if strings.EqualFold(name, "Host") {
			r.Host = value
		}
	}
	r.RequestURI = r.URL.RequestURI()
	r.Body, r.ContentLength = body(e)
	return r.WithContext(ctx)
}

// target is the URL that was asked for, without the name of a stage: that says
// where the API is deployed, and is no part of it. A stage must therefore not be
// named like the beginning of one of the API's own paths.
func target(e *events.APIGatewayV2HTTPRequest) *url.URL {
	path := e.RawPath
	if stage := e.RequestContext.Stage; stage != "" && stage != "$default" {
		rest, ok := strings.CutPrefix(path, "/"+stage)
		if ok && (rest == "" || rest[0] == '/') {
			path = rest
		}
	}
	if path == "" {
		path = "/"
	}
	u := &url.URL{Path: path, RawQuery: e.RawQueryString}
	if plain, err := url.PathUnescape(path); err == nil {
		u.Path, u.RawPath = plain, path
	}
	return u
}

// gateways are the headers by which the gateway tells of itself and of the
// connection that it had. An event does not keep them: they are not about it, and
// would be a fifth of a small one.
var gateways = map[string]bool{
	"Host": true, "Cookie": true, "X-Amzn-Trace-Id": true,
	"X-Forwarded-For": true, "X-Forwarded-Port": true, "X-Forwarded-Proto": true,
}

// headers are an event's headers. Those that were sent more than once come
// joined by commas, which is how they stay.
func headers(sent map[string]string) http.Header {
	h := make(http.Header, len(sent))
	for name, value := range sent {
		if name = http.CanonicalHeaderKey(name); !gateways[name] {
			h[name] = append(h[name], value)
		}
	}
	return h
}

// peer is where a request comes from, as net/http has it. What is no address
// of another machine becomes "", which nobody lets in: behind a gateway there
// are no callers on the same machine.
func peer(ip string) string {
	addr, err := netip.ParseAddr(ip)
	if err != nil || addr.Unmap().IsLoopback() {
		return ""
	}
	return netip.AddrPortFrom(addr, 0).String()
}

// body is what was sent, and its length in bytes. A body that is not base64
// although the event says so fails when it is read.
func body(e *events.APIGatewayV2HTTPRequest) (io.ReadCloser, int64) {
	switch {
	case e.Body == "":
		return http.NoBody, 0
	case !e.IsBase64Encoded:
		return io.NopCloser(strings.NewReader(e.Body)), int64(len(e.Body))
	}
	text := strings.TrimRight(e.Body, "=")
	length := base64.RawStdEncoding.DecodedLen(len(text))
	return io.NopCloser(base64.NewDecoder(base64.RawStdEncoding, strings.NewReader(text))), int64(length)
}
