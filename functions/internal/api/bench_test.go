package api_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/functions/internal/api"
)

// instant accepts everything, and does nothing with it.
type instant struct{ ids []string }

func (i instant) Ingest(_ context.Context, _ string, events []core.Event, _ ...func() bool) (core.Receipt, error) {
	return core.Receipt{Accepted: len(events), IDs: i.ids[:len(events)]}, nil
}

// nowhere is a response that only remembers its status.
type nowhere struct {
	header http.Header
	status int
}

func (n *nowhere) Header() http.Header         { return n.header }
func (n *nowhere) WriteHeader(status int)      { n.status = status }
func (n *nowhere) Write(p []byte) (int, error) { return len(p), nil }

// kilobyte is an event of 1,000 bytes.
var kilobyte = `{"customer_id":"c-17","type":"order","note":"` + strings.Repeat("lorem ipsum ", 79) + `1234"}`

func benchmark(b *testing.B, path, body string, change func(*core.Config), header ...string) {
	b.Helper()
	h := setup(b)
	ids := make([]string, 1000)
	for i := range ids {
		ids[i] = "01JNV1Q2J3K4M5N6P7Q8R9S0T1"
	}
	catalog, err := core.NewCatalog(config(change), nil)
	require.NoError(b, err)
	h.handler = h.newHandler(catalog, api.Options{}, instant{ids})

	raw := []byte(body)
	payload := bytes.NewReader(raw)
	r := request(http.MethodPost, path, body, header...)
	r.Body = io.NopCloser(payload)
	w := &nowhere{header: http.Header{}}
	b.ReportAllocs()
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		payload.Reset(raw)
		h.handler.ServeHTTP(w, r)
	}
	require.Equal(b, http.StatusAccepted, w.status)
}

func BenchmarkIngest(b *testing.B) {
	typed := []string{"Content-Type", "application/json"}
	b.Run("text", func(b *testing.B) { benchmark(b, sourcePath, kilobyte, auth(core.Auth{Open: true})) })
	b.Run("json", func(b *testing.B) { benchmark(b, sourcePath, kilobyte, auth(core.Auth{Open: true}), typed...) })
	b.Run("loopback", func(b *testing.B) { benchmark(b, sourcePath, kilobyte, func(*core.Config) {}, typed...) })
	b.Run("bearer", func(b *testing.B) {
		benchmark(b, sourcePath, kilobyte, auth(core.Auth{Bearer: []core.Secret{"env:ONE"}}), append(typed, "Authorization", "Bearer first-token")...)
	})
	b.Run("headers", func(b *testing.B) {
		benchmark(b, sourcePath, kilobyte, auth(core.Auth{Open: true}), append(typed,
			"Idempotency-Key", "k", "Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "X-Tenant", "t",
			"User-Agent", "bench", "Accept", "*/*", "Accept-Encoding", "gzip")...)
	})
	b.Run("gzip", func(b *testing.B) {
		benchmark(b, sourcePath, zip(b, kilobyte), auth(core.Auth{Open: true}), append(typed, "Content-Encoding", "gzip")...)
	})
}

// BenchmarkServer posts over one connection, to the API and to a bare server
// that reads the body and answers: the difference is what the API costs.
func BenchmarkServer(b *testing.B) {
	catalog, err := core.NewCatalog(config(), nil)
	require.NoError(b, err)
	handlers := map[string]http.Handler{
		"bare": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.WriteHeader(http.StatusAccepted)
		}),
		"api": setup(b).newHandler(catalog, api.Options{}, instant{[]string{"01JNV1Q2J3K4M5N6P7Q8R9S0T1"}}),
	}
	for name, handler := range handlers {
		b.Run(name, func(b *testing.B) {
			s := httptest.NewServer(handler)
			defer s.Close()
			conn, err := net.Dial("tcp", s.Listener.Addr().String())
			require.NoError(b, err)
			defer conn.Close()
			post := []byte("POST " + sourcePath + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: " +
				strconv.Itoa(len(kilobyte)) + "\r\n\r\n" + kilobyte)
			answer := make([]byte, 4<<10)
			b.ReportAllocs()
			for b.Loop() {
				_, err = conn.Write(post)
				require.NoError(b, err)
				n, err := conn.Read(answer)
				require.NoError(b, err)
				require.True(b, bytes.HasPrefix(answer[:n], []byte("HTTP/1.1 202")))
			}
		})
	}
}

func BenchmarkBatch(b *testing.B) {
	open := auth(core.Auth{Open: true})
	b.Run("ndjson", func(b *testing.B) {
		benchmark(b, batchPath, strings.Repeat(kilobyte+"\n", 100), open, "Content-Type", ndjson)
	})
	b.Run("array", func(b *testing.B) {
		benchmark(b, batchPath, "["+strings.Repeat(kilobyte+",", 99)+kilobyte+"]", open, "Content-Type", "application/json")
	})
}
