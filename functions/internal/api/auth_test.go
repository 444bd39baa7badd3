package api_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/functions/internal/api"
	"sluice/infra/memory"
)

// from makes a request come from a peer, for a host.
func from(r *http.Request, peer, host string) *http.Request {
	r.RemoteAddr, r.Host = peer, host
	return r
}

const (
	elsewhere = "192.0.2.1:1234"
	public    = "sluice.example.com"
)

func TestBearer(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, header string
		status       int
	}{
		{"the first token", "Bearer first-token", 202},
		{"the second token", "Bearer second-token", 202},
		{"the scheme in lower case", "bearer first-token", 202},
		{"spaces around it", "Bearer   first-token ", 202},
		{"a wrong one", "Bearer first-tokem", 401},
		{"a part of one", "Bearer first", 401},
		{"more than one", "Bearer first-token second-token", 401},
		{"an empty one", "Bearer ", 401},
		{"no scheme", "first-token", 401},
		{"another scheme", "Basic first-token", 401},
		{"the control token", "Bearer control-token", 401},
		{"none", "", 401},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := setup(t, auth(core.Auth{Bearer: []core.Secret{"env:ONE", "env:TWO"}}), func(c *core.Config) {
				c.Control.Tokens = []core.Secret{"env:CONTROL"}
			})
			for _, path := range []string{sourcePath, batchPath} {
				r := from(request(http.MethodPost, path, "1", "Content-Type", ndjson), elsewhere, public)
				if tt.header != "" {
					r.Header.Set("Authorization", tt.header)
				}
				w := h.do(r)
				require.Equal(t, tt.status, w.Code)
				if tt.status == http.StatusUnauthorized {
					require.Equal(t, "Bearer", w.Header().Get("WWW-Authenticate"))
					h.refused(w, 401, "send one of the tokens as Authorization: Bearer <token>")
				}
			}
		})
	}
}

// TestBearerFirst shows that nothing is read of a body whose sender is not let in.
func TestBearerFirst(t *testing.T) {
	t.Parallel()
	h := setup(t, auth(core.Auth{Bearer: []core.Secret{"env:ONE"}}))
	body := &counted{Reader: zeros{}}
	r := request(http.MethodPost, sourcePath, "")
	r.Body, r.ContentLength = body, -1
	h.refused(h.do(r), http.StatusUnauthorized, "")
	require.Zero(t, body.n)
}

func TestOpen(t *testing.T) {
	t.Parallel()
	h := setup(t, auth(core.Auth{Open: true}))
	r := from(request(http.MethodPost, sourcePath, "x", "Origin", "https://evil.example", "X-Forwarded-For", "192.0.2.9"), elsewhere, public)
	accepted(t, h.do(r), "ID1")
}

// sign signs a body as a sender with the library of Standard Webhooks does.
func sign(t testing.TB, r *http.Request, secret, id, body string, at time.Time) {
	t.Helper()
	wh, err := standardwebhooks.NewWebhook(secret)
	require.NoError(t, err)
	s, err := wh.Sign(id, at, []byte(body))
	require.NoError(t, err)
	r.Header.Set("Webhook-Id", id)
	r.Header.Set("Webhook-Timestamp", fmt.Sprint(at.Unix()))
	r.Header.Set("Webhook-Signature", s)
}

