package httpsend

import (
	"crypto/x509"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core/format"
	"sluice/core/sendertest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	sendertest.Run(t, sendertest.Harness{Name: "httpsend", New: func(t *testing.T, f format.Format, timeout time.Duration) sendertest.Destination {
		t.Helper()
		var e endpoint
		return e.destination(newSender(t, e.options(serve(t, e.serve).URL, f, timeout)))
	}})
}

// TestConformanceHTTP2 passes the suite over TLS, where HTTP/2 is agreed on.
func TestConformanceHTTP2(t *testing.T) {
	t.Parallel()
	sendertest.Run(t, sendertest.Harness{Name: "httpsend over HTTP/2", New: func(t *testing.T, f format.Format, timeout time.Duration) sendertest.Destination {
		t.Helper()
		var e endpoint
		server := serveHTTP2(t, func(w http.ResponseWriter, r *http.Request) {
			if r.ProtoMajor != 2 {
				t.Errorf("protocol %s", r.Proto)
			}
			e.serve(w, r)
		})
		s := newSender(t, e.options(server.URL, f, timeout))
		trust(s, server)
		return e.destination(s)
	}})
}

func serveHTTP2(t testing.TB, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(h)
	server.EnableHTTP2 = true
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // senders that do not trust it hang up
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

// trust makes the sender accept the server's certificate.
func trust(s *Sender, server *httptest.Server) {
	s.transport.TLSClientConfig.RootCAs = x509.NewCertPool()
	s.transport.TLSClientConfig.RootCAs.AddCert(server.Certificate())
}

// endpoint is a server that can be told how to answer.
type endpoint struct {
	mu       sync.Mutex
	received [][]byte
	answer   http.HandlerFunc // nil: 200
}

func (e *endpoint) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	e.mu.Lock()
	answer := e.answer
	if err == nil && answer == nil {
		e.received = append(e.received, body)
	}
	e.mu.Unlock()
	if answer != nil {
		answer(w, r)
	}
}

func (e *endpoint) options(url string, f format.Format, timeout time.Duration) Options {
	o := options(url)
	o.Format, o.Timeout, o.Concurrency = f, timeout, 16
	return o
}

func (e *endpoint) destination(s *Sender) sendertest.Destination {
	tell := func(answer http.HandlerFunc) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.answer = answer
	}
	status := func(code int) func() {
		return func() { tell(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }) }
	}
	return sendertest.Destination{
		Sender: s,
		Received: func() [][]byte {
			e.mu.Lock()
			defer e.mu.Unlock()
			return e.received
		},
		Stall: func() <-chan struct{} {
			reached := make(chan struct{}, 1)
			tell(func(_ http.ResponseWriter, r *http.Request) {
				select {
				case reached <- struct{}{}:
				default:
				}
				<-r.Context().Done() // until the sender hangs up
			})
			return reached
		},
		FailItems: func(ids ...string) { tell(func(w http.ResponseWriter, _ *http.Request) { writeFailures(w, ids) }) },
		Throttle: func(wait time.Duration) (told time.Duration) {
			tell(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", strconv.Itoa(int(wait.Seconds())))
				w.WriteHeader(http.StatusTooManyRequests)
			})
			return wait
		},
		Refuse:   status(http.StatusBadRequest),
		TooLarge: status(http.StatusRequestEntityTooLarge),
	}
}

// writeFailures answers as a receiver that took all but these items.
func writeFailures(w http.ResponseWriter, ids []string) {
	type failure struct {
		ItemIdentifier string `json:"itemIdentifier"`
	}
	answer := struct {
		BatchItemFailures []failure `json:"batchItemFailures"`
	}{BatchItemFailures: make([]failure, len(ids))}
	for i, id := range ids {
		answer.BatchItemFailures[i].ItemIdentifier = id
	}
	_ = json.NewEncoder(w).Encode(answer)
}

func TestTLS(t *testing.T) {
	t.Parallel()
	server := serveHTTP2(t, func(http.ResponseWriter, *http.Request) {})
	s := newSender(t, options(server.URL))
	r := s.Send(t.Context(), batchOf(1)) // its certificate is not trusted
	require.ErrorContains(t, r.Err, "certificate")
	require.Equal(t, "retry", outcome(&r))
}
