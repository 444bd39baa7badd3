package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/functions/internal/api"
	"sluice/functions/internal/report"
	"sluice/infra/memory"
)

// taker is a destination that answers with a status, and notes the groups.
type taker struct {
	status int

	mu     sync.Mutex
	groups []string
}

func (s *taker) Send(_ context.Context, b *core.Batch) core.Response {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.groups = append(s.groups, b.Group)
	return core.Response{Status: s.status}
}

// two adds a second buffer in front of the first.
func two(c *core.Config) {
	b := core.NewBuffer("zebra")
	b.From, b.To = []string{"orders"}, "crm"
	c.Buffers = append([]core.Buffer{b}, c.Buffers...)
}

// seldom makes the buffers leave by flushes alone.
func seldom(c *core.Config) {
	for i := range c.Buffers {
		c.Buffers[i].FlushEvery = 5 * time.Minute
	}
}

func skipped(reason core.SkipReason, ms int64) report.Buffer {
	return report.Buffer{Skipped: true, Reason: string(reason), NextEligibleInMs: ms}
}

func both(ok bool, zebra, orders report.Buffer, unmatched ...string) report.House {
	zebra.Name, orders.Name = "zebra", "crm-orders"
	return report.House{OK: ok, Buffers: report.Buffers{zebra, orders}, Unmatched: append([]string{}, unmatched...)}
}

func TestFlush(t *testing.T) {
	t.Parallel()
	type step struct {
		body string
		want report.House
	}
	other := skipped(core.SkippedNotSelected, 0)
	for _, tc := range []struct {
		name   string
		config func(*core.Config)
		status int
		steps  []step
	}{
		{"an empty body", two, 200, []step{{"", both(true, report.Buffer{Rows: 1}, report.Buffer{Rows: 3})}}},
		{"an empty object", two, 200, []step{{" {} \n", both(true, report.Buffer{Rows: 1}, report.Buffer{Rows: 3})}}},
		{"one buffer", two, 200, []step{
			{`{"only":["zebra"]}`, both(true, report.Buffer{Rows: 1}, other)},
			{`{"only":["crm-orders"],"strict":true}`, both(true, other, report.Buffer{Rows: 3})},
		}},
		{"one group", two, 200, []step{{`{"groups":["b"]}`, both(true, report.Buffer{}, report.Buffer{Rows: 2})}}},
		{"names that there are not", two, 200, []step{
			{`{"only":["x","zebra","","x"],"strict":false}`, both(true, report.Buffer{Rows: 1}, other, "x", "")},
		}},
		{"a destination that fails", two, 500, []step{{`{}`, both(false,
			report.Buffer{Rows: 1, Error: `group "z": status 500`},
			report.Buffer{Rows: 3, Error: "2 batches failed; the first, of group \"a\": status 500"},
		)}}},
		{"too early", func(c *core.Config) { two(c); seldom(c) }, 200, []step{
			{"", both(true, report.Buffer{Rows: 1}, report.Buffer{Rows: 3})},
			{"", both(true, skipped(core.SkippedCadence, 270_000), skipped(core.SkippedCadence, 270_000))},
			{`{"force":true}`, both(true, report.Buffer{}, report.Buffer{})},
			{`{"final":true}`, both(true, report.Buffer{}, report.Buffer{})},
			{`{"force":false,"final":false}`, both(true, skipped(core.SkippedCadence, 270_000), skipped(core.SkippedCadence, 270_000))},
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			h := setup(t, tc.config)
			h.sender = &taker{status: tc.status}
			h.put("zebra", "z", 1, time.Second)
			h.put("crm-orders", "a", 1, time.Second)
			h.put("crm-orders", "b", 2, time.Second)
			for _, s := range tc.steps {
				w := h.post("/v1/flush", s.body)
				require.Equal(t, http.StatusOK, w.Code, w.Body.String())
				require.Equal(t, "application/json", w.Header().Get("Content-Type"))
				var got report.House
				decode(t, w, &got)
				sorted(&got)
				require.Empty(t, cmp.Diff(s.want, got))
			}
		})
	}
}

