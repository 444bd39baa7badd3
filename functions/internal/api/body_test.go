package api_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/functions/internal/api"
)

func zip(t testing.TB, parts ...string) string {
	t.Helper()
	var b bytes.Buffer
	for _, p := range parts { // each is a member of its own
		w := gzip.NewWriter(&b)
		_, err := io.WriteString(w, p)
		require.NoError(t, err)
		require.NoError(t, w.Close())
	}
	return b.String()
}

// counted counts what is read of it.
type counted struct {
	io.Reader

	n int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += int64(n)
	return n, err
}

func (c *counted) Close() error { return nil }

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func TestBodyLimit(t *testing.T) {
	t.Parallel()
	const limit = 10_000
	fits, over := strings.Repeat("x", limit), strings.Repeat("x", limit+1)
	const detail = "the body has more than 10000 bytes, the most that source orders takes for an event (maxEventBytes)"
	tests := []struct {
		name   string
		body   string
		length int64 // announced; -1: none is
		header []string
		status int
		detail string
		read   int64 // at most
	}{
		{"fits", fits, limit, nil, 202, "", limit},
		{"fits, of unknown length", fits, -1, nil, 202, "", limit},
		{"too large", over, limit + 1, nil, 413, detail, 0},
		{"too large, of unknown length", over + over, -1, nil, 413, detail, limit + 1},
		{"fits when inflated", zip(t, fits), -1, []string{"Content-Encoding", "gzip"}, 202, "", limit},
		{"too large when inflated", zip(t, over), -1, []string{"Content-Encoding", "gzip"}, 413, detail, limit},
		{"too large to inflate", over, limit + 1<<20, []string{"Content-Encoding", "gzip"}, 413, detail, 0},
		{"shorter than announced", "xxx", 4, nil, 400, "the body could not be read to its end", 3},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := setup(t, maxEventBytes(limit))
			body := &counted{Reader: strings.NewReader(tt.body)}
			r := request(http.MethodPost, sourcePath, "", tt.header...)
			r.Body, r.ContentLength = body, tt.length
			w := h.do(r)
			require.LessOrEqual(t, body.n, tt.read)
			if tt.status != http.StatusAccepted {
				h.refused(w, tt.status, tt.detail)
				return
			}
			accepted(t, w, "ID1")
			require.Equal(t, fits, string(h.stored()[0].Body))
		})
	}
}

// TestBomb posts what inflates for ever, and what never does.
func TestBomb(t *testing.T) {
	t.Parallel()
	bomb := func(w *io.PipeWriter) {
		zw := gzip.NewWriter(w)
		_, err := io.Copy(zw, zeros{})
		w.CloseWithError(err)
	}
	empties := func(w *io.PipeWriter) {
		member := []byte(zip(t, ""))
		for {
			if _, err := w.Write(member); err != nil {
				return
			}
		}
	}
	for name, write := range map[string]func(*io.PipeWriter){"a bomb": bomb, "empty members": empties} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := setup(t)
			pr, pw := io.Pipe()
			done := make(chan struct{})
			go func() { defer close(done); write(pw) }()
			body := &counted{Reader: pr}
			r := request(http.MethodPost, sourcePath, "", "Content-Encoding", "gzip")
			r.Body, r.ContentLength = body, -1
			w := h.do(r)
			require.NoError(t, pr.Close())
			<-done
			h.refused(w, http.StatusRequestEntityTooLarge, "more than 262144 bytes")
			require.Less(t, body.n, int64(512<<10))
		})
	}
}

