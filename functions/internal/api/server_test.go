package api_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

// serve puts the house behind net/http's server, and closes it at the end.
func (h *house) serve(t *testing.T) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h.handler)
	t.Cleanup(s.Close)
	return s
}

// TestServer posts over a real connection, with and without a length.
func TestServer(t *testing.T) {
	t.Parallel()
	h := setup(t)
	s := h.serve(t)
	for _, body := range []io.Reader{strings.NewReader("hello"), io.MultiReader(strings.NewReader("hel"), strings.NewReader("lo"))} {
		resp, err := s.Client().Post(s.URL+sourcePath, "text/plain", body)
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, http.StatusAccepted, resp.StatusCode)
	}
	for _, e := range h.stored() {
		require.Equal(t, "hello", string(e.Body))
		require.Empty(t, e.Headers, "what a client adds by itself is not the event's")
	}
	require.Len(t, h.stored(), 2)
}

// TestRefusedBeforeSent shows that a client which asks first is told before
// it sends a body that would be refused.
func TestRefusedBeforeSent(t *testing.T) {
	t.Parallel()
	h := setup(t, maxEventBytes(10))
	s := h.serve(t)
	c, err := net.Dial("tcp", s.Listener.Addr().String())
	require.NoError(t, err)
	defer c.Close()
	_, err = io.WriteString(c, "POST "+sourcePath+" HTTP/1.1\r\nHost: localhost\r\nContent-Length: 11\r\nExpect: 100-continue\r\n\r\n")
	require.NoError(t, err)
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusRequestEntityTooLarge, resp.StatusCode)
}

// leaving tells when the handler has seen that its client left.
type leaving struct {
	started chan struct{}
	left    chan error
}

func (l leaving) Ingest(ctx context.Context, _ string, _ []core.Event, _ ...func() bool) (core.Receipt, error) {
	close(l.started)
	<-ctx.Done()
	l.left <- ctx.Err()
	return core.Receipt{}, core.Wrap(core.Canceled, ctx.Err(), "the caller went away")
}

// TestClientLeaves shows that a client that goes away, while it sends or while
// it waits, leaves nothing behind.
func TestClientLeaves(t *testing.T) {
	t.Parallel()
	h := setup(t)
	l := leaving{started: make(chan struct{}), left: make(chan error, 1)}
	h.over(l)
	s := h.serve(t)
	dial := func(request string) net.Conn {
		c, err := net.Dial("tcp", s.Listener.Addr().String())
		require.NoError(t, err)
		_, err = io.WriteString(c, request)
		require.NoError(t, err)
		return c
	}
	half := dial("POST " + sourcePath + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nhello")
	require.NoError(t, half.Close())

	whole := dial("POST " + sourcePath + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello")
	<-l.started
	require.NoError(t, whole.Close())
	require.ErrorIs(t, <-l.left, context.Canceled)
	require.Empty(t, h.stored())
	require.Empty(t, h.log.String())
}
