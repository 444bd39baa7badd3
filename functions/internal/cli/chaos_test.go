package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// receiver is a destination that notes what it gets.
type receiver struct {
	*httptest.Server

	mu      sync.Mutex
	lines   map[string]int // how often each line came
	headers []http.Header
	answer  func(n int) (status int, body string) // of the n-th request; nil: 200
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	e := &receiver{lines: map[string]int{}}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		e.mu.Lock()
		defer e.mu.Unlock()
		e.headers = append(e.headers, r.Header)
		status, text := http.StatusOK, ""
		if e.answer != nil {
			status, text = e.answer(len(e.headers))
		}
		if status == http.StatusOK {
			for line := range strings.Lines(string(body)) {
				e.lines[line]++
			}
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
	}))
	t.Cleanup(e.Close)
	return e
}

// chaos runs the command against the endpoint, and returns its report.
func (e *receiver) chaos(t *testing.T, args ...string) (code int, r chaosReport, waited time.Duration) {
	t.Helper()
	code, stdout, stderr, waited := e.run(t.Context(), t, append([]string{"crm", "--json", "--seed", "7"}, args...)...)
	require.NoError(t, json.Unmarshal([]byte(stdout), &r), "%s%s", stdout, stderr)
	return code, r, waited
}

// run runs the command against the endpoint.
func (e *receiver) run(ctx context.Context, t *testing.T, args ...string) (code int, stdout, stderr string, waited time.Duration) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sluice.yaml")
	text := fmt.Sprintf(`
sources: {in: {}}
destinations:
  crm: {url: %q, allowPrivate: true, secrets: [env:SECRET], retry: {maxAttempts: 10, initial: 1s, on: [404]}}
  other: {url: "https://example.com", secrets: [env:NOT_SET]}
  out: {type: stdout}
buffers: {b: {from: [in], to: crm}, c: {from: [in], to: other}, d: {from: [in], to: out}}
`, e.URL)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	w := &world{now: epoch}
	var out, errs bytes.Buffer
	p := &program{
		stdin: strings.NewReader(""), stdout: &out, stderr: &errs, now: w.clock, wait: w.wait,
		terminal: func(any) bool { return false },
		env: func(name string) string {
			return map[string]string{"SECRET": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}[name]
		},
	}
	code = p.run(ctx, append([]string{"chaos", "--config", path}, args...))
	return code, out.String(), errs.String(), w.now.Sub(epoch)
}

func TestChaosWithoutFaults(t *testing.T) {
	t.Parallel()
	e := newReceiver(t)
	code, r, _ := e.chaos(t)
	require.Zero(t, code)
	require.Equal(t, chaosReport{Destination: "crm", Events: 100, Batches: 10, Sent: 10, Taken: 100, Seed: 7}, r)
	require.Len(t, e.lines, 100)
	h := e.headers[0]
	require.Equal(t, "chaos", h.Get("Sluice-Buffer"))
	require.Equal(t, "10", h.Get("Sluice-Items"))
	require.NotEmpty(t, h.Get("Webhook-Signature"), "it is signed")
}

func TestChaosWithFaults(t *testing.T) {
	t.Parallel()
	e := newReceiver(t)
	code, r, waited := e.chaos(t, "--fail", "0.3", "--drop", "0.2", "--delay", "2s", "--items", "5")
	require.Zero(t, code)
	require.Equal(t, 100, r.Taken)
	require.Positive(t, r.PutIn.Failed)
	require.Positive(t, r.PutIn.Dropped)
	require.Equal(t, 20, r.Batches)
	require.Equal(t, r.Sent-20, r.Retried)
	require.Equal(t, r.PutIn.Failed+r.PutIn.Dropped, r.Retried)
	require.Equal(t, 5*r.PutIn.Dropped, r.Doubles)
	require.Greater(t, waited, time.Duration(r.Sent)*2*time.Second, "delays, and waits for retries")
	require.Equal(t, waited.Milliseconds(), r.TookMs)
	doubles, ids := 0, map[string]int{}
	for _, times := range e.lines {
		doubles += times - 1
	}
	require.Equal(t, r.Doubles, doubles)
	for _, h := range e.headers {
		ids[h.Get("Webhook-Id")]++
	}
	require.Len(t, ids, 20, "a batch is the same whenever it is sent")
}

