package lambdatest

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestEvent(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequest(http.MethodPost, "/v1/a%20b%2Fc%3Fd?x=1&x=2&y=%C3%A4", strings.NewReader("{}"))
	r.Host, r.RemoteAddr = "api.example.com", "192.0.2.1:4711"
	r.Header = http.Header{
		"Content-Type": {"application/json; charset=utf-8"}, "X-Two": {"a", "b, c"}, "User-Agent": {"probe/1"},
		"Cookie": {"a=1; b=2", "c=3"}, "Connection": {"close"},
	}
	e := event(r, "POST /v1/{proxy+}", map[string]string{"proxy": "a b/c"}, []byte("{}"))
	require.Equal(t, "2.0", e.Version)
	require.Equal(t, "POST /v1/{proxy+}", e.RouteKey)
	require.Equal(t, "/v1/a b/c", e.RawPath, "decoded, and cut at a question mark")
	require.Equal(t, "x=1&x=2&y=%C3%A4", e.RawQueryString, "as it was sent")
	require.Equal(t, map[string]string{"x": "1,2", "y": "ä"}, e.QueryStringParameters)
	require.Equal(t, map[string]string{"proxy": "a b/c"}, e.PathParameters)
	require.Equal(t, []string{"a=1", "b=2", "c=3"}, e.Cookies)
	require.Regexp(t, `^Root=1-[0-9a-f]{8}-[0-9a-f]{24}$`, e.Headers["x-amzn-trace-id"])
	delete(e.Headers, "x-amzn-trace-id")
	require.Equal(t, map[string]string{
		"content-type": "application/json; charset=utf-8", "x-two": "a,b, c", "user-agent": "probe/1",
		"host": "api.example.com", "content-length": "2",
		"x-forwarded-for": "192.0.2.1", "x-forwarded-port": "4711", "x-forwarded-proto": "https",
	}, e.Headers)
	require.Equal(t, "{}", e.Body)
	require.False(t, e.IsBase64Encoded)
	require.Equal(t, "$default", e.RequestContext.Stage)
	require.WithinDuration(t, time.Now(), time.UnixMilli(e.RequestContext.TimeEpoch), time.Minute)
	require.Equal(t, "POST", e.RequestContext.HTTP.Method)
	require.Equal(t, "/v1/a b/c", e.RequestContext.HTTP.Path)
	require.Equal(t, "192.0.2.1", e.RequestContext.HTTP.SourceIP)
	require.Equal(t, "probe/1", e.RequestContext.HTTP.UserAgent)
}

func TestEventBody(t *testing.T) {
	t.Parallel()
	tests := []struct {
		contentType string
		text        bool
	}{
		{"application/json", true},
		{"Application/JSON;charset=utf-8", true},
		{"application/xml", true},
		{"application/javascript", true},
		{"text/plain", true},
		{"text/x-anything", true},
		{"", false},
		{"application/x-ndjson", false},
		{"application/cloudevents+json", false},
		{"application/x-www-form-urlencoded", false},
		{"application/octet-stream", false},
		{"nonsense;;", false},
	}
	for _, tt := range tests {
		t.Run(tt.contentType, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequest(http.MethodPost, "/", nil)
			r.Header.Set("Content-Type", tt.contentType)
			e := event(r, "$default", nil, []byte("abc"))
			require.Equal(t, !tt.text, e.IsBase64Encoded)
			if !tt.text {
				body, err := base64.StdEncoding.DecodeString(e.Body)
				require.NoError(t, err)
				e.Body = string(body)
			}
			require.Equal(t, "abc", e.Body)
			require.False(t, event(r, "$default", nil, nil).IsBase64Encoded, "an empty one is as it is")
		})
	}
}

