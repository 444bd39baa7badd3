package api_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/functions/internal/api"
)

var update = flag.Bool("update", false, "write the golden files anew")

// failing is an ingester that answers with an error, or panics with a value.
type failing struct {
	err   error
	panic any
}

func (f failing) Ingest(context.Context, string, []core.Event, ...func() bool) (core.Receipt, error) {
	if f.panic != nil {
		panic(f.panic)
	}
	return core.Receipt{}, f.err
}

// fail makes the house's ingester fail.
func (h *house) fail(f failing) {
	h.t.Helper()
	h.over(f)
}

// TestProblems holds a document of every kind, with the headers that belong
// to it, against its golden file.
func TestProblems(t *testing.T) {
	t.Parallel()
	cause := errors.New("open /var/lib/secret: permission denied")
	ingest := func(err error) func(h *house) *httptest.ResponseRecorder {
		return func(h *house) *httptest.ResponseRecorder {
			h.fail(failing{err: err})
			return h.post(sourcePath, "x")
		}
	}
	tests := map[string]func(h *house) *httptest.ResponseRecorder{
		"invalid": func(h *house) *httptest.ResponseRecorder {
			return h.post(sourcePath, `{"a":}`, "Content-Type", "application/json")
		},
		"unauthorized": func(h *house) *httptest.ResponseRecorder {
			h.build(config(auth(core.Auth{Bearer: []core.Secret{"env:ONE"}})), api.Options{})
			return h.post(sourcePath, "x")
		},
		"forbidden": func(h *house) *httptest.ResponseRecorder {
			return h.do(from(request(http.MethodPost, sourcePath, "x"), elsewhere, public))
		},
		"not_found":          func(h *house) *httptest.ResponseRecorder { return h.post("/v1/sources/other", "x") },
		"method_not_allowed": func(h *house) *httptest.ResponseRecorder { return h.get(sourcePath) },
		"too_large": func(h *house) *httptest.ResponseRecorder {
			h.build(config(maxEventBytes(1)), api.Options{})
			return h.post(sourcePath, "xy")
		},
		"unsupported": func(h *house) *httptest.ResponseRecorder {
			return h.post(sourcePath, "x", "Content-Encoding", "br")
		},
		"headers_too_large": func(h *house) *httptest.ResponseRecorder {
			return h.post(sourcePath, "x", "X-A", string(bytes.Repeat([]byte{'x'}, 9000)))
		},
		"conflict": ingest(core.Wrap(core.Conflict, cause, "another was faster")),
		"full": ingest(&core.Error{Code: core.Full, Detail: "the buffer is <full>", RetryAfter: 1200 * time.Millisecond,
			Err: cause}),
		"unavailable": ingest(core.Wrap(core.Unavailable, cause, "the store can't be written now")),
		"canceled":    ingest(core.Wrap(core.Canceled, cause, "the process stops")),
		"internal":    ingest(core.Wrap(core.Internal, cause, "append of 0 items")),
		"unknown":     ingest(cause),
		"code":        ingest(&core.Error{Code: 200, Detail: "a code that there is not"}),
	}
	for name, call := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := setup(t)
			w := call(h)
			problem(t, httptestCopy(w))
			require.NotContains(t, w.Body.String(), "secret")
			golden(t, name, w)
		})
	}
}

// httptestCopy is an answer that can be read while the other is kept.
func httptestCopy(w *httptest.ResponseRecorder) *httptest.ResponseRecorder {
	c := *w
	c.Body = bytes.NewBuffer(bytes.Clone(w.Body.Bytes()))
	return &c
}

func golden(t *testing.T, name string, w *httptest.ResponseRecorder) {
	t.Helper()
	var got bytes.Buffer
	fmt.Fprintf(&got, "HTTP/1.1 %d %s\n", w.Code, http.StatusText(w.Code))
	var names []string
	for name := range w.Header() {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(&got, "%s: %s\n", name, w.Header().Get(name))
	}
	fmt.Fprintf(&got, "\n%s", w.Body)
	file := filepath.Join("testdata", "problems", name+".http")
	if *update {
		require.NoError(t, os.WriteFile(file, got.Bytes(), 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), got.String())
}

// TestFaultsAreLogged shows that what a client is not told is in the log, and
// that an overload, which is no fault, writes nothing.
func TestFaultsAreLogged(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.fail(failing{err: errors.New("bad luck")})
	h.post(sourcePath, "x")
	require.Contains(t, h.log.String(), "bad luck")
	h.log.Reset()
	h.fail(failing{err: core.Errorf(core.Full, "full")})
	h.post(sourcePath, "x")
	h.post("/v1/sources/other", "x")
	require.Empty(t, h.log.String())
}

func TestPanic(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.fail(failing{panic: "secret state"})
	w := h.post(sourcePath, "x")
	require.NotContains(t, w.Body.String(), "secret")
	require.Equal(t, "urn:sluice:problem:internal", problem(t, w).Type)
	require.Contains(t, h.log.String(), "secret state")
	require.Contains(t, h.log.String(), "problem_test.go", "the log has the stack")

	h.fail(failing{panic: http.ErrAbortHandler})
	require.PanicsWithValue(t, http.ErrAbortHandler, func() { h.post(sourcePath, "x") })
}