func TestWebhook(t *testing.T) {
	t.Parallel()
	const body = `{"n":1}`
	one, two := secrets["env:SIGN"], secrets["env:SIGN2"]
	const wrong = "webhook-signature must have a v1 signature of this body"
	const late = "webhook-timestamp must be within 5 minutes of the time here"
	tests := []struct {
		name   string
		secret string
		at     time.Duration // from now
		change func(r *http.Request)
		detail string // of the 401; "": accepted
	}{
		{"by the first secret", one, 0, nil, ""},
		{"by the second secret", two, 0, nil, ""},
		{"by another", "aGVsbG8gd29ybGQ=", 0, nil, wrong},
		{"five minutes old", one, -5 * time.Minute, nil, ""},
		{"older", one, -5*time.Minute - time.Second, nil, late},
		{"five minutes ahead", one, 5 * time.Minute, nil, ""},
		{"further ahead", one, 5*time.Minute + time.Second, nil, late},
		{"among others", one, 0, func(r *http.Request) {
			r.Header.Set("Webhook-Signature", "v1a,xx v1,bm8= "+r.Header.Get("Webhook-Signature"))
		}, ""},
		{"of another version", one, 0, func(r *http.Request) {
			r.Header.Set("Webhook-Signature", "v2"+r.Header.Get("Webhook-Signature")[2:])
		}, wrong},
		{"of another id", one, 0, func(r *http.Request) { r.Header.Set("Webhook-Id", "other") }, wrong},
		{"of another time", one, 0, func(r *http.Request) {
			r.Header.Set("Webhook-Timestamp", fmt.Sprint(int64(now)/1000+1))
		}, wrong},
		{"no time", one, 0, func(r *http.Request) { r.Header.Set("Webhook-Timestamp", "yesterday") }, "webhook-timestamp must be a time"},
		{"without an id", one, 0, func(r *http.Request) { r.Header.Del("Webhook-Id") }, "sign the request as Standard Webhooks has it"},
		{"without a time", one, 0, func(r *http.Request) { r.Header.Del("Webhook-Timestamp") }, "sign the request as Standard Webhooks has it"},
		{"without a signature", one, 0, func(r *http.Request) { r.Header.Del("Webhook-Signature") }, "sign the request as Standard Webhooks has it"},
		{"with a token instead", "aGVsbG8gd29ybGQ=", 0, func(r *http.Request) { r.Header.Set("Authorization", "Bearer first-token") }, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := setup(t, auth(core.Auth{Webhook: []core.Secret{"env:SIGN", "env:SIGN2"}, Bearer: []core.Secret{"env:ONE"}}))
			r := from(request(http.MethodPost, sourcePath, body), elsewhere, public)
			sign(t, r, tt.secret, "msg_1", body, now.Time().Add(tt.at))
			if tt.change != nil {
				tt.change(r)
			}
			w := h.do(r)
			if tt.detail != "" {
				h.refused(w, http.StatusUnauthorized, tt.detail)
				return
			}
			accepted(t, w, "msg_1")
			require.NotContains(t, fmt.Sprint(h.stored()[0].Headers), "v1,")
		})
	}
}

// TestWebhookBody shows that the signature is over the body as it is after
// decoding, of a batch as of an event, and that a changed body is refused.
func TestWebhookBody(t *testing.T) {
	t.Parallel()
	h := setup(t, auth(core.Auth{Webhook: []core.Secret{"env:SIGN"}}))

	r := request(http.MethodPost, sourcePath, "changed")
	sign(t, r, secrets["env:SIGN"], "a", "original", now.Time())
	h.refused(h.do(r), http.StatusUnauthorized, "webhook-signature")

	h.refused(setup(t, auth(core.Auth{Bearer: []core.Secret{"env:ONE"}, Webhook: []core.Secret{"env:SIGN"}})).post(sourcePath, "x"),
		http.StatusUnauthorized, "Bearer <token>, or sign the request")

	r = request(http.MethodPost, sourcePath, "x") // from loopback, unsigned
	h.refused(h.do(r), http.StatusUnauthorized, "sign the request")

	r = request(http.MethodPost, sourcePath, zip(t, "original"), "Content-Encoding", "gzip")
	sign(t, r, secrets["env:SIGN"], "b", "original", now.Time())
	accepted(t, h.do(r), "b")

	r = request(http.MethodPost, batchPath, "1\n2\n", "Content-Type", ndjson)
	sign(t, r, secrets["env:SIGN"], "c", "1\n2\n", now.Time())
	accepted(t, h.do(r), "c-1", "c-2")
}

// TestLoopback asks for what is for loopback only, in every way in which a
// request may come from elsewhere after all.
func TestLoopback(t *testing.T) {
	t.Parallel()
	const here = "127.0.0.1:50000"
	tests := []struct {
		name, peer, host string
		header           []string
		reason           string // "": let in
	}{
		{"IPv4", here, "127.0.0.1:8080", nil, ""},
		{"IPv6", "[::1]:50000", "[::1]:8080", nil, ""},
		{"IPv4 in IPv6", "[::ffff:127.0.0.1]:50000", "localhost", nil, ""},
		{"another loopback address", "127.8.8.8:1", "127.8.8.8", nil, ""},
		{"a bare IPv6 host", here, "[::1]", nil, ""},
		{"a name below localhost", here, "sluice.localhost:8080", nil, ""},
		{"localhost in capitals, with a dot", here, "LOCALHOST.:8080", nil, ""},
		{"a page on this machine", here, "localhost:8080", []string{"Origin", "http://localhost:3000", "Sec-Fetch-Site", "same-site"}, ""},
		{"another machine", elsewhere, "localhost:8080", nil, "this one is on another"},
		{"no peer", "", "localhost:8080", nil, "this one is on another"},
		{"a socket", "@", "localhost:8080", nil, "this one is on another"},
		{"a public name (DNS rebinding)", here, public, nil, "asks for another host"},
		{"a name that begins like localhost", here, "localhost.example.com", nil, "asks for another host"},
		{"a name that ends like localhost", here, "evillocalhost", nil, "asks for another host"},
		{"a private address", here, "10.0.0.1:8080", nil, "asks for another host"},
		{"no host", here, "", nil, "asks for another host"},
		{"a proxy", here, "localhost", []string{"X-Forwarded-For", "127.0.0.1"}, "came through a proxy (X-Forwarded-For)"},
		{"a proxy that says nothing", here, "localhost", []string{"Forwarded", ""}, "came through a proxy (Forwarded)"},
		{"nginx", here, "localhost", []string{"X-Real-IP", "192.0.2.1"}, "came through a proxy"},
		{"another site's page", here, "localhost", []string{"Origin", "https://evil.example"}, "made by another site (Origin)"},
		{"a page without an origin", here, "localhost", []string{"Origin", "null"}, "made by another site (Origin)"},
		{"another site's image", here, "localhost", []string{"Sec-Fetch-Site", "cross-site"}, "made by another site (Sec-Fetch-Site)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := setup(t)
			source := h.do(from(request(http.MethodPost, sourcePath, "x", tt.header...), tt.peer, tt.host))
			control := h.do(from(request(http.MethodGet, "/v1/buffers", "", tt.header...), tt.peer, tt.host))
			if tt.reason == "" {
				require.Equal(t, http.StatusAccepted, source.Code)
				require.Equal(t, http.StatusOK, control.Code)
				return
			}
			h.refused(control, http.StatusForbidden, tt.reason)
			h.refused(source, http.StatusForbidden, tt.reason)
		})
	}
}