// sorted makes it not matter which of two groups failed first.
func sorted(r *report.House) {
	for i := range r.Buffers {
		r.Buffers[i].Error = strings.Replace(r.Buffers[i].Error, `the first, of group "b"`, `the first, of group "a"`, 1)
	}
}

func TestFlushOneBuffer(t *testing.T) {
	t.Parallel()
	h := setup(t, two, seldom)
	sender := &taker{status: 200}
	h.sender = sender
	h.put("zebra", "z", 1, time.Second)
	h.put("crm-orders", "a", 1, time.Second)
	h.put("crm-orders", "b", 2, time.Second)
	flush := func(body string) string {
		w := h.post("/v1/buffers/crm-orders/flush", body)
		require.Equal(t, http.StatusOK, w.Code, w.Body.String())
		return w.Body.String()
	}
	require.JSONEq(t, `{"buckets":0,"rows":2,"skipped":false}`, flush(`{"groups":["b"]}`))
	require.JSONEq(t, `{"buckets":0,"rows":0,"skipped":true,"reason":"cadence","nextEligibleInMs":270000}`, flush(""))
	require.JSONEq(t, `{"buckets":0,"rows":1,"skipped":false}`, flush(`{"force":true,"final":true}`))
	require.Equal(t, []string{"b", "a"}, sender.groups)

	p := problem(t, h.post("/v1/buffers/other/flush", ""))
	require.Equal(t, http.StatusNotFound, p.Status)
	require.Equal(t, "there is no buffer of this name", p.Detail)
}

func TestFlushBodies(t *testing.T) {
	t.Parallel()
	const all, one = "/v1/flush", "/v1/buffers/crm-orders/flush"
	for _, tc := range []struct {
		name, target, body string
		status             int
		detail             string
	}{
		{"a misspelled field", all, `{"forced":true}`, 400, `forced is not known; send nothing, or {"force": true,`},
		{"a field in other letters", all, `{"Force":true}`, 400, `Force is not known; send nothing, or`},
		{"a field that is no word", all, `{"a\u0000b":1}`, 400, `"a\x00b" is not known`},
		{"a text for true", all, `{"force":"true"}`, 400, "force must be true or false"},
		{"a number for true", all, `{"final":1}`, 400, "final must be true or false"},
		{"null for true", all, `{"strict":null}`, 400, "strict must be true or false"},
		{"a text for a list", all, `{"only":"zebra"}`, 400, `only must be a list of texts, such as ["a", "b"]; leave it out to flush all buffers`},
		{"null for a list", all, `{"only":null}`, 400, "only must be a list of texts"},
		{"an empty list", all, `{"only":[]}`, 400, "only is empty; leave it out to flush all buffers"},
		{"numbers in a list", all, `{"groups":[7]}`, 400, "groups must be a list of texts"},
		{"null in a list", all, `{"groups":["7",null]}`, 400, "groups must be a list of texts"},
		{"no groups", all, `{"groups":[]}`, 400, "groups is empty; leave it out to flush all groups"},
		{"a field twice", all, `{"force":true,"final":true,"force":false}`, 400, "force is given twice"},
		{"a list twice", all, `{"only":["a"],"only":["b"]}`, 400, "only is given twice"},
		{"null", all, `null`, 400, "the body is not a flush; send nothing, or"},
		{"a list for all", all, `[]`, 400, "the body is not a flush"},
		{"a number for all", all, `1`, 400, "the body is not a flush"},
		{"half of it", all, `{"force":true`, 400, "the body is not a flush"},
		{"half of a value", all, `{"force":tr`, 400, "the body is not a flush"},
		{"no value", all, `{"force"}`, 400, "the body is not a flush"},
		{"a comma behind", all, `{"force":true,}`, 400, "the body is not a flush"},
		{"two of them", all, `{}{}`, 400, "something follows the flush"},
		{"nonsense behind", all, `{} x`, 400, "something follows the flush"},
		{"too long", all, `{"groups":["` + strings.Repeat("x", 1<<20) + `"]}`, 413, "the body has more than 1048576 bytes, the most that a flush takes"},
		{"parameters", all + "?force=true", "", 400, "a flush has no parameters; its options are in the body: send nothing, or"},
		{"an unknown name, strictly", all, `{"only":["crm-orders","x","y","x"],"strict":true}`, 400, `"x", "y"`},
		{"the known names", all, `{"only":["x"],"strict":true}`, 400, "there are crm-orders"},
		{"only, for one", one, `{"only":["crm-orders"]}`, 400, "only is for POST /v1/flush; here the path names the buffer"},
		{"strict, for one", one, `{"strict":true}`, 400, "strict is for POST /v1/flush"},
		{"a misspelled field, for one", one, `{"group":["a"]}`, 400, `group is not known; send nothing, or {"force": true, "final": true, "groups": ["..."]}`},
		{"parameters, for one", one + "?x", "", 400, "a flush has no parameters"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			h := setup(t)
			sender := &taker{status: 200}
			h.sender = sender
			h.put("crm-orders", "a", 1, time.Second)
			p := problem(t, h.post(tc.target, tc.body))
			require.Equal(t, tc.status, p.Status, p.Detail)
			require.Contains(t, p.Detail, tc.detail)
			require.Empty(t, sender.groups, "nothing is flushed")
		})
	}
}

