package httpsend

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"sluice/core"
	"sluice/core/format"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// now is what the clock says in these tests.
var now = core.At(time.Date(2026, 3, 4, 5, 6, 7, 890e6, time.UTC))

func clock() core.Clock { return core.ClockFunc(func() core.Millis { return now }) }

// options reach a test's own server.
func options(url string) Options {
	return Options{URL: url, Timeout: time.Minute, AllowPrivate: true, Concurrency: 4, Clock: clock()}
}

// newSender makes a sender that its test ends.
func newSender(t testing.TB, o Options) *Sender {
	t.Helper()
	s, err := New(o)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

// serve starts an HTTP/1.1 server on loopback that its test ends.
func serve(t testing.TB, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server
}

// answering is a server that answers each request alike.
func answering(t testing.TB, status int, body string, headers ...string) *httptest.Server {
	t.Helper()
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	})
}

// raw is a server that reads each connection's first request and answers it
// with these bytes, then closes it.
func raw(t testing.TB, answer string) string {
	t.Helper()
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(conn, answer)
		_ = conn.Close()
	})
	return server.URL
}

// unused is the URL of a loopback port on which nothing listens.
func unused(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return "http://" + l.Addr().String()
}

// batchOf is a batch of n items of some 1 KB.
func batchOf(n int) *core.Batch {
	b := &core.Batch{ID: "life-1", Buffer: "crm-orders", Group: "k", Reason: core.ReasonItems, Attempt: 1}
	for i := range n {
		b.Items = append(b.Items, core.Item{Seq: uint64(i + 1), Event: core.Event{
			ID: fmt.Sprintf("ev-%d", i), ReceivedAt: now - core.Millis(n-i), Body: fmt.Appendf(nil, `{"n":%d,"pad":"%01000d"}`, i, 0),
		}})
	}
	return b
}

func encoded(f format.Format, b *core.Batch) string { return string(format.Append(nil, f, b)) }
