package api_test

import (
	"context"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"weak"

	"github.com/stretchr/testify/require"

	"sluice/core"
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

// waiting is an ingester whose callers wait: each says whether it may, and which
// bodies it holds is up to the garbage collector.
type waiting struct {
	t    *testing.T
	may  chan bool
	done chan struct{}
}

func (w waiting) Ingest(_ context.Context, _ string, events []core.Event, mayWait ...func() bool) (core.Receipt, error) {
	r := core.Receipt{Accepted: len(events), IDs: make([]string, len(events)), Status: core.StatusPending}
	body := weak.Make(&events[0].Body[0])
	events = nil //nolint:ineffassign,wastedassign // it is stored
	may := true
	for _, f := range mayWait {
		may = f() && may
	}
	if may {
		runtime.GC()
		if body.Value() != nil {
			w.t.Error("the body is still held")
		}
	}
	w.may <- may
	if may {
		<-w.done
		r.Status = core.StatusDelivered
	}
	return r, nil
}

// Callers who wait for what becomes of their events hold no memory that others
// need, and are bounded in number.
func TestWhoWaitsKeepsNobodyOut(t *testing.T) {
	t.Parallel()
	const seats = 5
	h := setup(t)
	w := waiting{t, make(chan bool, 2*seats), make(chan struct{})}
	catalog, err := core.NewCatalog(config(func(c *core.Config) { c.Sources[0].AckDelivered = true }), nil)
	require.NoError(t, err)
	h.handler = h.newHandler(catalog, api.Options{MaxBodyBytes: 100_000, MaxWaiting: seats}, w)
	body := `["` + strings.Repeat("x", 60_000) + `"]`
	answered := make(chan int, 2*seats)
	for i := range 2 * seats {
		path := sourcePath + strings.Repeat("/batch", i%2)
		go func() { answered <- h.post(path, body, "Content-Type", "application/json").Code }()
		require.Equal(t, i < seats, <-w.may, "%d wait already", i)
	}
	for range seats {
		require.Equal(t, http.StatusAccepted, <-answered)
	}
	close(w.done)
	for range seats {
		require.Equal(t, http.StatusOK, <-answered)
	}
	go h.post(sourcePath, body)
	require.True(t, <-w.may, "all seats are free again")
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
