package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"sluice/core"
)

const (
	defaultURL = "http://127.0.0.1:8080"
	// askTimeout bounds a call that reads state or sends events.
	askTimeout = time.Minute
	// untilDone lets a call take as long as it takes.
	untilDone time.Duration = -1
	// maxAnswerBytes bounds an answer that is read, in bytes.
	maxAnswerBytes = 64 << 20
	// maxProblem bounds what is shown of an answer that is no problem document.
	maxProblem = 300
)

// client talks to a running system.
type client struct {
	base  *url.URL
	token string
	http  *http.Client
	now   func() time.Time
}

// dial makes a client. Nothing is sent yet; the caller closes it.
func (p *program) dial(r *remote) (*client, error) {
	address := r.URL
	if address == "" {
		address = p.env("SLUICE_URL")
	}
	if address == "" {
		address = defaultURL
	}
	base, err := url.Parse(address)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" {
		return nil, usagef("%q is not the URL of a system, such as %s", address, defaultURL)
	}
	c := &client{base: base, token: r.Token, now: p.now, http: &http.Client{
		Transport: http.DefaultTransport.(*http.Transport).Clone(), //nolint:forcetypeassert // it is one
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse // a token is for the one it was given for
		},
	}}
	if c.token == "" {
		c.token = p.env("SLUICE_TOKEN")
	}
	return c, nil
}

func (c *client) close() { c.http.CloseIdleConnections() }

// answerError is an answer that is not a success.
type answerError struct {
	status     int
	body       []byte
	detail     string
	retryAfter time.Duration // 0: it did not say
}

func (e *answerError) Error() string {
	if e.detail == "" {
		return fmt.Sprintf("the server answered %d %s", e.status, http.StatusText(e.status))
	}
	return fmt.Sprintf("%s (%d)", e.detail, e.status)
}

// unsentError is why a call has not reached anybody.
type unsentError struct{ error }

// Unwrap is the cause.
func (e *unsentError) Unwrap() error { return e.error }

// full reports whether the server took nothing for want of room or time: the
// same call may be made again.
func (e *answerError) full() bool {
	return e.status == http.StatusServiceUnavailable || e.status == http.StatusTooManyRequests
}

// call is one request.
type call struct {
	method  string
	path    []string // escaped by the client
	query   url.Values
	header  http.Header
	body    []byte
	timeout time.Duration // 0: askTimeout; untilDone: none
}

// do makes a call and decodes its answer into out. An answer that is no
// success is an [answerError].
func (c *client) do(ctx context.Context, q call, out any) error {
	timeout := q.timeout
	if timeout == 0 {
		timeout = askTimeout
	}
	if timeout != untilDone {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	var met atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { met.Store(true) }})
	r, err := c.request(ctx, q)
	if err != nil {
		return err
	}
	resp, err := c.http.Do(r)
	if err != nil {
		err = c.unreachable(ctx, err)
		if !met.Load() {
			err = &unsentError{err}
		}
		return err
	}
	defer func() { _ = resp.Body.Close() }() // it was read, or is given up
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswerBytes+1))
	switch {
	case err != nil:
		return c.unreachable(ctx, err)
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		return c.refusal(resp, body)
	case len(body) > maxAnswerBytes:
		return fmt.Errorf("the answer of %s has more than %s", c.base.Redacted(), size(maxAnswerBytes))
	}
	if err := json.Unmarshal(body, out); err != nil {
		return fmt.Errorf("%s did not answer as Sluice does; is it the right URL? (%w)", c.base.Redacted(), err)
	}
	return nil
}

func (c *client) request(ctx context.Context, q call) (*http.Request, error) {
	path := make([]string, len(q.path))
	for i, s := range q.path {
		path[i] = url.PathEscape(s)
	}
	u := c.base.JoinPath(path...)
	u.RawQuery = q.query.Encode()
	r, err := http.NewRequestWithContext(ctx, q.method, u.String(), bytes.NewReader(q.body))
	if err != nil {
		return nil, err
	}
	maps.Copy(r.Header, q.header)
	r.Header.Set("Accept", "application/json, application/problem+json")
	r.Header.Set("User-Agent", "sluice/"+version())
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	return r, nil
}

// unreachable says why no answer came.
func (c *client) unreachable(ctx context.Context, err error) error {
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return ctx.Err()
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("nobody listens at %s; is \"sluice serve\" running there? (--url or SLUICE_URL says where else)", c.base.Redacted())
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	return fmt.Errorf("no answer from %s: %w", c.base.Redacted(), err)
}

// refusal is an answer that is no success as an error: what its problem
// document says, or the begin of whatever it is.
func (c *client) refusal(resp *http.Response, body []byte) error {
	e := &answerError{status: resp.StatusCode, body: body, retryAfter: c.retryAfter(resp.Header.Get("Retry-After"))}
	var problem struct {
		Title  string `json:"title"`
		Detail string `json:"detail"`
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case (kind == "application/problem+json" || kind == "application/json") && json.Unmarshal(body, &problem) == nil:
		if e.detail = problem.Detail; e.detail == "" {
			e.detail = problem.Title
		}
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		e.detail = "the server redirects to " + resp.Header.Get("Location")
	case strings.HasPrefix(kind, "text/plain"):
		e.detail = core.Cut(strings.TrimSpace(string(body)), maxProblem)
	}
	return e
}

// retryAfter is a Retry-After header: seconds, or a date.
func (c *client) retryAfter(h string) time.Duration {
	if s, err := strconv.Atoi(h); err == nil {
		return max(0, time.Duration(min(s, 1<<20))*time.Second)
	}
	if at, err := http.ParseTime(h); err == nil {
		return max(0, at.Sub(c.now()))
	}
	return 0
}

// pages reads a list to its end: the raw elements under name, over all pages.
func (c *client) pages(ctx context.Context, name string, path []string, query url.Values) ([]json.RawMessage, error) {
	all := []json.RawMessage{} // an empty list is [], not null
	for {
		var page map[string]json.RawMessage
		if err := c.do(ctx, call{method: http.MethodGet, path: path, query: query}, &page); err != nil {
			return nil, err
		}
		var elements []json.RawMessage
		var next string
		if err := json.Unmarshal(page[name], &elements); err != nil {
			return nil, fmt.Errorf("%s answered without %s; is it the right URL?", c.base.Redacted(), name)
		}
		all = append(all, elements...)
		if raw, ok := page["next"]; ok {
			if err := json.Unmarshal(raw, &next); err != nil {
				return nil, fmt.Errorf("%s answered with a next that is no text: %w", c.base.Redacted(), err)
			}
		}
		if next == "" || len(elements) == 0 {
			return all, nil
		}
		if query == nil {
			query = url.Values{}
		}
		query.Set("after", next)
	}
}
