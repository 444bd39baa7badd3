package httpsend

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

func TestBrokenAnswers(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, answer string
		status       int
		want         string
	}{
		{"closed without a word", "", 0, "retry"},
		{"closed in the status line", "HTTP/1.1 20", 0, "retry"},
		{"closed in the headers", "HTTP/1.1 200 OK\r\nContent-Le", 0, "retry"},
		{"closed in the body of a success", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"ok\"", 200, "retry"},
		{"closed in a chunk of a success", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nabc", 200, "retry"},
		{"closed in the body of a refusal", "HTTP/1.1 400 Bad Request\r\nContent-Length: 100\r\n\r\nno such", 400, "permanent"},
		{"not HTTP", "220 mail.example.com ESMTP\r\n", 0, "retry"},
		{"headers without an end", "HTTP/1.1 200 OK\r\nX: " + string(make([]byte, 2*maxHeaderBytes)), 0, "retry"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newSender(t, options(raw(t, tt.answer))).Send(t.Context(), batchOf(1))
			require.Equal(t, tt.status, r.Status)
			require.Equal(t, tt.want, outcome(&r), "error %v", r.Err)
			if tt.want == "retry" {
				require.Equal(t, core.Unavailable, core.CodeOf(r.Err))
			}
		})
	}
}

// TestNobodyThere: why nobody was reached is said, without an address of theirs.
func TestNobodyThere(t *testing.T) {
	t.Parallel()
	at := func(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }
	for want, err := range map[string]error{
		"no answer: the connection was refused": at(os.NewSyscallError("connect", syscall.ECONNREFUSED)),
		"no answer: the host is not known":      at(&net.DNSError{Err: "no such host", Name: "crm.internal", IsNotFound: true}),
		"no answer":                             at(&net.DNSError{Err: "server misbehaving", Name: "crm.internal", IsTemporary: true}),
	} {
		got := new(Sender).mapError(t.Context(), err)
		require.Equal(t, want, core.DetailOf(got))
		require.Equal(t, core.Unavailable, core.CodeOf(got))
	}
}

// TestLateAnswer: the answer comes after the timeout, so the batch is sent
// again, under the same id.
func TestLateAnswer(t *testing.T) {
	t.Parallel()
	ids := make(chan string, 2)
	o := options(serve(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		ids <- r.Header.Get("Webhook-Id")
		<-r.Context().Done()
	}).URL)
	o.Timeout = 100 * time.Millisecond
	s := newSender(t, o)
	for range 2 {
		r := s.Send(t.Context(), batchOf(1))
		require.Equal(t, "retry", outcome(&r))
		require.Equal(t, "no answer within 100ms", core.DetailOf(r.Err))
	}
	for range 2 {
		require.Equal(t, "life-1", <-ids)
	}
}

// TestEndlessAnswers: what has no end is not waited for, and not held.
func TestEndlessAnswers(t *testing.T) {
	t.Parallel()
	const gigabytes = 2 << 30
	for status, want := range map[int]string{200: "delivered", 400: "permanent", 503: "retry"} {
		wrote := make(chan int64, 1)
		server := serve(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.WriteHeader(status)
			n := int64(0)
			for chunk := make([]byte, 32<<10); n < gigabytes; n += int64(len(chunk)) {
				if _, err := w.Write(chunk); err != nil {
					break
				}
			}
			wrote <- n
		})
		r := newSender(t, options(server.URL)).Send(t.Context(), batchOf(5))
		require.Equal(t, want, outcome(&r))
		require.Less(t, <-wrote, int64(gigabytes), "the connection was dropped on the way")
		require.Len(t, r.Answer, core.MaxAnswer)
	}
}

// TestDrippingAnswers: an answer that never ends within the timeout. Without
// its end a success may still name failed items.
func TestDrippingAnswers(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]string{200: "retry", 400: "permanent"} {
		o := options(serve(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, "{")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}).URL)
		o.Timeout = 100 * time.Millisecond
		r := newSender(t, o).Send(t.Context(), batchOf(1))
		require.Equal(t, want, outcome(&r), "error %v", r.Err)
		require.Equal(t, status, r.Status)
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	var followed atomic.Int64
	elsewhere := serve(t, func(http.ResponseWriter, *http.Request) { followed.Add(1) })
	for _, target := range []string{elsewhere.URL, "http://169.254.169.254/latest/meta-data/", ""} {
		for _, status := range []int{301, 302, 303, 307, 308} {
			r := newSender(t, options(answering(t, status, "", "Location", target).URL)).Send(t.Context(), batchOf(1))
			require.NoError(t, r.Err)
			require.Equal(t, status, r.Status)
			require.Equal(t, "permanent", outcome(&r))
		}
	}
	require.Zero(t, followed.Load())
}

func TestNoServer(t *testing.T) {
	t.Parallel()
	r := newSender(t, options(unused(t)+"/in?token=hunter2")).Send(t.Context(), batchOf(1))
	require.Equal(t, "retry", outcome(&r))
	require.Equal(t, core.Unavailable, core.CodeOf(r.Err))
	require.ErrorContains(t, r.Err, "connection refused")
	require.NotContains(t, r.Err.Error(), "hunter2")
}

