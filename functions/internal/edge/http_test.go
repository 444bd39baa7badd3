package edge

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/stretchr/testify/require"

	"sluice/core"
)

// event is a request as API Gateway tells of it.
func event(change ...func(*events.APIGatewayV2HTTPRequest)) events.APIGatewayV2HTTPRequest {
	e := events.APIGatewayV2HTTPRequest{Version: "2.0", RawPath: "/v1/sources/orders"}
	e.Headers = map[string]string{"host": "abc.execute-api.eu-central-1.amazonaws.com", "content-type": "application/json"}
	e.RequestContext.Stage = "$default"
	e.RequestContext.DomainName = "abc.execute-api.eu-central-1.amazonaws.com"
	e.RequestContext.HTTP.Method = http.MethodPost
	e.RequestContext.HTTP.SourceIP = "203.0.113.7"
	for _, f := range change {
		f(&e)
	}
	return e
}

// refuse writes what stands for an answer that is too large.
func refuse(w http.ResponseWriter, err error) {
	w.WriteHeader(http.StatusRequestEntityTooLarge)
	_, _ = io.WriteString(w, core.CodeOf(err).String())
}

func TestRequest(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(*events.APIGatewayV2HTTPRequest)
		want   func(*testing.T, *http.Request, string)
	}{
		{"as it comes", func(*events.APIGatewayV2HTTPRequest) {}, func(t *testing.T, r *http.Request, body string) {
			require.Equal(t, http.MethodPost, r.Method)
			require.Equal(t, "/v1/sources/orders", r.URL.Path)
			require.Equal(t, "/v1/sources/orders", r.RequestURI)
			require.Equal(t, "203.0.113.7:0", r.RemoteAddr)
			require.Equal(t, "abc.execute-api.eu-central-1.amazonaws.com", r.Host)
			require.Equal(t, http.Header{"Content-Type": {"application/json"}}, r.Header)
			require.Empty(t, body)
			require.Zero(t, r.ContentLength)
		}},
		{"a body", func(e *events.APIGatewayV2HTTPRequest) { e.Body = "{\"é\": 1}\n" }, func(t *testing.T, r *http.Request, body string) {
			require.Equal(t, "{\"é\": 1}\n", body)
			require.EqualValues(t, 10, r.ContentLength)
		}},
		{"a binary body", func(e *events.APIGatewayV2HTTPRequest) { e.Body, e.IsBase64Encoded = "/wD+", true }, func(t *testing.T, r *http.Request, body string) {
			require.Equal(t, "\xff\x00\xfe", body)
			require.EqualValues(t, 3, r.ContentLength)
		}},
		{"a padded one", func(e *events.APIGatewayV2HTTPRequest) { e.Body, e.IsBase64Encoded = "/w==", true }, func(t *testing.T, r *http.Request, body string) {
			require.Equal(t, "\xff", body)
			require.EqualValues(t, 1, r.ContentLength)
		}},
		{"an empty binary one", func(e *events.APIGatewayV2HTTPRequest) { e.IsBase64Encoded = true }, func(t *testing.T, r *http.Request, body string) {
			require.Empty(t, body)
			require.Equal(t, http.NoBody, r.Body)
		}},
		{"an escaped path and query", func(e *events.APIGatewayV2HTTPRequest) {
			e.RawPath, e.RawQueryString = "/v1/buffers/a%2Fb/groups", "key=a%20b+c&limit=2"
		}, func(t *testing.T, r *http.Request, _ string) {
			require.Equal(t, "/v1/buffers/a/b/groups", r.URL.Path)
			require.Equal(t, "/v1/buffers/a%2Fb/groups?key=a%20b+c&limit=2", r.RequestURI)
			require.Equal(t, "a b c", r.URL.Query().Get("key"))
		}},
		{"a path that is not escaped", func(e *events.APIGatewayV2HTTPRequest) { e.RawPath = "/v1/50%/é" }, func(t *testing.T, r *http.Request, _ string) {
			require.Equal(t, "/v1/50%/é", r.URL.Path)
		}},
		{"no path", func(e *events.APIGatewayV2HTTPRequest) { e.RawPath = "" }, func(t *testing.T, r *http.Request, _ string) {
			require.Equal(t, "/", r.URL.Path)
		}},
		{"a stage", func(e *events.APIGatewayV2HTTPRequest) {
			e.RequestContext.Stage, e.RawPath = "dev", "/dev/v1/sources/orders"
		}, func(t *testing.T, r *http.Request, _ string) {
			require.Equal(t, "/v1/sources/orders", r.URL.Path)
			require.Equal(t, "/v1/sources/orders", r.RequestURI)
		}},
		{"a stage alone", func(e *events.APIGatewayV2HTTPRequest) { e.RequestContext.Stage, e.RawPath = "dev", "/dev" }, func(t *testing.T, r *http.Request, _ string) {
			require.Equal(t, "/", r.URL.Path)
		}},
		{"a stage that a domain hides", func(e *events.APIGatewayV2HTTPRequest) { e.RequestContext.Stage, e.RawPath = "dev", "/development/x" }, func(t *testing.T, r *http.Request, _ string) {
			require.Equal(t, "/development/x", r.URL.Path)
		}},
		{"no host header", func(e *events.APIGatewayV2HTTPRequest) { delete(e.Headers, "host") }, func(t *testing.T, r *http.Request, _ string) {
			require.Equal(t, "abc.execute-api.eu-central-1.amazonaws.com", r.Host)
		}},
		{"another host", func(e *events.APIGatewayV2HTTPRequest) { e.Headers["host"] = "events.example.com" }, func(t *testing.T, r *http.Request, _ string) {
			require.Equal(t, "events.example.com", r.Host)
		}},
		{"headers of the gateway, and cookies", func(e *events.APIGatewayV2HTTPRequest) {
			e.Cookies = []string{"session=secret"}
			e.Headers = map[string]string{
				"x-forwarded-for": "203.0.113.7", "x-forwarded-port": "443", "x-forwarded-proto": "https",
				"x-amzn-trace-id": "Root=1-2", "cookie": "session=secret", "X-TEAM": "a,b", "idempotency-key": "k",
			}
		}, func(t *testing.T, r *http.Request, _ string) {
			require.Equal(t, http.Header{"X-Team": {"a,b"}, "Idempotency-Key": {"k"}}, r.Header)
		}},
		{"version 6", func(e *events.APIGatewayV2HTTPRequest) { e.RequestContext.HTTP.SourceIP = "2001:db8::1" }, func(t *testing.T, r *http.Request, _ string) {
			require.Equal(t, "[2001:db8::1]:0", r.RemoteAddr)
		}},
		{"a caller on loopback", func(e *events.APIGatewayV2HTTPRequest) { e.RequestContext.HTTP.SourceIP = "127.0.0.1" }, noPeer},
		{"on loopback, version 6", func(e *events.APIGatewayV2HTTPRequest) { e.RequestContext.HTTP.SourceIP = "::1" }, noPeer},
		{"on loopback, mapped", func(e *events.APIGatewayV2HTTPRequest) { e.RequestContext.HTTP.SourceIP = "::ffff:127.1.2.3" }, noPeer},
		{"no address", func(e *events.APIGatewayV2HTTPRequest) { e.RequestContext.HTTP.SourceIP = "127.0.0.1:80" }, noPeer},
		{"no caller", func(e *events.APIGatewayV2HTTPRequest) { e.RequestContext.HTTP.SourceIP = "" }, noPeer},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			type mark struct{}
			var got *http.Request
			h := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r })
			_, err := HTTP(h, refuse)(context.WithValue(t.Context(), mark{}, mark{}), event(tt.change))
			require.NoError(t, err)
			require.NotNil(t, got)
			require.Equal(t, mark{}, got.Context().Value(mark{}), "the invocation's context")
			body, err := io.ReadAll(got.Body)
			require.NoError(t, err)
			tt.want(t, got, string(body))
		})
	}
}

