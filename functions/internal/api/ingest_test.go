package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/functions/internal/api"
)

const sourcePath = "/v1/sources/orders"

// TestBodies posts bodies that others lose, change or choke on: each is kept
// byte for byte, or refused with a reason.
func TestBodies(t *testing.T) {
	t.Parallel()
	const json = "application/json"
	deep := strings.Repeat("[", 5000) + strings.Repeat("]", 5000)
	tests := []struct {
		name, contentType, body string
		refusal                 string // part of the detail; "": accepted
	}{
		{"JSON", json, ` {"a" : 1} `, ""},
		{"JSON with a charset", "Application/JSON; charset=utf-8", `{}`, ""},
		{"text", "text/plain", "hello", ""},
		{"no content type", "", "hello", ""},
		{"any bytes", "application/octet-stream", "\x00\xff\x80", ""},
		{"text that would be bad JSON", "text/plain", "{", ""},
		{"a type that only ends like JSON", "application/notjson", "{", ""},
		{"an empty body", "", "", ""},
		{"an empty array", json, "[]", ""},
		{"a blank line", "text/plain", "\n", ""},
		{"spaces", "text/plain", strings.Repeat(" ", 1<<20), ""},
		{"a duplicate key", json, `{"a":1,"a":2}`, ""},
		{"a number beyond any", json, "1e999", ""},
		{"a deep array", json, deep, ""},
		{"a byte order mark as text", "text/plain", "\xef\xbb\xbf{}", ""},
		{"an empty body as JSON", json, "", "the body is not valid JSON: it is empty"},
		{"a blank line as JSON", json, "\n", "the body is not valid JSON"},
		{"spaces as JSON", json, strings.Repeat(" ", 1<<20), "the body is not valid JSON"},
		{"a byte order mark as JSON", json, "\xef\xbb\xbf{}", "begins with a byte order mark"},
		{"bad JSON", json, `{"a":1,}`, "invalid character '}' looking for beginning of object key string, at byte 8"},
		{"bad JSON of a type of its own", "application/vnd.acme+json", `{`, "unexpected end of JSON input, at byte 1"},
		{"brackets for ever", json, strings.Repeat("[", 1<<20), "exceeded max depth"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := setup(t, maxEventBytes(2*core.MiB), func(c *core.Config) { c.Buffers[0].Overflow.MaxBytes = 2 * core.MiB })
			r := request(http.MethodPost, sourcePath, tt.body)
			if tt.contentType != "" {
				r.Header.Set("Content-Type", tt.contentType)
			}
			w := h.do(r)
			if tt.refusal != "" {
				h.refused(w, http.StatusBadRequest, tt.refusal)
				return
			}
			accepted(t, w, "ID1")
			got := h.stored()
			require.Len(t, got, 1)
			require.Equal(t, tt.body, string(got[0].Body))
			require.Equal(t, tt.contentType, got[0].ContentType)
			require.Equal(t, "orders", got[0].Source)
			require.Equal(t, now, got[0].ReceivedAt)
		})
	}
}