func TestEncodings(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		encoding []string
		body     string
		status   int
	}{
		{"none", nil, "hello", 202},
		{"identity", []string{"identity"}, "hello", 202},
		{"gzip", []string{"gzip"}, zip(t, "hello"), 202},
		{"in capitals", []string{"GZIP"}, zip(t, "hello"), 202},
		{"by its old name", []string{"x-gzip"}, zip(t, "hello"), 202},
		{"gzip in two members", []string{"gzip"}, zip(t, "hel", "lo"), 202},
		{"not gzip at all", []string{"gzip"}, "hello", 400},
		{"nothing", []string{"gzip"}, "", 400},
		{"cut off", []string{"gzip"}, zip(t, "hello")[:20], 400},
		{"a wrong checksum", []string{"gzip"}, strings.Replace(zip(t, "hello"), "\x86\xa6\x10\x36", "\x86\xa6\x10\x37", 1), 400},
		{"something behind it", []string{"gzip"}, zip(t, "hello") + "x", 400},
		{"twice", []string{"gzip, gzip"}, zip(t, zip(t, "hello")), 415},
		{"twice in two lines", []string{"gzip", "gzip"}, zip(t, zip(t, "hello")), 415},
		{"another", []string{"br"}, "hello", 415},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := setup(t)
			r := request(http.MethodPost, sourcePath, tt.body)
			if tt.encoding != nil {
				r.Header["Content-Encoding"] = tt.encoding
			}
			for range 2 { // the second one may get the first one's inflater
				r.Body = io.NopCloser(strings.NewReader(tt.body))
				w := h.do(r)
				if tt.status != http.StatusAccepted {
					h.refused(w, tt.status, "")
					if tt.status == http.StatusUnsupportedMediaType {
						require.Equal(t, "gzip", w.Header().Get("Accept-Encoding"))
					}
				} else {
					require.Equal(t, tt.status, w.Code)
				}
			}
			for _, e := range h.stored() {
				require.Equal(t, "hello", string(e.Body))
			}
		})
	}
}

// TestLargeBody reads bodies beyond what is reserved for them at once.
func TestLargeBody(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("0123456789abcdef", 3<<16+1)
	for _, length := range []int64{int64(len(text)), -1} {
		h := setup(t, maxEventBytes(10*core.MiB), func(c *core.Config) { c.Buffers[0].Overflow.MaxBytes = 10 * core.MiB })
		r := request(http.MethodPost, sourcePath, text)
		r.ContentLength = length
		r.Body = io.NopCloser(iotest.HalfReader(strings.NewReader(text)))
		accepted(t, h.do(r), "ID1")
		require.Equal(t, text, string(h.stored()[0].Body))
	}
}

func TestBodyThatFails(t *testing.T) {
	t.Parallel()
	for _, zipped := range []string{"identity", "gzip"} {
		h := setup(t)
		r := request(http.MethodPost, sourcePath, "", "Content-Encoding", zipped)
		r.Body, r.ContentLength = io.NopCloser(iotest.ErrReader(errors.New("secret reason"))), 5
		w := h.do(r)
		require.NotContains(t, w.Body.String(), "secret reason")
		h.refused(w, http.StatusBadRequest, "the body")
	}
}

// TestBodyOfAClientsRequest reads a body whose length net/http's own requests
// leave at 0, and one that is not there at all.
func TestBodyOfAClientsRequest(t *testing.T) {
	t.Parallel()
	h := setup(t)
	r := request(http.MethodPost, sourcePath, "")
	r.Body, r.ContentLength = io.NopCloser(strings.NewReader("hello")), 0
	accepted(t, h.do(r), "ID1")
	require.Equal(t, "hello", string(h.stored()[0].Body))
	r = request(http.MethodPost, sourcePath, "")
	r.Body, r.ContentLength = nil, 0
	accepted(t, h.do(r), "ID3")
}

func TestBatchBodyLimit(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.build(config(), api.Options{MaxBatchBytes: 100})
	line := `"` + strings.Repeat("x", 97) + `"` + "\n"
	accepted(t, h.post(sourcePath+"/batch", line, "Content-Type", ndjson), "ID1")
	h = setup(t)
	h.build(config(), api.Options{MaxBatchBytes: 100})
	h.refused(h.post(sourcePath+"/batch", line+"\n", "Content-Type", ndjson), http.StatusRequestEntityTooLarge,
		"the body has more than 100 bytes, the most in one request; send fewer events at a time")
}
