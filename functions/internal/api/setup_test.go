package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"sluice/core"
	"sluice/functions/internal/api"
	"sluice/infra/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// now is the time in every test: 2026-03-01T12:00:00.500Z.
const now = core.Millis(1_772_366_400_500)

// house is the API over the real core on the memory store.
type house struct {
	t        testing.TB
	handler  http.Handler
	store    *memory.Store
	attempts api.LastAttempts
	cadence  core.Cadence
	replayed []core.ReplayRequest
	report   core.ReplayReport // of each replay
	sender   core.Sender       // of every destination; nil: there is none
	ready    error
	breaker  func(context.Context, string) (core.Breaker, error)

	mu       sync.Mutex
	refusals []string // by the API itself: source and number

	log bytes.Buffer
}

// config has one source, open to loopback, one buffer and one destination.
func config(change ...func(*core.Config)) *core.Config {
	c := core.NewConfig()
	c.Sources = []core.Source{core.NewSource("orders")}
	d := core.NewDestination("crm")
	d.Type, d.Path = core.TypeFile, "/dev/null"
	c.Destinations = []core.Destination{d}
	b := core.NewBuffer("crm-orders")
	b.From, b.To = []string{"orders"}, "crm"
	c.Buffers = []core.Buffer{b}
	for _, f := range change {
		f(c)
	}
	return c
}

// auth sets who may send to the source.
func auth(a core.Auth) func(*core.Config) {
	return func(c *core.Config) { c.Sources[0].Auth = &a }
}

// maxEventBytes bounds the source's events.
func maxEventBytes(n int64) func(*core.Config) {
	return func(c *core.Config) { c.Sources[0].MaxEventBytes = n }
}

// secrets are what the references in tests stand for.
var secrets = map[core.Secret]string{
	"env:ONE": "first-token", "env:TWO": "second-token", "env:CONTROL": "control-token",
	"env:SIGN": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "env:SIGN2": "C2FVsBQIhrscChlQIMV+b5sSYspob7oD",
	"env:EMPTY": " ", "env:BAD": "whsec_not base64",
}

func resolve(s core.Secret) (string, error) {
	if v, ok := secrets[s]; ok {
		return v, nil
	}
	return "", errors.New("it is not set")
}

func setup(t testing.TB, change ...func(*core.Config)) *house {
	t.Helper()
	h := &house{t: t, store: memory.New(), report: core.ReplayReport{Replayed: 3, Failed: 1, Left: 2}}
	h.build(config(change...), api.Options{})
	return h
}

// build makes the handler of a configuration over the real ingester; options
// that are not set get the tests' own.
func (h *house) build(c *core.Config, o api.Options) {
	h.t.Helper()
	catalog, err := core.NewCatalog(c, nil)
	require.NoError(h.t, err)
	var ids atomic.Int64
	h.handler = h.newHandler(catalog, o, core.NewIngester(catalog, core.Ports{
		Store: h.store, Timer: hints{}, Queue: hints{}, Clock: clock,
		IDs: core.IDsFunc(func() string { return fmt.Sprintf("ID%d", ids.Add(1)) }),
	}))
}

// over makes the handler of the plain configuration over another ingester.
func (h *house) over(in api.Ingester) {
	h.t.Helper()
	catalog, err := core.NewCatalog(config(), nil)
	require.NoError(h.t, err)
	h.handler = h.newHandler(catalog, api.Options{}, in)
}

func (h *house) newHandler(c *core.Catalog, o api.Options, in api.Ingester) http.Handler {
	h.t.Helper()
	o.Resolve, o.Clock = resolve, clock
	o.Log = slog.New(slog.NewTextHandler(&h.log, nil))
	handler, err := api.New(api.Backend{
		Catalog: c, Ingester: in, Replayer: h, Store: h.store, DeadLetters: h.store.DeadLetters(),
		Flusher: core.NewFlusher(c, core.Ports{
			Store: h.store, Timer: hints{}, Queue: hints{}, DeadLetters: h.store.DeadLetters(), Clock: clock, Rand: longest{},
			IDs:    core.IDsFunc(func() string { return "ID" }),
			Sender: func(string) core.Sender { return h.sender },
		}, &h.cadence),
		Attempts: &h.attempts, Breaker: h.breaker, Ready: func() error { return h.ready },
		Refused: func(source string, n int) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.refusals = append(h.refusals, fmt.Sprint(source, " ", n))
		},
	}, o)
	require.NoError(h.t, err)
	return handler
}