func TestIDs(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 256)
	tests := []struct {
		name    string
		header  []string
		want    string
		refusal string
	}{
		{"minted", nil, "ID1", ""},
		{"webhook-id", []string{"webhook-id", "a", "Idempotency-Key", "b", "ce-id", "c"}, "a", ""},
		{"idempotency key", []string{"Idempotency-Key", "b", "ce-id", "c"}, "b", ""},
		{"ce-id", []string{"ce-id", "c"}, "c", ""},
		{"an empty one does not count", []string{"webhook-id", "", "ce-id", "c"}, "c", ""},
		{"all that ASCII prints", []string{"Idempotency-Key", `a "b" \c/ <d> é`}, `a "b" \c/ <d> é`, ""},
		{"percent-encoded ce-id", []string{"ce-id", "Euro%20%E2%82%AC"}, "Euro €", ""},
		{"a percent sign in ce-id", []string{"ce-id", "100%"}, "100%", ""},
		{"the longest", []string{"Idempotency-Key", long}, long, ""},
		{"too long", []string{"Idempotency-Key", long + "x"}, "", "idempotency-key has 257 bytes; at most 256 are allowed"},
		{"not UTF-8", []string{"webhook-id", "a\xff"}, "", "webhook-id must be printable text in UTF-8"},
		{"a control character", []string{"ce-id", "a%07"}, "", "ce-id must be printable text in UTF-8"},
		{"a line separator", []string{"webhook-id", "a\u2028"}, "", "webhook-id must be printable text in UTF-8"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := setup(t)
			w := h.post(sourcePath, "x", tt.header...)
			if tt.refusal != "" {
				h.refused(w, http.StatusBadRequest, tt.refusal)
				return
			}
			accepted(t, w, tt.want)
			require.Equal(t, tt.want, h.stored()[0].ID)
		})
	}
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	h := setup(t, auth(core.Auth{Bearer: []core.Secret{"env:ONE"}}))
	w := h.post(sourcePath, "x",
		"Authorization", "Bearer first-token", "Proxy-Authorization", "x", "Cookie", "x", "X-Api-Key", "x", "X-Auth-Token", "x",
		"X-Amz-Security-Token", "x", "Webhook-Signature", "x", "X-Client-Secret", "x", "X-CSRF-Token", "x",
		"Connection", "keep-alive, X-Hop", "X-Hop", "x", "Keep-Alive", "x", "Te", "x", "Upgrade", "x", "Expect", "x",
		"Accept", "x", "Accept-Encoding", "x", "Accept-Language", "x", "User-Agent", "x",
		"Content-Type", "text/plain", "Content-Encoding", "identity", "Content-Length", "1",
		"X-B", "2", "X-A", "1", "X-B", "3", "Traceparent", "00-1", "X-Empty", "", "Idempotency-Key", "k", "X-Hub-Signature-256", "s",
		"X-Forwarded-For", "192.0.2.7")
	accepted(t, w, "k")
	require.Empty(t, cmp.Diff([]core.Header{
		{Name: "idempotency-key", Value: "k"}, {Name: "traceparent", Value: "00-1"}, {Name: "x-a", Value: "1"},
		{Name: "x-b", Value: "2"}, {Name: "x-b", Value: "3"}, {Name: "x-empty"},
		{Name: "x-forwarded-for", Value: "192.0.2.7"}, {Name: "x-hub-signature-256", Value: "s"},
	}, h.stored()[0].Headers))
}

func TestHeaderLimit(t *testing.T) {
	t.Parallel()
	h := setup(t)
	most := strings.Repeat("x", 8<<10-len("x-a"))
	h.refused(h.post(sourcePath, "x", "X-A", most+"x"), http.StatusRequestHeaderFieldsTooLarge, "more than 8 KiB")
	accepted(t, h.post(sourcePath, "x", "X-A", most, "User-Agent", most), "ID1")
}

