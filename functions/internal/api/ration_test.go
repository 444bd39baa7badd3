package api_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/functions/internal/api"
)

// Bodies that are being taken in share a bound on memory, which is free again
// when they are through.
func TestBodiesShareMemory(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.build(config(), api.Options{MaxBodyBytes: 100_000})
	body := strings.Repeat("x", 60_000)

	slow, feed := io.Pipe()
	first := request(http.MethodPost, "/v1/sources/orders", "")
	first.Body, first.ContentLength = slow, int64(len(body))
	answered := make(chan int)
	go func() { answered <- h.do(first).Code }()
	_, err := io.WriteString(feed, body[:32<<10+1]) // so much that the buffer has to be whole
	require.NoError(t, err)

	w := h.post("/v1/sources/orders", body)
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.Equal(t, "1", w.Header().Get("Retry-After"))
	require.Contains(t, problem(t, w).Detail, "too many large requests are under way")
	require.Equal(t, http.StatusAccepted, h.post("/v1/sources/orders", body[:40_000]).Code)

	_, err = io.WriteString(feed, body[32<<10+1:])
	require.NoError(t, err)
	require.Equal(t, http.StatusAccepted, <-answered)
	require.Equal(t, http.StatusAccepted, h.post("/v1/sources/orders", body).Code)
}

// Requests that announce large bodies and send nothing keep nobody out.
func TestAnnouncedBodiesTakeNoSharedMemory(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.build(config(), api.Options{MaxBodyBytes: 200_000})
	const idle = 100
	silence, quiet := io.Pipe()
	reading, answered := make(chan struct{}, idle), make(chan int, idle)
	for range idle {
		r := request(http.MethodPost, "/v1/sources/orders", "")
		r.Body, r.ContentLength = announcing{silence, reading}, 256<<10
		go func() { answered <- h.do(r).Code }()
	}
	for range idle {
		<-reading
	}
	require.Equal(t, http.StatusAccepted, h.post("/v1/sources/orders", strings.Repeat("x", 100_000)).Code)
	require.NoError(t, quiet.Close())
	for range idle {
		require.Equal(t, http.StatusBadRequest, <-answered)
	}
}

// announcing is a body that says when it is read.
type announcing struct {
	io.ReadCloser

	reading chan<- struct{}
}

func (a announcing) Read(p []byte) (int, error) {
	a.reading <- struct{}{}
	return a.ReadCloser.Read(p)
}
