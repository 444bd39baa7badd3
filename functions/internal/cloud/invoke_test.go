package cloud

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/functions/internal/report"
)

// lambda is Lambda as the control function meets it.
type lambda struct {
	status  int
	failed  bool
	answer  string
	takes   time.Duration
	asked   []*http.Request
	payload []string
}

func (l *lambda) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	l.asked, l.payload = append(l.asked, r), append(l.payload, string(body))
	select {
	case <-time.After(l.takes):
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	header := http.Header{}
	if l.failed {
		header.Set("X-Amz-Function-Error", "Unhandled")
	}
	return &http.Response{StatusCode: l.status, Header: header, Body: io.NopCloser(bytes.NewReader([]byte(l.answer)))}, nil
}

// controls is the control function before a Lambda.
func (l *lambda) controls(t *testing.T) HTTPHandler {
	t.Helper()
	vars := variables(t, flushed)
	r := setUpWith(t, vars)
	r.clients = newClients(&r.env, l)
	h, err := r.control(r.outside, r.sender)
	require.NoError(t, err)
	return h
}

// reported is a report in which every field is set.
const reported = `{"ok":false,"durationMs":41,"buffers":{` +
	`"b":{"buckets":2,"rows":9,"skipped":false,"error":"group \"a\": status 503","written":{"buckets":1,"rows":4},"releaseError":"r","ackError":"a","recovered":{"claims":1,"rows":2},"recoveryError":"c"},` +
	`"f":{"buckets":0,"rows":0,"skipped":true,"reason":"cadence","nextEligibleInMs":41200}},"unmatched":["x"]}`

// A flush over HTTP is made by the flush function, and its report passed on as
// it is.
func TestFlushOverHTTP(t *testing.T) { //nolint:paralleltest // a bubble
	synctest.Test(t, func(t *testing.T) {
		l := &lambda{status: http.StatusOK, answer: reported[:len(reported)-1] + `,"handedOver":1,"unfinished":false}`}
		h := l.controls(t)
		answer := call(t, h, http.MethodPost, "/v1/flush", "control-token", `{"force":true,"only":["b","x"]}`)
		require.Equal(t, http.StatusOK, answer.StatusCode, answer.Body)
		require.JSONEq(t, reported, answer.Body)
		require.Equal(t, []string{`{"flush":{"force":true,"only":["b","x"]}}`}, l.payload)
		require.Equal(t, "https://lambda.eu-central-1.amazonaws.com/2015-03-31/functions/flush/invocations", l.asked[0].URL.String())
		require.Contains(t, l.asked[0].Header.Get("Authorization"), "Credential=key/20000101/eu-central-1/lambda/aws4_request, SignedHeaders=content-length;content-type;host;x-amz-date, Signature=")

		answer = call(t, h, http.MethodPost, "/v1/buffers/f/flush", "control-token", "")
		require.Equal(t, http.StatusOK, answer.StatusCode, answer.Body)
		require.JSONEq(t, `{"buckets":0,"rows":0,"skipped":true,"reason":"cadence","nextEligibleInMs":41200}`, answer.Body)
		require.Equal(t, `{"flush":{"only":["f"],"strict":true}}`, l.payload[1])

		answer = call(t, h, http.MethodPost, "/v1/flush", "control-token", `{"strict":true,"only":["x"]}`)
		require.Equal(t, http.StatusBadRequest, answer.StatusCode)
		require.Contains(t, answer.Body, "x")
		answer = call(t, h, http.MethodPost, "/v1/buffers/x/flush", "control-token", "")
		require.Equal(t, http.StatusNotFound, answer.StatusCode)
		require.Len(t, l.asked, 2, "these two need nobody else")
	})
}

// Without a report the caller hears why, and nothing of the insides.
func TestFlushOverHTTPThatFails(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		lambda lambda
		status int
		says   string
	}{
		{"it takes too long", lambda{takes: time.Hour}, http.StatusServiceUnavailable, "it goes on"},
		{"Lambda throttles", lambda{status: http.StatusTooManyRequests}, http.StatusServiceUnavailable, "Lambda answers 429"},
		{"Lambda is down", lambda{status: http.StatusBadGateway}, http.StatusServiceUnavailable, "Lambda answers 502"},
		{"it may not", lambda{status: http.StatusForbidden, answer: "AccessDenied"}, http.StatusInternalServerError, ""},
		{"the function fails", lambda{status: http.StatusOK, failed: true, answer: `{"errorMessage":"swordfish"}`}, http.StatusServiceUnavailable, "the flush function failed; its log says why"},
		{"its answer is no report", lambda{status: http.StatusOK, answer: "null?"}, http.StatusInternalServerError, ""},
	} {
		t.Run(tc.name, func(t *testing.T) { //nolint:paralleltest // a bubble
			synctest.Test(t, func(t *testing.T) {
				h := tc.lambda.controls(t)
				ctx, cancel := context.WithTimeout(t.Context(), 29*time.Second)
				defer cancel()
				begin := time.Now()
				answer := callWith(ctx, t, h, http.MethodPost, "/v1/flush", "control-token", "")
				require.Equal(t, tc.status, answer.StatusCode, answer.Body)
				require.Contains(t, answer.Body, tc.says)
				require.NotContains(t, answer.Body, "swordfish")
				require.NotContains(t, answer.Body, "AccessDenied")
				require.Less(t, time.Since(begin), 28*time.Second)
			})
		})
	}
}

// What the flush function reports is what the caller gets.
func TestAsFlush(t *testing.T) {
	t.Parallel()
	for _, b := range []report.Buffer{
		{Name: "none"},
		{
			Name: "all", Buckets: 1, Rows: 2, Skipped: true, Reason: "cadence", NextEligibleInMs: 3, Error: "e",
			Written: &report.Written{Buckets: 4, Rows: 5}, ReleaseError: "r", AckError: "a",
			Recovered: &report.Recovered{Claims: 6, Rows: 7}, RecoveryError: "c",
		},
	} {
		back := asFlush(&b)
		require.Equal(t, b, report.OfBuffer(&back))
	}
}

// The control function does not start without the address.
func TestControlWithoutFlush(t *testing.T) {
	t.Parallel()
	vars := variables(t, yaml)
	delete(vars, "SLUICE_FLUSH_URL")
	_, err := Control(t.Context(), Process{Env: lookup(vars), Stdout: new(output)})
	require.Equal(t, core.Invalid, core.CodeOf(err))
	require.ErrorContains(t, err, "SLUICE_FLUSH_URL is not set")
}