// TestRemedy shows that who is shut out learns how to be let in.
func TestRemedy(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.refused(h.do(from(request(http.MethodPost, sourcePath, "x"), elsewhere, public)), http.StatusForbidden,
		"to let others in, set sources.orders.auth in the configuration")
	h.refused(h.do(from(request(http.MethodGet, "/v1/buffers", ""), elsewhere, public)), http.StatusForbidden,
		"to let others in, set control.tokens in the configuration")
}

// controlCalls are all the calls that need a control token, if there is one.
var controlCalls = [][2]string{
	{http.MethodGet, "/v1/buffers"},
	{http.MethodGet, "/v1/buffers/crm-orders"},
	{http.MethodGet, "/v1/buffers/crm-orders/groups"},
	{http.MethodGet, "/v1/deadletters"},
	{http.MethodPost, "/v1/deadletters/replay"},
	{http.MethodPost, "/v1/flush"},
	{http.MethodPost, "/v1/buffers/crm-orders/flush"},
	{http.MethodGet, "/metrics"},
}

func TestControlToken(t *testing.T) {
	t.Parallel()
	c := config(auth(core.Auth{Bearer: []core.Secret{"env:ONE"}}), func(c *core.Config) { c.Control.Tokens = []core.Secret{"env:CONTROL"} })
	h := setup(t)
	h.build(c, api.Options{Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })})
	send := func(call [2]string, token string) *httptest.ResponseRecorder {
		r := from(request(call[0], call[1], ""), elsewhere, public)
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		return h.do(r)
	}
	for _, call := range controlCalls {
		require.Equal(t, http.StatusOK, send(call, "control-token").Code, call)
		require.Equal(t, http.StatusUnauthorized, send(call, "first-token").Code, call)
		require.Equal(t, http.StatusUnauthorized, send(call, "").Code, call)
		require.Equal(t, http.StatusUnauthorized, h.do(request(call[0], call[1], "")).Code, "loopback needs it too: %s", call)
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		require.Equal(t, http.StatusOK, send([2]string{http.MethodGet, path}, "").Code)
	}
}

func TestSecretsThatDoNotWork(t *testing.T) {
	t.Parallel()
	catalog, err := core.NewCatalog(config(func(c *core.Config) {
		c.Control.Tokens = []core.Secret{"env:CONTROL", "env:EMPTY"}
		c.Sources[0].Auth = &core.Auth{Bearer: []core.Secret{"env:MISSING"}, Webhook: []core.Secret{"env:SIGN", "env:BAD"}}
	}), nil)
	require.NoError(t, err)
	const ofControl = "control.tokens[1] is empty: it would let anybody in"
	const ofSources = `sources.orders.auth.bearer[0] can't be resolved: it is not set
sources.orders.auth.webhook.secrets[1] is not a secret of Standard Webhooks: it must be whsec_ and standard base64`
	in, store := core.NewIngester(catalog, core.Ports{}), memory.New()
	for _, tt := range []struct {
		name    string
		backend api.Backend
		want    string
	}{
		{"the whole API", api.Backend{Catalog: catalog, Ingester: in, Store: store}, ofControl + "\n" + ofSources},
		{"sources alone", api.Backend{Catalog: catalog, Ingester: in}, ofSources},
		{"control calls alone", api.Backend{Catalog: catalog, Store: store}, ofControl},
	} {
		_, err = api.New(tt.backend, api.Options{Resolve: resolve})
		require.EqualError(t, err, tt.want, tt.name)
	}
}