// TestFlushWhereNoneIs answers as for what is not there.
func TestFlushWhereNoneIs(t *testing.T) {
	t.Parallel()
	h := setup(t)
	catalog, err := core.NewCatalog(config(), nil)
	require.NoError(t, err)
	handler, err := api.New(api.Backend{Catalog: catalog, Store: h.store}, api.Options{Clock: clock, Resolve: resolve})
	require.NoError(t, err)
	for _, target := range []string{"/v1/flush", "/v1/buffers/crm-orders/flush"} {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, request(http.MethodPost, target, ""))
		require.Equal(t, http.StatusNotFound, problem(t, w).Status)
	}
}

// TestFlushFaults shows that a fault of ours is in the log, and not in the report.
func TestFlushFaults(t *testing.T) {
	t.Parallel()
	catalog, err := core.NewCatalog(config(), nil)
	require.NoError(t, err)
	var log bytes.Buffer
	store := broken{memory.New()}
	handler, err := api.New(api.Backend{
		Catalog: catalog, Store: store, Flusher: core.NewFlusher(catalog, core.Ports{Store: store, Clock: clock}, new(core.Cadence)),
	}, api.Options{Clock: clock, Resolve: resolve, Log: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, err)
	for _, target := range []string{"/v1/flush", "/v1/buffers/crm-orders/flush"} {
		log.Reset()
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, request(http.MethodPost, target, ""))
		require.Equal(t, http.StatusOK, w.Code)
		require.Contains(t, w.Body.String(), `"error":"something went wrong on our side; nothing that was accepted is lost"`)
		require.Contains(t, log.String(), `msg="flush failed" buffer=crm-orders err="disk of rack 7"`)
	}
}

// broken is a store whose faults are our own.
type broken struct{ *memory.Store }

func (broken) Due(context.Context, core.Millis) iter.Seq2[core.Hint, error] {
	return func(yield func(core.Hint, error) bool) { yield(core.Hint{}, errors.New("disk of rack 7")) }
}

// slow is a destination whose sends take until they are let go, or cut off.
type slow struct {
	begun chan string
	let   chan struct{}
}

func (s *slow) Send(ctx context.Context, b *core.Batch) core.Response {
	s.begun <- b.Group
	select {
	case <-s.let:
		return core.Response{Status: 200}
	case <-ctx.Done():
		return core.Response{Err: ctx.Err()}
	}
}

// served is a flush of two groups, one after the other, at a slow destination.
type served struct {
	*house

	slow   *slow
	answer chan *httptest.ResponseRecorder
}

func (h *house) flushing(ctx context.Context, o api.Options) *served {
	h.t.Helper()
	s := &served{h, &slow{make(chan string, 2), make(chan struct{})}, make(chan *httptest.ResponseRecorder, 1)}
	h.sender = s.slow
	h.put("crm-orders", "a", 1, time.Second)
	h.put("crm-orders", "b", 1, time.Second)
	h.build(config(func(c *core.Config) { c.Destinations[0].Concurrency = 1 }), o)
	go func() { s.answer <- h.do(request(http.MethodPost, "/v1/flush", "").WithContext(ctx)) }()
	<-s.slow.begun
	return s
}

