package bench

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// written is an event of 200 bytes as it is sent.
func written(key, id uint64, sent time.Time) string {
	b := newEvent(200, rand.New(rand.NewPCG(1, id)))
	event{key: key, id: id, sent: sent.UnixNano()}.write(b)
	return string(b)
}

func TestEvent(t *testing.T) {
	t.Parallel()
	sent := time.Unix(1_767_225_600, 123_456_789)
	line := written(42, 1234, sent)
	require.Len(t, line, 200)
	require.True(t, strings.HasPrefix(line,
		`{"key":"k00000042","id":"000000001234","sent":"1767225600123456789","pad":"`), line)
	e, ok := readEvent([]byte(line))
	require.True(t, ok)
	require.Equal(t, event{key: 42, id: 1234, sent: sent.UnixNano()}, e)
	for _, bad := range []string{"", line[:199], line[1:], strings.Replace(line, "1234", "12x4", 1), `{"key":"k` + `"}`} {
		_, ok := readEvent([]byte(bad))
		require.False(t, ok, bad)
	}
}

func FuzzReadEvent(f *testing.F) {
	f.Add([]byte(written(1, 2, time.Unix(3, 4))))
	f.Fuzz(func(t *testing.T, b []byte) {
		e, ok := readEvent(b)
		if !ok || e.sent < 0 {
			t.Skip()
		}
		again := bytes.Clone(b)
		e.write(again)
		require.Equal(t, b, again)
	})
}

func TestSinkCounts(t *testing.T) {
	t.Parallel()
	start := time.Unix(1_767_225_600, 0)
	type delivery struct {
		id, reason string
		lines      []string
	}
	a1, a2, a3 := written(1, 1, start), written(1, 2, start), written(1, 3, start)
	b4 := written(2, 4, start)
	tests := []struct {
		name string
		in   []delivery
		want Counts
	}{
		{"as it should be", []delivery{{"x", "idle", []string{a1, a2}}, {"y", "idle", []string{b4}}, {"z", "wait", []string{a3}}},
			Counts{Batches: 3, Delivered: 4}},
		{"doubled under its id", []delivery{{"x", "idle", []string{a1, a2}}, {"x", "idle", []string{a1, a2}}},
			Counts{Batches: 2, Delivered: 2, Doubled: 2}},
		{"doubled under another id", []delivery{{"x", "idle", []string{a1}}, {"y", "idle", []string{a1}}},
			Counts{Batches: 2, Delivered: 1, Doubled: 1, Strayed: 1}},
		{"doubled within a batch", []delivery{{"x", "idle", []string{a1, a1}}},
			Counts{Batches: 1, Delivered: 1, Doubled: 1}},
		{"mixed", []delivery{{"x", "items", []string{a1, b4, a2}}}, Counts{Batches: 1, Delivered: 3, Mixed: 1}},
		{"reordered within a batch", []delivery{{"x", "items", []string{a2, a1}}}, Counts{Batches: 1, Delivered: 2, Reordered: 1}},
		{"reordered", []delivery{{"x", "items", []string{a3}}, {"y", "items", []string{a1, a2}}},
			Counts{Batches: 2, Delivered: 3, Reordered: 2}},
		{"a redelivery is not reordered", []delivery{{"x", "items", []string{a1}}, {"y", "items", []string{a2}}, {"x", "items", []string{a1}}},
			Counts{Batches: 3, Delivered: 2, Doubled: 1}},
		{"damaged", []delivery{{"x", "items", []string{a1, a2[:100], a3}}}, Counts{Batches: 1, Delivered: 2, Damaged: 1}},
		{"without an id", []delivery{{"", "items", []string{a1}}}, Counts{Batches: 1, Delivered: 1, Damaged: 1}},
		{"empty", []delivery{{"x", "items", nil}}, Counts{Batches: 1, Damaged: 1}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := NewSink(time.Second, time.Second)
			for _, d := range tt.in {
				r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(strings.Join(d.lines, "\n")+"\n"))
				r.Header.Set("webhook-id", d.id)
				r.Header.Set("sluice-reason", d.reason)
				w := httptest.NewRecorder()
				s.ServeHTTP(w, r)
				require.Equal(t, http.StatusOK, w.Code)
			}
			require.Equal(t, tt.want, s.Counts())
		})
	}
}

