package api

import (
	"bytes"
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"

	"sluice/core"
)

// Problem is an error as RFC 9457 spells it.
type Problem struct {
	Type   string `json:"type"` // urn:sluice:problem:<code>
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"` // says what would be right
}

const problemType = "urn:sluice:problem:"

// problemError is a problem on its way to the client.
type problemError struct {
	Problem

	header, value string // one to send with it
}

// Error is the problem in a line.
func (p *problemError) Error() string { return p.Title + ": " + p.Detail }

// problems has the status and title of each of the core's codes.
var problems = map[core.Code]struct {
	status int
	title  string
}{
	core.Internal:     {http.StatusInternalServerError, "Internal error"},
	core.Invalid:      {http.StatusBadRequest, "Invalid request"},
	core.Unauthorized: {http.StatusUnauthorized, "Unauthorized"},
	core.Forbidden:    {http.StatusForbidden, "Forbidden"},
	core.NotFound:     {http.StatusNotFound, "Not found"},
	core.TooLarge:     {http.StatusRequestEntityTooLarge, "Too large"},
	core.Unsupported:  {http.StatusUnsupportedMediaType, "Unsupported"},
	core.Full:         {http.StatusServiceUnavailable, "Full"},
	core.Unavailable:  {http.StatusServiceUnavailable, "Unavailable"},
	core.Conflict:     {http.StatusConflict, "Conflict"},
	core.Canceled:     {http.StatusServiceUnavailable, "Canceled"},
}

// retryAfter is when to try again where nothing better is known.
const retryAfter = 5 * time.Second

// problemOf is the one place where an error becomes an answer. nil, and what
// carries no code, is a fault of ours, of which no more is said.
func problemOf(err error) *problemError {
	if p, ok := errors.AsType[*problemError](err); ok {
		return p
	}
	code := core.CodeOf(err)
	known, ok := problems[code]
	if !ok {
		code, known = core.Internal, problems[core.Internal]
	}
	p := &problemError{Problem: Problem{problemType + code.String(), known.title, known.status, core.DetailOf(err)}}
	switch {
	case code == core.Internal:
		p.Detail = "something went wrong on our side; nothing that was accepted is lost"
	case code == core.Unauthorized:
		p.header, p.value = "Www-Authenticate", "Bearer"
	case known.status == http.StatusServiceUnavailable:
		after := core.RetryAfterOf(err)
		if after <= 0 {
			after = retryAfter
		}
		p.header, p.value = "Retry-After", seconds(after)
	}
	return p
}

// seconds is d in whole seconds, rounded up.
func seconds(d time.Duration) string {
	return strconv.FormatFloat(math.Ceil(d.Seconds()), 'f', 0, 64)
}

func methodNotAllowed(allow string) error {
	return &problemError{
		Problem: Problem{problemType + "method_not_allowed", "Method not allowed", http.StatusMethodNotAllowed, "use " + allow},
		header:  "Allow", value: allow,
	}
}

func headersTooLarge(detail string) error {
	return &problemError{
		Problem: Problem{problemType + "headers_too_large", "Headers too large", http.StatusRequestHeaderFieldsTooLarge, detail},
	}
}

// unsupportedEncoding is a 415 that names the encoding which is understood,
// as RFC 9110 section 12.5.3 asks for.
func unsupportedEncoding() error {
	p := problemOf(core.Errorf(core.Unsupported, "the content encoding must be gzip or identity"))
	p.header, p.value = "Accept-Encoding", "gzip"
	return p
}

// Refuse answers with the problem that err is.
func Refuse(w http.ResponseWriter, err error) { problemOf(err).write(w) }

func (p *problemError) write(w http.ResponseWriter) {
	if p.header != "" {
		w.Header().Set(p.header, p.value)
	}
	var body bytes.Buffer
	encode(&body, &p.Problem)
	send(w, p.Status, problemJSON, body.Bytes())
}