// TestUnreadRequest: an endpoint that answers without reading the batch.
func TestUnreadRequest(t *testing.T) {
	t.Parallel()
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusRequestEntityTooLarge) })
	r := newSender(t, options(server.URL)).Send(t.Context(), batchOf(200))
	require.Equal(t, http.StatusRequestEntityTooLarge, r.Status)
	require.Equal(t, "permanent", outcome(&r))
}

// counted is a server that counts its connections.
func counted(t *testing.T, h http.HandlerFunc) (url string, opened *atomic.Int64) {
	t.Helper()
	opened = new(atomic.Int64)
	server := httptest.NewUnstartedServer(h)
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	return server.URL, opened
}

func TestConnectionsAreKept(t *testing.T) {
	t.Parallel()
	url, opened := counted(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = w.Write(make([]byte, answerBytes)) // the largest answer that is read for certain
	})
	s := newSender(t, options(url))
	for range 10 {
		r := s.Send(t.Context(), batchOf(50))
		require.Equal(t, "delivered", outcome(&r))
	}
	require.Equal(t, int64(1), opened.Load())
}

// TestConnectionsForConcurrency: as many connections are kept as sends may be
// in flight.
func TestConnectionsForConcurrency(t *testing.T) {
	t.Parallel()
	const side = 8
	var together sync.WaitGroup
	url, opened := counted(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		together.Done()
		together.Wait()
	})
	o := options(url)
	o.Concurrency = side
	s := newSender(t, o)
	for range 3 {
		together.Add(side)
		var all sync.WaitGroup
		for range side {
			all.Go(func() { s.Send(t.Context(), batchOf(1)) })
		}
		all.Wait()
	}
	require.Equal(t, int64(side), opened.Load())
}

// TestServerClosesIdleConnection: a kept connection that the server has closed
// costs no attempt.
func TestServerClosesIdleConnection(t *testing.T) {
	t.Parallel()
	server := answering(t, http.StatusOK, "")
	s := newSender(t, options(server.URL))
	noticed, dial := make(chan struct{}, 1), s.transport.DialContext
	s.transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		return &closeSignal{Conn: conn, closed: noticed}, err
	}
	for range 3 {
		r := s.Send(t.Context(), batchOf(1))
		require.Equal(t, "delivered", outcome(&r), "error %v", r.Err)
		server.CloseClientConnections()
		<-noticed
	}
}

// closeSignal says when the sender has closed its end.
type closeSignal struct {
	net.Conn

	once   sync.Once
	closed chan<- struct{}
}

func (c *closeSignal) Close() error {
	c.once.Do(func() { c.closed <- struct{}{} })
	return c.Conn.Close()
}

func TestCloseEndsIdleConnections(t *testing.T) {
	t.Parallel()
	url, opened := counted(t, func(http.ResponseWriter, *http.Request) {})
	s := newSender(t, options(url))
	for range 2 {
		r := s.Send(t.Context(), batchOf(1))
		require.Equal(t, "delivered", outcome(&r))
		s.Close()
	}
	require.Equal(t, int64(2), opened.Load())
}

// TestPayloadsAreNotSharedWhileRead sends batches of which many are stopped
// while the server reads them: whatever arrives whole is signed rightly.
func TestPayloadsAreNotSharedWhileRead(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(testing.TB, http.HandlerFunc) *httptest.Server{"HTTP/1.1": serve, "HTTP/2": serveHTTP2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var stop sync.Map // by batch id: cancel functions
			key := []byte("key")
			server := start(t, func(_ http.ResponseWriter, r *http.Request) {
				got := make([]byte, 1<<10)
				_, _ = io.ReadFull(r.Body, got)
				id := r.Header.Get("Webhook-Id")
				if cancel, ok := stop.Load(id); ok {
					cancel.(context.CancelFunc)()
				}
				rest, err := io.ReadAll(r.Body)
				got = append(got, rest...) //nolint:makezero // the rest goes behind what has been read
				if err == nil && signature([][]byte{key}, id, r.Header.Get("Webhook-Timestamp"), got) != r.Header.Get("Webhook-Signature") {
					t.Errorf("batch %s arrived as another", id)
				}
			})
			o := options(server.URL)
			o.Secrets = []string{string(key)}
			s := newSender(t, o)
			if server.TLS != nil {
				trust(s, server)
			}
			sendAndStop(t, s, &stop)
		})
	}
}

func sendAndStop(t *testing.T, s *Sender, stop *sync.Map) {
	t.Helper()
	var all sync.WaitGroup
	for worker := range 4 {
		items := batchOf(100 + worker).Items
		all.Go(func() {
			for i := range 15 {
				ctx, cancel := context.WithCancel(t.Context())
				b := &core.Batch{ID: fmt.Sprintf("%d-%d", worker, i), Items: items}
				if i%2 == 0 {
					stop.Store(b.ID, cancel)
				}
				r := s.Send(ctx, b)
				if o := outcome(&r); o != "delivered" && (i%2 == 1 || o != "interrupted") {
					t.Errorf("batch %s: %s, error %v", b.ID, o, r.Err)
				}
				cancel()
			}
		})
	}
	all.Wait()
}

func TestEnvironmentProxyIsNotUsed(t *testing.T) {
	t.Parallel()
	require.Nil(t, newSender(t, options("http://example.com")).transport.Proxy)
}