func TestSinkLateness(t *testing.T) {
	t.Parallel()
	start := time.Unix(1_767_225_600, 0)
	at := start.Add
	batch := func(times ...time.Duration) []byte {
		var lines []string
		for i, d := range times {
			lines = append(lines, written(1, uint64(i), at(d)))
		}
		return []byte(strings.Join(lines, "\n"))
	}
	header := func(reason string) http.Header {
		return http.Header{"Webhook-Id": {"x"}, "Sluice-Reason": {reason}}
	}
	s := NewSink(3*time.Second, 10*time.Second)
	s.take(header("idle"), batch(0, time.Second), at(4*time.Second+5*time.Millisecond))
	s.take(header("wait"), batch(0, 2*time.Second, 4*time.Second, 6*time.Second, 8*time.Second), at(10*time.Second-time.Millisecond))
	s.take(header("items"), batch(0), at(20*time.Second))
	all := s.Lateness(at(0), at(time.Minute))
	require.Equal(t, []time.Duration{-time.Millisecond, 5 * time.Millisecond}, all)
	require.Equal(t, []time.Duration{5 * time.Millisecond}, s.Lateness(at(0), at(5*time.Second)))
}

func TestMissing(t *testing.T) {
	t.Parallel()
	s := NewSink(time.Second, time.Second)
	now := time.Unix(1_767_225_600, 0)
	s.take(http.Header{"Webhook-Id": {"x"}}, []byte(written(1, 0, now)+"\n"+written(1, 3, now)), now)
	sent := &Sent{Accepted: 6, perPost: 2, firsts: [][]uint64{{0, 8}, {2}}}
	require.Equal(t, []uint64{0, 1, 8, 9, 2, 3}, slices.Collect(sent.IDs()))
	require.Equal(t, uint64(4), s.Missing(sent))
	require.Equal(t, uint64(4), s.Drain(t.Context(), sent, time.Millisecond))
}

func TestLoadCountsAnswers(t *testing.T) {
	t.Parallel()
	var n atomic.Int64
	seen := NewSink(time.Second, time.Second)
	url, stop, err := serveLoopback(t.Context(), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch n.Add(1) % 4 {
		case 0:
			http.Error(w, "enough", http.StatusTooManyRequests)
		case 1:
			w.Header().Set("Connection", "close") // the load dials again
			fallthrough
		default:
			seen.take(http.Header{"Webhook-Id": {"x"}}, body, time.Now())
			w.WriteHeader(http.StatusAccepted)
		}
	}))
	require.NoError(t, err)
	defer stop()
	load := Load{URL: url, Conns: 3, PerPost: 5, Size: 300, Key: keysOf(10, 3), Events: 200}
	sent, err := load.Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, uint64(40), sent.Accepted/5+sent.Refused)
	require.Equal(t, uint64(10), sent.Refused)
	require.Equal(t, "429 enough\n", sent.Refusal)
	require.Zero(t, sent.Broken)
	require.Equal(t, sent.Accepted, sent.InWindow)
	require.Len(t, sent.Latencies, 30)
	c := seen.Counts()
	require.Equal(t, sent.Accepted, c.Delivered)
	require.Zero(t, seen.Missing(sent))
	require.Zero(t, c.Damaged+c.Doubled+c.Reordered)
}

func TestLoadStopsWithItsContext(t *testing.T) {
	t.Parallel()
	entered := make(chan struct{})
	release := make(chan struct{})
	url, stop, err := serveLoopback(t.Context(), http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		entered <- struct{}{}
		<-release
	}))
	require.NoError(t, err)
	defer stop()
	defer close(release)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-entered
		cancel()
	}()
	load := Load{URL: url, Conns: 1, PerPost: 1, Size: 300, Key: keysOf(1, 1)}
	sent, err := load.Run(ctx)
	require.NoError(t, err)
	require.Zero(t, sent.Accepted)
	require.Equal(t, uint64(1), sent.Broken)
}