func noPeer(t *testing.T, r *http.Request, _ string) {
	t.Helper()
	require.Empty(t, r.RemoteAddr)
}

func TestBodyThatIsNoBase64(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"a", "####", "YWJj\nZGVm!", "YWI=YWI="} {
		e := event(func(e *events.APIGatewayV2HTTPRequest) { e.Body, e.IsBase64Encoded = text, true })
		r := request(t.Context(), &e)
		read, err := io.ReadAll(r.Body)
		require.True(t, err != nil || int64(len(read)) != r.ContentLength, "%q was read as %q", text, read)
	}
}

func TestEventsOfOtherFormats(t *testing.T) {
	t.Parallel()
	h := HTTP(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was called") }), refuse)
	for name, text := range map[string]string{
		"format 1.0": `{"version":"1.0","resource":"/x","path":"/x","httpMethod":"POST","requestContext":{"httpMethod":"POST"}}`,
		"a REST API": `{"resource":"/x","path":"/x","httpMethod":"POST","requestContext":{"stage":"dev"}}`,
		"SQS":        `{"Records":[{"messageId":"1","eventSource":"aws:sqs"}]}`,
		"nothing":    `null`,
		"no method":  `{"version":"2.0","rawPath":"/x"}`,
	} {
		var e events.APIGatewayV2HTTPRequest
		require.NoError(t, json.Unmarshal([]byte(text), &e), name)
		_, err := h(t.Context(), e)
		require.Equal(t, core.Invalid, core.CodeOf(err), name)
	}
}

func TestAnswer(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", maxPayload-200)
	tests := []struct {
		name    string
		handler http.HandlerFunc
		want    events.APIGatewayV2HTTPResponse
	}{
		{"nothing", func(http.ResponseWriter, *http.Request) {},
			events.APIGatewayV2HTTPResponse{StatusCode: 200, Headers: map[string]string{}}},
		{"a status alone", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) },
			events.APIGatewayV2HTTPResponse{StatusCode: 204, Headers: map[string]string{}}},
		{"a status after the body", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "a")
			w.WriteHeader(http.StatusTeapot)
			_, _ = io.WriteString(w, "b")
		}, events.APIGatewayV2HTTPResponse{StatusCode: 200, Headers: map[string]string{}, Body: "ab"}},
		{"headers", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "2")
			w.Header()["Vary"] = []string{"Accept", "Origin"}
			w.Header()["Set-Cookie"] = []string{"a=1", "b=2"}
			w.WriteHeader(http.StatusAccepted)
			_, _ = io.WriteString(w, "{}")
		}, events.APIGatewayV2HTTPResponse{
			StatusCode: 202, Body: "{}", Cookies: []string{"a=1", "b=2"},
			Headers: map[string]string{"Content-Type": "application/json", "Vary": "Accept, Origin"},
		}},
		{"bytes", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte{0xff, 0, 0xfe}) },
			events.APIGatewayV2HTTPResponse{StatusCode: 200, Headers: map[string]string{}, Body: "/wD+", IsBase64Encoded: true}},
		{"as much as may be", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, large) },
			events.APIGatewayV2HTTPResponse{StatusCode: 200, Headers: map[string]string{}, Body: large}},
		{"too much", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Dropped", "yes")
			_, _ = io.WriteString(w, large+strings.Repeat("x", 200))
		}, events.APIGatewayV2HTTPResponse{StatusCode: 413, Headers: map[string]string{}, Body: "too_large"}},
		{"too much once it is escaped", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, strings.Repeat(`"`, maxPayload/2))
		}, events.APIGatewayV2HTTPResponse{StatusCode: 413, Headers: map[string]string{}, Body: "too_large"}},
		{"too much once it is base64", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, strings.Repeat("\xff", 5<<20))
		}, events.APIGatewayV2HTTPResponse{StatusCode: 413, Headers: map[string]string{}, Body: "too_large"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := HTTP(tt.handler, refuse)(t.Context(), event())
			require.NoError(t, err)
			require.Equal(t, len(tt.want.Body), len(got.Body)) //nolint:testifylint // Len would print megabytes
			require.Equal(t, tt.want, got)
		})
	}
}