func (s *served) report() report.Buffer {
	s.t.Helper()
	var r report.House
	require.NoError(s.t, json.Unmarshal((<-s.answer).Body.Bytes(), &r))
	require.Len(s.t, r.Buffers, 1)
	return r.Buffers[0]
}

// TestFlushEnds shows what ends a flush, and that what is under way then is
// not cut off before it must be.
func TestFlushEnds(t *testing.T) {
	t.Parallel()
	const cut = "the time was over before all was shipped; flush again"
	t.Run("the caller goes away", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, leave := context.WithCancel(t.Context())
			s := setup(t).flushing(ctx, api.Options{})
			leave()
			synctest.Wait()
			close(s.slow.let)
			require.Equal(t, report.Buffer{Name: "crm-orders", Rows: 1, Error: cut, Written: &report.Written{Rows: 1}}, s.report())
		})
	})
	t.Run("the process stops", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			working, stop := context.WithCancel(t.Context())
			s := setup(t).flushing(t.Context(), api.Options{Working: working})
			stop()
			synctest.Wait()
			close(s.slow.let)
			require.Equal(t, report.Buffer{Name: "crm-orders", Rows: 1, Error: cut, Written: &report.Written{Rows: 1}}, s.report())
		})
	})
	t.Run("the grace is over", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			grace, end := context.WithCancel(t.Context())
			s := setup(t).flushing(t.Context(), api.Options{Grace: grace})
			end()
			r := s.report()
			require.NotEmpty(t, r.Error)
			require.Nil(t, r.Written)
		})
	})
	t.Run("its own deadline", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, end := context.WithDeadline(t.Context(), time.UnixMilli(int64(now)).Add(time.Hour))
			defer end()
			s := setup(t).flushing(ctx, api.Options{})
			r := s.report() // the bubble's clock reaches the deadline
			require.NotEmpty(t, r.Error)
			require.Nil(t, r.Written)
		})
	})
}

// TestFlushOutlivesTheServersTimeouts flushes for longer than the server gives
// other calls, and uses the connection again.
func TestFlushOutlivesTheServersTimeouts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := setup(t)
		h.sender = patience(time.Hour)
		h.build(config(func(c *core.Config) { c.Destinations[0].Concurrency = 1 }), api.Options{})
		l := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
		server := &http.Server{Handler: local(h.handler), ReadTimeout: time.Second, WriteTimeout: time.Second}
		go func() { _ = server.Serve(l) }()
		client := &http.Client{Transport: &http.Transport{DialContext: l.dial}}
		for range 2 {
			h.put("crm-orders", "a", 1, time.Second)
			h.put("crm-orders", "b", 1, time.Second)
			resp, err := client.Post("http://localhost/v1/flush", "application/json", strings.NewReader("{}"))
			require.NoError(t, err)
			var r report.House
			require.NoError(t, json.NewDecoder(resp.Body).Decode(&r))
			require.NoError(t, resp.Body.Close())
			require.Empty(t, cmp.Diff(report.Buffers{{Name: "crm-orders", Rows: 2}}, r.Buffers))
		}
		require.Equal(t, 1, l.dialed)
		client.CloseIdleConnections()
		require.NoError(t, server.Close())
	})
}

// patience is a destination that takes its time.
type patience time.Duration

func (p patience) Send(ctx context.Context, _ *core.Batch) core.Response {
	select {
	case <-time.After(time.Duration(p)):
		return core.Response{Status: 200}
	case <-ctx.Done():
		return core.Response{Err: ctx.Err()}
	}
}

// local makes callers come from this machine: a pipe has no address.
func local(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.RemoteAddr = "127.0.0.1:50000"
		h.ServeHTTP(w, r)
	})
}

// pipes is a listener within the process.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
	dialed int
}

func (l *pipes) dial(context.Context, string, string) (net.Conn, error) {
	l.dialed++
	near, far := net.Pipe()
	l.conns <- far
	return near, nil
}

func (l *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipes) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (*pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "pipe"} }