func TestChaosOfAnEndpointThatFails(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name                         string
		args                         []string
		answer                       func(n int) (int, string)
		sent, taken, failed, doubles int
		says                         string
	}{
		{"refuses one", nil, func(n int) (int, string) {
			if n == 2 {
				return http.StatusBadRequest, "no"
			}
			return http.StatusOK, ""
		}, 10, 90, 10, 0, "400 no"},
		{"is down", nil, func(int) (int, string) { return http.StatusInternalServerError, "" }, 100, 0, 100, 0, "500 "},
		{"is asked to be tried again", nil, func(n int) (int, string) {
			if n%2 == 1 {
				return http.StatusNotFound, ""
			}
			return http.StatusOK, ""
		}, 20, 100, 0, 0, "404 "},
		{"takes a part", []string{"--items", "100"}, func(n int) (int, string) {
			if n == 1 {
				return http.StatusOK, `{"batchItemFailures":[{"itemIdentifier":"0"},{"itemIdentifier":"99"}]}`
			}
			return http.StatusOK, ""
		}, 2, 100, 0, 0, "200, but not for 2 events"},
		{"never hears of it", []string{"--fail", "1"}, nil, 100, 0, 100, 0, ""},
		{"is never heard", []string{"--drop", "1"}, nil, 100, 100, 100, 900, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e := newReceiver(t)
			e.answer = tt.answer
			code, r, _ := e.chaos(t, tt.args...)
			require.Equal(t, tt.failed > 0, code == exitFailed)
			require.Equal(t, []int{tt.sent, tt.taken, tt.failed, tt.doubles}, []int{r.Sent, r.Taken, r.Failed, r.Doubles})
			require.Equal(t, tt.says, r.Answer)
		})
	}
}

// What is said to be taken is what the endpoint has, whether that was heard or not.
func TestChaosCounts(t *testing.T) {
	t.Parallel()
	e := newReceiver(t)
	code, r, _ := e.chaos(t, "--fail", "0.5", "--drop", "0.6", "--items", "1")
	require.Equal(t, exitFailed, code)
	took := 0
	for _, times := range e.lines {
		took += times
	}
	require.Equal(t, []int{len(e.lines), took}, []int{r.Taken, r.Taken + r.Doubles})
	require.Positive(t, r.Unheard)
	require.Equal(t, r.Sent, len(e.headers)+r.PutIn.Failed)
	require.LessOrEqual(t, r.PutIn.Dropped, len(e.headers))
	require.Equal(t, r.Events, r.Taken+r.Failed-r.Unheard)
	code, text, _, _ := e.run(t.Context(), t, "crm", "--drop", "1")
	require.Equal(t, exitFailed, code)
	require.Contains(t, text, "100 events of the failed ones were taken, but each time the answer was lost")
}

// An interrupted run says what it has done.
func TestChaosInterrupted(t *testing.T) {
	t.Parallel()
	e := newReceiver(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	e.answer = func(n int) (int, string) {
		if n == 3 {
			cancel()
			return http.StatusServiceUnavailable, ""
		}
		return http.StatusOK, ""
	}
	for _, sent := range []int{3, 0} { // and when it is interrupted in its first delay
		code, text, errs, _ := e.run(ctx, t, "crm", "--json", "--delay", "1s")
		require.Equal(t, exitFailed, code)
		var r chaosReport
		require.NoError(t, json.Unmarshal([]byte(text), &r), text)
		require.Equal(t, []int{100, sent, 0, 0, 100 - r.Taken}, []int{r.Events, r.Sent, r.Retried, r.Failed, r.Left})
		require.Equal(t, 10*max(0, sent-1), r.Taken)
		require.Contains(t, errs, "interrupted")
	}
}

func TestChaosOfStandardOutput(t *testing.T) {
	t.Parallel()
	code, text, events, _ := newReceiver(t).run(t.Context(), t, "out", "--json")
	require.Zero(t, code)
	require.NoError(t, json.Unmarshal([]byte(text), new(chaosReport)), text)
	require.Equal(t, 100, strings.Count(events, "\n"))
}

func TestChaosUsage(t *testing.T) {
	t.Parallel()
	for says, args := range map[string][]string{
		`there is no destination "nobody"; there are crm, other, out`: {"nobody"},
		`"Nobody" is not the name of a destination`:                   {"Nobody"},
		`expected "<destination>"`:                                    {},
		"--fail is 1.5: must be 0 to 1":                               {"crm", "--fail", "1.5"},
		"--drop is -0.1: must be 0 to 1":                              {"crm", "--drop", "-0.1"},
		"--drop is NaN: must be 0 to 1":                               {"crm", "--drop", "NaN"},
		"--delay must not be negative":                                {"crm", "--delay", "-1s"},
		"--items is 0: must be 1 to 10000":                            {"crm", "--items", "0"},
		"--seed: expected":                                            {"crm", "--seed", "-1"},
	} {
		e := newReceiver(t)
		code, text, errs, _ := e.run(t.Context(), t, args...)
		require.Equal(t, exitUsage, code, says)
		require.Contains(t, errs, says)
		require.Empty(t, text)
		require.Empty(t, e.headers)
	}
}