func TestReadAnswer(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, in string
		want     answer
		fails    bool
	}{
		{"accepted", "HTTP/1.1 202 Accepted\r\nContent-Length: 2\r\n\r\n{}", answer{status: 202}, false},
		{"no content", "HTTP/1.1 204 No Content\r\n\r\n", answer{status: 204}, false},
		{"lower case", "HTTP/1.1 200 OK\r\ncontent-length:0\r\n\r\n", answer{status: 200}, false},
		{"refused", "HTTP/1.1 503 X\r\nContent-Length: 4\r\n\r\nfull", answer{status: 503, body: "full"}, false},
		{"the last", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", answer{status: 200, last: true}, false},
		{"no length", "HTTP/1.1 200 OK\r\n\r\n", answer{}, true},
		{"a bad length", "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", answer{}, true},
		{"a short body", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", answer{}, true},
		{"not HTTP", "220 mail.example.com ESMTP\r\n", answer{}, true},
		{"no status", "HTTP/1.1 abc OK\r\n\r\n", answer{}, true},
		{"nothing", "", answer{}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			in := bufio.NewReader(strings.NewReader(tt.in + "HTTP/1.1"))
			if tt.fails {
				in = bufio.NewReader(strings.NewReader(tt.in))
			}
			got, err := readAnswer(in)
			if tt.fails {
				require.Error(t, err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
			rest, err := io.ReadAll(in)
			require.NoError(t, err)
			require.Equal(t, "HTTP/1.1", string(rest)) // where the next answer begins
		})
	}
}

func FuzzReadAnswer(f *testing.F) {
	f.Add([]byte("HTTP/1.1 503 X\r\nContent-Length: 4\r\nConnection: close\r\n\r\nfull"))
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := readAnswer(bufio.NewReader(bytes.NewReader(b)))
		if err == nil && len(a.body) > 300 {
			t.Fatalf("%d bytes of body are kept", len(a.body))
		}
	})
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	m, err := readMetrics(strings.NewReader(`# HELP x y
sluice_pending_items{buffer="a"} 3
sluice_pending_items{buffer="b"} 4.5e+1
sluice_groups 7
sluice_lateness_seconds_bucket{buffer="a",le="0.001"} 50
sluice_lateness_seconds_bucket{buffer="a",le="0.005"} 98
sluice_lateness_seconds_bucket{buffer="a",le="+Inf"} 99
sluice_lateness_seconds_bucket{buffer="b",le="0.001"} 1
sluice_lateness_seconds_bucket{buffer="b",le="0.005"} 1
sluice_lateness_seconds_bucket{buffer="b",le="+Inf"} 1
`))
	require.NoError(t, err)
	n, ok := m.sum("sluice_pending_items")
	require.True(t, ok)
	require.InDelta(t, 48, n, 0)
	_, ok = m.sum("sluice_pending")
	require.False(t, ok)
	for q, want := range map[float64]float64{0.5: 0.001, 0.51: 0.001, 0.52: 0.005, 0.99: 0.005} {
		got, ok := m.quantile("sluice_lateness_seconds", q)
		require.True(t, ok)
		require.InDelta(t, want, got, 0, "%v", q)
	}
	_, ok = m.quantile("sluice_delivery_seconds", 0.5)
	require.False(t, ok)
	_, err = readMetrics(strings.NewReader("x y\n"))
	require.ErrorContains(t, err, "x y")
}

func TestQuantiles(t *testing.T) {
	t.Parallel()
	var hundred []time.Duration
	for i := range 100 {
		hundred = append(hundred, time.Duration(i+1))
	}
	require.Equal(t, time.Duration(99), quantile(hundred, 0.99))
	require.Equal(t, time.Duration(50), quantile(hundred, 0.5))
	require.Equal(t, time.Duration(100), quantile(hundred, 1))
	require.Equal(t, time.Duration(7), quantile([]time.Duration{7}, 0.01))
	require.Zero(t, quantile(nil, 0.99))
	require.InDelta(t, 2, median([]float64{3, 1, 2}), 0)
	require.InDelta(t, 2.5, median([]float64{4, 1, 2, 3}), 0)
}

// TestDeadlineGroups replays the load of the lateness scenario: once it has
// begun, every cycle of four events adds two groups of one event and completes
// one of two events that are lag cycles apart.
func TestDeadlineGroups(t *testing.T) {
	t.Parallel()
	const lag, cycles = 5, 40
	key := doubledLater(lag)
	ids := map[uint64][]uint64{}
	for id := range uint64(4 * cycles) {
		ids[key(0, id)] = append(ids[key(0, id)], id)
	}
	sizes := map[int]int{}
	for _, group := range ids {
		sizes[len(group)]++
		if len(group) == 2 {
			require.Equal(t, uint64(lag*4+1), group[1]-group[0])
		}
	}
	require.Equal(t, map[int]int{1: 2*cycles + 2*lag, 2: cycles - lag}, sizes)
}
