package edge

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-lambda-go/events"
)

const (
	// maxPayload is the most bytes that a function may answer, as JSON.
	maxPayload = 6<<20 + 100
	// escape is how many bytes JSON may make of one.
	escape = 6
)

// answer collects what a handler answers.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

var _ http.ResponseWriter = (*answer)(nil)

// Header is the answer's header.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader sets the status, once.
func (a *answer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
}

// Write adds to the body.
func (a *answer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(p)
}

// response is the answer as a function returns it. In this format a header has
// one value, so that several are joined; cookies stand apart. The length is
// the gateway's to say.
func (a *answer) response() events.APIGatewayV2HTTPResponse {
	a.WriteHeader(http.StatusOK)
	r := events.APIGatewayV2HTTPResponse{StatusCode: a.status, Headers: make(map[string]string, len(a.header))}
	for name, values := range a.header {
		switch name {
		case "Set-Cookie":
			r.Cookies = values
		case "Content-Length":
		default:
			r.Headers[name] = strings.Join(values, ", ")
		}
	}
	if b := a.body.Bytes(); utf8.Valid(b) {
		r.Body = string(b)
	} else {
		r.Body, r.IsBase64Encoded = base64.StdEncoding.EncodeToString(b), true
	}
	return r
}

// encodedSize is how many bytes a response has as JSON; for one that is far
// from too many it is a bound.
func encodedSize(r *events.APIGatewayV2HTTPResponse) int {
	bound := 1 << 10
	for name, value := range r.Headers {
		bound += escape * (len(name) + len(value) + 1)
	}
	for _, cookie := range r.Cookies {
		bound += escape * (len(cookie) + 1)
	}
	if bound += escape * len(r.Body); bound <= maxPayload {
		return bound
	}
	var n counter
	enc := json.NewEncoder(&n)
	enc.SetEscapeHTML(false) // as the runtime's encoder
	if err := enc.Encode(r); err != nil {
		return bound
	}
	return int(n)
}

// counter counts what is written to it.
type counter int

// Write counts p.
func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}
