package httpsend

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/core/format"
)

// sent is what a server saw of one request.
type sent struct {
	http.Header
	method, path, body string
}

// capture sends a batch to a server and returns what it saw.
func capture(t *testing.T, o Options, b *core.Batch) sent {
	t.Helper()
	seen := make(chan sent, 1)
	server := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		seen <- sent{r.Header, r.Method, r.URL.String(), string(body)}
	})
	o.URL = server.URL + o.URL
	r := newSender(t, o).Send(t.Context(), b)
	require.NoError(t, r.Err)
	require.Equal(t, http.StatusOK, r.Status)
	return <-seen
}

func TestRequest(t *testing.T) {
	t.Parallel()
	b := batchOf(3)
	b.Group, b.Reason, b.Attempt = "customer 7/ä", core.ReasonWait, 4
	o := options("/in?token=t")
	o.Headers = []core.Header{{Name: "x-team", Value: "billing"}, {Name: "Authorization", Value: "Bearer s"}}
	got := capture(t, o, b)
	require.Equal(t, http.MethodPost, got.method)
	require.Equal(t, "/in?token=t", got.path)
	require.Equal(t, encoded(format.NDJSON, b), got.body)
	want := http.Header{
		"Authorization": {"Bearer s"}, "Content-Length": {"3051"}, "Content-Type": {"application/x-ndjson"},
		"User-Agent": {"sluice"}, "X-Team": {"billing"},
		"Webhook-Id": {"life-1"}, "Webhook-Timestamp": {"1772600767"},
		"Sluice-Buffer": {"crm-orders"}, "Sluice-Group": {"customer%207%2F%C3%A4"}, "Sluice-Items": {"3"},
		"Sluice-Reason": {"wait"}, "Sluice-Attempt": {"4"}, "Sluice-Oldest": {"2026-03-04T05:06:07.887Z"},
	}
	require.Empty(t, cmp.Diff(want, got.Header))
}

// A batch of a time window names it, in whatever format; no other does.
func TestRequestOfAWindow(t *testing.T) {
	t.Parallel()
	b := batchOf(1)
	require.NotContains(t, capture(t, options(""), b).Header, "Sluice-Window")
	for _, reason := range []core.Reason{core.ReasonWindow, core.ReasonFlush} {
		b.Reason, b.Window = reason, &core.Window{ID: "5e6f", Start: now - 60_000, End: now}
		got := capture(t, options(""), b)
		require.Equal(t, "5e6f", got.Get("Sluice-Window"))
		require.Equal(t, string(reason), got.Get("Sluice-Reason"))
	}
}

// A copy says that it is one.
func TestRequestOfAShadow(t *testing.T) {
	t.Parallel()
	b := batchOf(1)
	require.NotContains(t, capture(t, options(""), b).Header, "Sluice-Shadow")
	b.Shadow = true
	require.Equal(t, "true", capture(t, options(""), b).Get("Sluice-Shadow"))
}

func TestRequestConfiguredHeadersReplaceDefaults(t *testing.T) {
	t.Parallel()
	o := options("")
	o.Format = format.Envelope
	require.Equal(t, []string{"application/json"}, capture(t, o, batchOf(1)).Values("Content-Type"))
	o.Headers = []core.Header{{Name: "content-type", Value: "application/vnd.x+json"}, {Name: "user-agent", Value: "mine"}}
	got := capture(t, o, batchOf(1))
	require.Equal(t, []string{"application/vnd.x+json"}, got.Values("Content-Type"))
	require.Equal(t, []string{"mine"}, got.Values("User-Agent"))
}

func TestSignature(t *testing.T) {
	t.Parallel()
	const encodedSecret, rawSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "not base64, 1 key!"
	library := func(wh *standardwebhooks.Webhook, err error) *standardwebhooks.Webhook {
		require.NoError(t, err)
		return wh
	}
	first, second := library(standardwebhooks.NewWebhook(encodedSecret)), library(standardwebhooks.NewWebhookRaw([]byte(rawSecret)))
	other := library(standardwebhooks.NewWebhookRaw([]byte("other")))
	for _, tt := range []struct {
		name     string
		secrets  []string
		verifies []*standardwebhooks.Webhook
	}{
		{"base64", []string{encodedSecret}, []*standardwebhooks.Webhook{first}},
		{"raw", []string{rawSecret}, []*standardwebhooks.Webhook{second}},
		{"rotation", []string{encodedSecret, rawSecret}, []*standardwebhooks.Webhook{first, second}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := options("")
			o.Secrets = tt.secrets
			got := capture(t, o, batchOf(2))
			for _, wh := range tt.verifies {
				require.NoError(t, wh.VerifyIgnoringTimestamp([]byte(got.body), got.Header))
			}
			require.Error(t, other.VerifyIgnoringTimestamp([]byte(got.body), got.Header))
			parts := make([]string, len(tt.verifies))
			for i, wh := range tt.verifies {
				var err error
				parts[i], err = wh.Sign("life-1", now.Time(), []byte(got.body))
				require.NoError(t, err)
			}
			require.Equal(t, strings.Join(parts, " "), got.Get("Webhook-Signature"))
		})
	}
}