// The size of what is let through is the size that it has in the end.
func TestEncodedSize(t *testing.T) {
	t.Parallel()
	for _, body := range []string{"", "{}", strings.Repeat("é<\u2028\"", 700_000), strings.Repeat("\x01", 2<<20)} {
		r := events.APIGatewayV2HTTPResponse{StatusCode: 200, Headers: map[string]string{"A": "b"}, Body: body, Cookies: []string{"c"}}
		var whole strings.Builder
		enc := json.NewEncoder(&whole)
		enc.SetEscapeHTML(false)
		require.NoError(t, enc.Encode(&r))
		got := encodedSize(&r)
		require.GreaterOrEqual(t, got, whole.Len())
		require.Equal(t, whole.Len() > maxPayload, got > maxPayload)
	}
}

func FuzzHTTP(f *testing.F) {
	for _, path := range []string{"/v1/sources/orders", "/dev/v1", "%zz", "//x", ""} {
		f.Add(path, "a=b", "body", "dev", "127.0.0.1", true)
	}
	f.Fuzz(func(t *testing.T, path, query, body, stage, ip string, binary bool) {
		e := event(func(e *events.APIGatewayV2HTTPRequest) {
			e.RawPath, e.RawQueryString, e.Body, e.IsBase64Encoded = path, query, body, binary
			e.RequestContext.Stage, e.RequestContext.HTTP.SourceIP = stage, ip
		})
		var r *http.Request
		_, err := HTTP(http.HandlerFunc(func(_ http.ResponseWriter, got *http.Request) { r = got }), refuse)(t.Context(), e)
		require.NoError(t, err)
		require.NotEmpty(t, r.URL.Path)
		require.Equal(t, query, r.URL.RawQuery)
		addr, err := netip.ParseAddrPort(r.RemoteAddr)
		require.True(t, err != nil || !addr.Addr().Unmap().IsLoopback(), r.RemoteAddr)
		got, err := io.ReadAll(r.Body)
		if !binary {
			require.NoError(t, err)
			require.Equal(t, body, string(got))
		}
	})
}