func TestCloudEvents(t *testing.T) {
	t.Parallel()
	const event = `{"specversion":"1.0","id":"A-1","source":"/s","type":"t","data":{"n":1}}`

	t.Run("structured", func(t *testing.T) {
		t.Parallel()
		h := setup(t)
		accepted(t, h.post(sourcePath, event, "Content-Type", "application/cloudevents+json; charset=utf-8", "ce-id", "other"), "A-1")
		require.Empty(t, cmp.Diff(event, string(h.stored()[0].Body)))
	})
	t.Run("binary", func(t *testing.T) {
		t.Parallel()
		h := setup(t)
		accepted(t, h.post(sourcePath, `{"n":1}`, "Content-Type", "application/json",
			"ce-specversion", "1.0", "ce-id", "A-1", "ce-source", "/s", "ce-type", "t"), "A-1")
		got := h.stored()[0]
		require.Equal(t, `{"n":1}`, string(got.Body))
		require.Empty(t, cmp.Diff([]core.Header{
			{Name: "ce-id", Value: "A-1"}, {Name: "ce-source", Value: "/s"},
			{Name: "ce-specversion", Value: "1.0"}, {Name: "ce-type", Value: "t"},
		}, got.Headers))
	})
	t.Run("a batch is refused where one is taken", func(t *testing.T) {
		t.Parallel()
		h := setup(t)
		h.refused(h.post(sourcePath, "["+event+"]", "Content-Type", "application/cloudevents-batch+json; charset=utf-8"),
			http.StatusUnsupportedMediaType, "post application/cloudevents-batch+json to the same path with /batch behind it")
	})
	for name, body := range map[string]string{
		"structured without an id":   `{"specversion":"1.0","source":"/s","type":"t"}`,
		"structured, a number as id": `{"specversion":"1.0","id":1,"source":"/s","type":"t"}`,
		"structured, an empty type":  `{"specversion":"1.0","id":"1","source":"/s","type":""}`,
		"structured, an array":       "[" + event + "]",
		"structured, empty":          "",
		"structured, an odd id":      `{"specversion":"1.0","id":"\u0000","source":"/s","type":"t"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := setup(t)
			h.refused(h.post(sourcePath, body, "Content-Type", "application/cloudevents+json"), http.StatusBadRequest, "")
		})
	}
}

func TestUnrouted(t *testing.T) {
	t.Parallel()
	h := setup(t, func(c *core.Config) { c.Sources = append(c.Sources, core.NewSource("nobody")) })
	w := h.post("/v1/sources/nobody", "x")
	require.Equal(t, http.StatusAccepted, w.Code)
	var a api.Accepted
	decode(t, w, &a)
	require.Equal(t, api.Accepted{IDs: []string{"ID1"}, Unrouted: 1}, a)
}

func TestUnknownSource(t *testing.T) {
	t.Parallel()
	h := setup(t)
	for _, path := range []string{"/v1/sources/other", "/v1/sources/other/batch", "/v1/sources/Orders"} {
		h.refused(h.post(path, "x"), http.StatusNotFound, "there is no source of this name")
	}
}

// TestRefusedByCore shows that what the core says reaches the sender.
func TestRefusedByCore(t *testing.T) {
	t.Parallel()
	h := setup(t, func(c *core.Config) { c.Buffers[0].Overflow.MaxItems = 1 })
	accepted(t, h.post(sourcePath, "x"), "ID1")
	w := h.post(sourcePath, "y")
	require.Equal(t, http.StatusServiceUnavailable, problem(t, w).Status)
	require.Equal(t, "1", w.Header().Get("Retry-After"))

	h = setup(t, func(c *core.Config) { c.Buffers[0].GroupBy = "{{ .json.k.x }}" })
	w = h.post(sourcePath, `{"k":1}`, "Content-Type", "application/json")
	h.refused(w, http.StatusBadRequest, "the group key of buffer crm-orders, {{ .json.k.x }}, fails on this event")
}

// TestRefusalsAreTold shows which refusals are told of: those of senders that
// are let in, of events that the ingester never sees.
func TestRefusalsAreTold(t *testing.T) {
	t.Parallel()
	json, ndjson := []string{"Content-Type", "application/json"}, []string{"Content-Type", "application/x-ndjson"}
	for _, tt := range []struct {
		name, path, body string
		header           []string
		told             []string
	}{
		{"taken", sourcePath, `{}`, json, nil},
		{"too large", sourcePath, `"` + strings.Repeat("x", 100) + `"`, json, []string{"orders 1"}},
		{"no JSON", sourcePath, `{`, json, []string{"orders 1"}},
		{"too many headers", sourcePath, `{}`, append(json, "X-A", strings.Repeat("x", 9000)), []string{"orders 1"}},
		{"a batch with a bad line", batchPath, "{}\n{", ndjson, []string{"orders 1"}},
		{"a batch with a bad id", batchPath, "{}\n{}\n{}", append(ndjson, "Idempotency-Key", strings.Repeat("x", 300)), []string{"orders 3"}},
		{"a batch that the ingester refuses", batchPath, `"` + strings.Repeat("x", 100) + `"`, ndjson, nil},
		{"no source", "/v1/sources/other", `{`, json, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := setup(t, maxEventBytes(64))
			h.post(tt.path, tt.body, tt.header...)
			require.Equal(t, tt.told, h.refusals)
		})
	}
	h := setup(t, auth(core.Auth{Bearer: []core.Secret{"env:ONE"}}))
	h.post(sourcePath, `{`, json...)
	require.Empty(t, h.refusals, "a stranger")
}