func TestPercentEncode(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, in, want string }{
		{"empty", "", ""},
		{"unreserved", "aZ09-._~", "aZ09-._~"},
		{"a path", "a/b c", "a%2Fb%20c"},
		{"line breaks", "a\r\nx: y", "a%0D%0Ax%3A%20y"},
		{"not UTF-8", "\xff\x00", "%FF%00"},
		{"an emoji", "😀", "%F0%9F%98%80"},
		{"exactly as long", strings.Repeat("a", 256), strings.Repeat("a", 256)},
		{"too long", strings.Repeat("a", 2_000), strings.Repeat("a", 256)},
		{"an escape over the end", strings.Repeat("a", 254) + "//", strings.Repeat("a", 254)},
		{"an escape up to the end", strings.Repeat("a", 253) + "//", strings.Repeat("a", 253) + "%2F"},
		{"a character over the end", strings.Repeat("a", 251) + "äb", strings.Repeat("a", 251)},
		{"nothing behind what was cut", strings.Repeat("a", 255) + "/b", strings.Repeat("a", 255)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := percentEncode(tt.in, maxGroup)
			require.Equal(t, tt.want, got)
			back, err := url.PathUnescape(got)
			require.NoError(t, err)
			require.True(t, strings.HasPrefix(tt.in, back))
		})
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	header := func(name, value string) func(*Options) {
		return func(o *Options) { o.Headers = []core.Header{{Name: name, Value: value}} }
	}
	address := func(url string) func(*Options) { return func(o *Options) { o.URL = url } }
	tests := []struct {
		name string
		with func(*Options)
		want string
	}{
		{"no URL", address(""), "scheme"},
		{"no host", address("http:///x?k=" + secret), "no host"},
		{"a port without a host", address("http://:80"), "no host"},
		{"another scheme", address("ftp://h/" + secret), `scheme "ftp"`},
		{"a path alone", address("/x?" + secret), "scheme"},
		{"broken", address("http://h/%zz?k=" + secret), "not a URL"},
		{"a control character", address("http://h/\n" + secret), "not a URL"},
		{"user and password", address("http://u:" + secret + "@h/"), "password"},
		{"no timeout", func(o *Options) { o.Timeout = 0 }, "timeout"},
		{"a negative timeout", func(o *Options) { o.Timeout = -time.Second }, "timeout"},
		{"no clock", func(o *Options) { o.Clock = nil }, "clock"},
		{"a header name with a space", header("x y", secret), `"x y"`},
		{"an empty header name", header("", secret), "no header name"},
		{"a line break in a header", header("x-a", secret+"\r\nx-b: 1"), "X-A"},
		{"a header of Sluice's", header("sluice-attempt", secret), "Sluice-Attempt"},
		{"a header of the signature's", header("WEBHOOK-ID", secret), "Webhook-Id"},
		{"a header of the connection's", header("transfer-encoding", secret), "Transfer-Encoding"},
		{"an empty secret", func(o *Options) { o.Secrets = []string{secret, ""} }, "secret 2 is empty"},
		{"a prefix alone", func(o *Options) { o.Secrets = []string{"whsec_"} }, "secret 1 is empty"},
		{"a secret that is not base64", func(o *Options) { o.Secrets = []string{"whsec_" + secret + "!"} }, "secret 1 is not base64"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := options("http://127.0.0.1/")
			tt.with(&o)
			_, err := New(o)
			require.ErrorContains(t, err, tt.want)
			require.Equal(t, core.Invalid, core.CodeOf(err))
			require.NotContains(t, err.Error(), secret)
		})
	}
}