func TestMatch(t *testing.T) {
	t.Parallel()
	tests := []struct {
		key, method, path string
		want              map[string]string // nil: no match
	}{
		{"GET /healthz", "GET", "/healthz", map[string]string{}},
		{"GET /healthz", "POST", "/healthz", nil},
		{"GET /healthz", "GET", "/healthz/", nil},
		{"GET /healthz", "GET", "/", nil},
		{"POST /v1/sources/{source}", "POST", "/v1/sources/in", map[string]string{"source": "in"}},
		{"POST /v1/sources/{source}", "POST", "/v1/sources/", nil},
		{"POST /v1/sources/{source}", "POST", "/v1/sources/in/batch", nil},
		{"POST /v1/sources/{source}/batch", "POST", "/v1/sources/in/batch", map[string]string{"source": "in"}},
		{"ANY /v1/{proxy+}", "DELETE", "/v1/a/b", map[string]string{"proxy": "a/b"}},
		{"ANY /v1/{proxy+}", "GET", "/v1/", nil},
		{"ANY /v1/{proxy+}", "GET", "/v1", nil},
	}
	for _, tt := range tests {
		t.Run(tt.key+" "+tt.path, func(t *testing.T) {
			t.Parallel()
			parameters, ok := match(tt.key, tt.method, tt.path)
			require.Equal(t, tt.want != nil, ok)
			if ok {
				require.Equal(t, tt.want, parameters)
			}
		})
	}
	_, ok := match("$default", "PUT", "/x")
	require.True(t, ok)
}

func TestWrite(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, answer string
		status       int
		kind, body   string
	}{
		{"plain", `{"statusCode":202,"headers":{"content-type":"text/x"},"body":"hi"}`, 202, "text/x", "hi"},
		{"base64", `{"statusCode":200,"body":"aGk=","isBase64Encoded":true}`, 200, "application/json", "hi"},
		{"no response", `{"a":1}`, 200, "application/json", `{"a":1}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := httptest.NewRecorder()
			require.NoError(t, write(w, []byte(tt.answer)))
			require.Equal(t, tt.status, w.Code)
			require.Equal(t, tt.kind, w.Header().Get("Content-Type"))
			require.Equal(t, tt.body, w.Body.String())
		})
	}
	w := httptest.NewRecorder()
	require.NoError(t, write(w, []byte(`{"statusCode":204,"cookies":["a=1","b=2"]}`)))
	require.Equal(t, []string{"a=1", "b=2"}, w.Header().Values("Set-Cookie"))
	require.Error(t, write(w, []byte(`{"statusCode":200,"body":"%","isBase64Encoded":true}`)))
}

// The API's own answers when its functions have none.
func TestFront(t *testing.T) {
	t.Parallel()
	f := setup(t, nil)
	slow := setup(t, func(s *Settings) { s.Timeout = time.Nanosecond })
	dies := setup(t, func(s *Settings) { s.Env = map[string]string{"PROBE": "exit"} })
	front := &Front{Routes: []Route{{"POST /probe", f}, {"POST /slow", slow}, {"POST /dies", dies}}}
	tests := []struct {
		path, body string
		status     int
		answer     string
	}{
		{"/probe", "", 200, `"function":"probe"`},
		{"/elsewhere", "", 404, `{"message":"Not Found"}`},
		{"/dies", "", 500, `{"message":"Internal Server Error"}`},
		{"/slow", "", 503, `{"message":"Service Unavailable"}`},
		{"/probe", strings.Repeat("x", MaxPayload), 413, `{"message":"Request Entity Too Large"}`},
		{"/probe", strings.Repeat("x", maxRequest+1), 413, `{"message":"Request Entity Too Large"}`},
	}
	for _, tt := range tests {
		t.Run(tt.path, func(t *testing.T) {
			t.Parallel()
			w := httptest.NewRecorder()
			r := httptest.NewRequest(http.MethodPost, tt.path, strings.NewReader(tt.body))
			front.ServeHTTP(w, r)
			require.Equal(t, tt.status, w.Code)
			require.Contains(t, w.Body.String(), tt.answer)
		})
	}
}