var clock = core.ClockFunc(func() core.Millis { return now })

// longest makes every wait as long as it may be.
type longest struct{}

func (longest) Int64N(n int64) int64 { return n - 1 }

// hints is a timer and a queue that lose everything.
type hints struct{}

func (hints) Arm(context.Context, core.Hint) error      { return nil }
func (hints) Hand(context.Context, core.Delivery) error { return nil }

// Replay notes what it is asked for.
func (h *house) Replay(_ context.Context, q core.ReplayRequest) (core.ReplayReport, error) {
	h.replayed = append(h.replayed, q)
	return h.report, nil
}

// request is a request from this machine. header is name, value, name, value, ...
func request(method, target, body string, header ...string) *http.Request {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.RemoteAddr, r.Host = "127.0.0.1:50000", "localhost:8080"
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	return r
}

func (h *house) do(r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.handler.ServeHTTP(w, r)
	return w
}

func (h *house) post(target, body string, header ...string) *httptest.ResponseRecorder {
	return h.do(request(http.MethodPost, target, body, header...))
}

func (h *house) get(target string, header ...string) *httptest.ResponseRecorder {
	return h.do(request(http.MethodGet, target, "", header...))
}

// stored are the events in a buffer's groups, in order.
func (h *house) stored() []core.Event {
	h.t.Helper()
	groups, err := h.store.Groups(h.t.Context(), "crm-orders", nil, 0)
	require.NoError(h.t, err)
	var events []core.Event
	for _, g := range groups {
		page, err := h.store.Items(h.t.Context(), g.Ref, nil, core.Span{From: 1, To: g.Tail})
		require.NoError(h.t, err)
		for i := range page.Items {
			events = append(events, page.Items[i].Event)
		}
	}
	return events
}

// refused asserts that an answer is a problem, and nothing was stored.
func (h *house) refused(w *httptest.ResponseRecorder, status int, detail string) {
	h.t.Helper()
	p := problem(h.t, w)
	require.Equal(h.t, status, p.Status, p.Detail)
	require.Contains(h.t, p.Detail, detail)
	require.Empty(h.t, h.stored())
}

// problem is a problem document, whose form it checks.
func problem(t testing.TB, w *httptest.ResponseRecorder) api.Problem {
	t.Helper()
	var p api.Problem
	require.Equal(t, "application/problem+json", w.Header().Get("Content-Type"), w.Body.String())
	decode(t, w, &p)
	require.Equal(t, w.Code, p.Status)
	require.True(t, strings.HasPrefix(p.Type, "urn:sluice:problem:"), p.Type)
	require.NotEmpty(t, p.Title)
	require.NotEmpty(t, p.Detail)
	return p
}

// decode reads an answer in which no field is unknown.
func decode(t testing.TB, w *httptest.ResponseRecorder, v any) {
	t.Helper()
	require.Equal(t, fmt.Sprint(w.Body.Len()), w.Header().Get("Content-Length"))
	dec := json.NewDecoder(w.Body)
	dec.DisallowUnknownFields()
	require.NoError(t, dec.Decode(v))
}

// accepted asserts that an answer is a 202 with ids.
func accepted(t testing.TB, w *httptest.ResponseRecorder, ids ...string) {
	t.Helper()
	require.Equal(t, http.StatusAccepted, w.Code, w.Body.String())
	require.Equal(t, "application/json", w.Header().Get("Content-Type"))
	var a api.Accepted
	decode(t, w, &a)
	require.Equal(t, api.Accepted{Accepted: len(ids), IDs: ids}, a)
}
