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
	h.build(config(), api.Options{MaxBodyBytes: 10_000})
	body := strings.Repeat("x", 6_000)

	slow, feed := io.Pipe()
	first := request(http.MethodPost, "/v1/sources/orders", "")
	first.Body, first.ContentLength = slow, int64(len(body))
	answered := make(chan int)
	go func() { answered <- h.do(first).Code }()
	_, err := io.WriteString(feed, body[:1])
	require.NoError(t, err)

	w := h.post("/v1/sources/orders", body)
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.Equal(t, "1", w.Header().Get("Retry-After"))
	require.Contains(t, problem(t, w).Detail, "too many large requests are under way")
	require.Equal(t, http.StatusAccepted, h.post("/v1/sources/orders", body[:4_000]).Code)

	_, err = io.WriteString(feed, body[1:])
	require.NoError(t, err)
	require.Equal(t, http.StatusAccepted, <-answered)
	require.Equal(t, http.StatusAccepted, h.post("/v1/sources/orders", body).Code)
}
