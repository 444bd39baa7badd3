package httpsend

import (
	"context"
	"crypto/tls"
	"net/http"
	"net/url"
	"slices"
	"time"

	"sluice/core"
	"sluice/core/format"
)

// Options is what a sender needs to know of its destination.
type Options struct {
	URL          string        // http or https, without user name and password
	Headers      []core.Header // sent with every batch, secrets resolved; none of Sluice's own
	Format       format.Format
	Secrets      []string      // sign with each of these: whsec_<base64>, or the key itself; none: no signature
	Redact       []string      // never shown in an answer, nor are Secrets; those below 4 bytes are ignored
	Timeout      time.Duration // of one send, from connecting to the answer's end
	AllowPrivate bool          // also connect to private and loopback addresses
	Concurrency  int           // connections kept open between sends
	Clock        core.Clock
}

const (
	idleTimeout    = 30 * time.Second // below the usual keep-alive of servers and balancers
	pingAfter      = 15 * time.Second // HTTP/2: finds dead connections that many sends share
	pingTimeout    = 5 * time.Second
	maxHeaderBytes = 64 << 10
)

// Sender sends to one endpoint. It is safe for concurrent use.
type Sender struct {
	url       *url.URL
	headers   http.Header // of every request
	format    format.Format
	keys      [][]byte
	secrets   []string // never shown
	timeout   time.Duration
	clock     core.Clock
	transport *http.Transport
	payloads  payloadPool
}

var _ core.Sender = (*Sender)(nil)

// New makes a sender. What is wrong with o is core.Invalid; no error shows a
// secret, a header's value or the URL's query.
func New(o Options) (*Sender, error) {
	u, err := parseURL(o.URL)
	if err != nil {
		return nil, err
	}
	if o.Timeout <= 0 || o.Clock == nil {
		return nil, core.Errorf(core.Invalid, "a sender needs a timeout above 0 and a clock")
	}
	headers, err := baseHeaders(o.Format, o.Headers)
	if err != nil {
		return nil, err
	}
	keys, err := parseSecrets(o.Secrets)
	if err != nil {
		return nil, err
	}
	return &Sender{
		url: u, headers: headers, format: o.Format, keys: keys,
		secrets: redactions(slices.Concat(o.Redact, signingRedactions(o.Secrets))),
		timeout: o.Timeout, clock: o.Clock, transport: newTransport(o),
	}, nil
}

func parseURL(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil: // its text repeats the URL
		return nil, core.Errorf(core.Invalid, "url: not a URL; give one such as https://example.com/events")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, core.Errorf(core.Invalid, "url: scheme %q; it is http or https", u.Scheme)
	case u.Hostname() == "":
		return nil, core.Errorf(core.Invalid, "url: no host; give one such as https://example.com/events")
	case u.User != nil:
		return nil, core.Errorf(core.Invalid, "url: holds a user name or password; put them into a header that refers to a secret")
	}
	return u, nil
}

func newTransport(o Options) *http.Transport {
	g := &guard{allowPrivate: o.AllowPrivate, timeout: o.Timeout}
	return &http.Transport{
		Proxy:                  nil, // not the environment's
		DialContext:            g.dial,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    o.Timeout,
		ForceAttemptHTTP2:      true,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
		MaxIdleConnsPerHost:    max(o.Concurrency, 1),
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxHeaderBytes,
		DisableCompression:     true, // an answer is read up to a bound, not unpacked
	}
}

// Close ends the connections that no send uses.
func (s *Sender) Close() { s.transport.CloseIdleConnections() }

// Send posts the batch and reports the answer. The transport is used without
// an http.Client: no redirects, no cookies, and no URL in errors.
func (s *Sender) Send(ctx context.Context, b *core.Batch) core.Response {
	if err := ctx.Err(); err != nil {
		return core.Response{Err: stopped(err)}
	}
	sending, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	p := s.payloads.get()
	defer p.release()
	p.data = format.Append(p.data[:0], s.format, b)
	request := s.request(sending, b, p)
	answer, err := s.transport.RoundTrip(request)
	if err != nil {
		return core.Response{Err: s.mapError(ctx, err)}
	}
	defer func() { _ = answer.Body.Close() }() // all that matters has been read
	return s.read(ctx, answer, b, request.Header.Get("Webhook-Signature"))
}
