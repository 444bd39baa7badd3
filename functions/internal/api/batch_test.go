package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/functions/internal/api"
)

const (
	batchPath = sourcePath + "/batch"
	ndjson    = "application/x-ndjson"
	cloud     = "application/cloudevents-batch+json"
)

func cloudEvent(id string) string {
	return `{"specversion":"1.0","id":"` + id + `","source":"/s","type":"t"}`
}

func TestBatch(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, contentType, body string
		header                  []string
		want                    map[string]string // bodies by id
		itemType                string
	}{
		{"NDJSON", ndjson, "{\"n\":1}\n\n2\r\n", nil, map[string]string{"ID1": `{"n":1}`, "ID2": "2"}, "application/json"},
		{"by its other name", "application/jsonl; charset=utf-8", "1\n", nil, map[string]string{"ID1": "1"}, "application/json"},
		{"an array", "application/json", `[ {"n" : 1}, [2] ]`, nil, map[string]string{"ID1": `{"n" : 1}`, "ID2": "[2]"}, "application/json"},
		{"CloudEvents", cloud, "[" + cloudEvent("a") + "]", []string{"Idempotency-Key", "k"},
			map[string]string{"a": cloudEvent("a")}, "application/cloudevents+json"},
		{"an idempotency key", ndjson, "1\n\n2\n", []string{"Idempotency-Key", "k"}, map[string]string{"k-1": "1", "k-2": "2"}, "application/json"},
		{"a webhook-id", ndjson, "1\n2\n", []string{"webhook-id", "w", "Idempotency-Key", "k"}, map[string]string{"w-1": "1", "w-2": "2"}, "application/json"},
		{"a ce-id is no id of many", ndjson, "1\n2\n", []string{"ce-id", "c"}, map[string]string{"ID1": "1", "ID2": "2"}, "application/json"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := setup(t)
			w := h.post(batchPath, tt.body, append(tt.header, "Content-Type", tt.contentType, "X-Tenant", "t")...)
			var a api.Accepted
			decode(t, w, &a)
			require.Equal(t, http.StatusAccepted, w.Code)
			require.Equal(t, len(tt.want), a.Accepted)
			got := map[string]string{}
			for i, e := range h.stored() {
				require.Equal(t, a.IDs[i], e.ID)
				require.Equal(t, tt.itemType, e.ContentType)
				require.Contains(t, e.Headers, core.Header{Name: "x-tenant", Value: "t"})
				got[e.ID] = string(e.Body)
			}
			require.Empty(t, cmp.Diff(tt.want, got))
		})
	}
}

func TestBatchRefused(t *testing.T) {
	t.Parallel()
	const json = "application/json"
	many := strings.Repeat("1\n", 10_001)
	tests := []struct {
		name, contentType, body string
		status                  int
		detail                  string
	}{
		{"no content type", "", "1\n", 415, "the content type of a batch must be application/x-ndjson, application/json (an array) or application/cloudevents-batch+json"},
		{"text", "text/plain", "1\n", 415, ""},
		{"one CloudEvent", "application/cloudevents+json", cloudEvent("a"), 415, ""},
		{"a bad line", ndjson, "1\n{\n3\n", 400, "line 2 is not valid JSON: unexpected end of JSON input, at byte 1"},
		{"a bad line behind blank ones", ndjson, "1\n\n\n{\n", 400, "line 4 is not valid JSON"},
		{"a bad item", json, `[1,2,x]`, 400, "item 3 is not valid JSON: invalid character 'x' looking for beginning of value, at byte 1"},
		{"no array", json, `{"a":1}`, 400, "the body is not a JSON array"},
		{"an empty body", ndjson, "", 400, "the body has no events"},
		{"an empty array", json, "[]", 400, "the body has no events"},
		{"no CloudEvents", cloud, "[]", 400, "the body has no events"},
		{"a blank line", ndjson, "\n", 400, "the body has no events"},
		{"spaces", ndjson, strings.Repeat(" ", 1<<20), 400, "the body has no events"},
		{"spaces for an array", json, strings.Repeat(" ", 1<<20), 400, "the body is not a JSON array"},
		{"a byte order mark", ndjson, "\xef\xbb\xbf1\n", 400, "line 1 is not valid JSON: it begins with a byte order mark"},
		{"too many", ndjson, many, 413, "the body has more than 10000 events"},
		{"too many items", json, "[" + strings.Repeat("1,", 10_000) + "1]", 413, "the body has more than 10000 events"},
		{"too large a line", ndjson, "1\n\n\"" + strings.Repeat("x", 256<<10) + "\"\n", 413, "line 3: the event has 262146 bytes; source orders takes at most 262144"},
		{"too large an item", json, "[1,\"" + strings.Repeat("x", 256<<10) + "\"]", 413, "item 2: the event has 262146 bytes"},
		{"an item that is no CloudEvent", cloud, "[" + cloudEvent("a") + ",{}]", 400, "item 2 is not a CloudEvent: specversion must be"},
		{"an odd id of a CloudEvent", cloud, "[" + cloudEvent("a") + "," + cloudEvent(strings.Repeat("i", 257)) + "]", 400, "item 2: the event's id has 257 bytes"},
		{"brackets for ever", json, strings.Repeat("[", 1<<20), 400, "is not valid JSON"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := setup(t)
			r := request(http.MethodPost, batchPath, tt.body)
			if tt.contentType != "" {
				r.Header.Set("Content-Type", tt.contentType)
			}
			h.refused(h.do(r), tt.status, tt.detail)
		})
	}
}

// TestBatchOfTheMost sends as many events as one request may bring.
func TestBatchOfTheMost(t *testing.T) {
	t.Parallel()
	h := setup(t)
	w := h.post(batchPath, strings.Repeat("1\n", 10_000), "Content-Type", ndjson)
	require.Equal(t, http.StatusAccepted, w.Code)
	require.Len(t, h.stored(), 10_000)
}

// TestOneOfMany posts a thousand events for a thousand keys, of one of which
// the key's template fails: it is named, and none is stored.
func TestOneOfMany(t *testing.T) {
	t.Parallel()
	var lines, items []string
	for i := range 1000 {
		e := fmt.Sprintf(`{"k":{"x":"key %d"}}`, i)
		if i == 700 {
			e = `{"k":7}`
		}
		lines, items = append(lines, e, ""), append(items, e)
	}
	template := func(c *core.Config) { c.Buffers[0].GroupBy = "{{ .json.k.x }}" }
	h := setup(t, template)
	h.refused(h.post(batchPath, strings.Join(lines, "\n"), "Content-Type", ndjson), http.StatusBadRequest,
		"line 1401: the group key of buffer crm-orders, {{ .json.k.x }}, fails on this event")
	h.refused(h.post(batchPath, "["+strings.Join(items, ",")+"]", "Content-Type", "application/json"), http.StatusBadRequest,
		"item 701: the group key of buffer crm-orders")
}

// TestBatchHeaderLimit bounds what headers that each event keeps come to.
func TestBatchHeaderLimit(t *testing.T) {
	t.Parallel()
	h := setup(t)
	value := strings.Repeat("x", 8<<10-len("x-a"))
	w := h.post(batchPath, strings.Repeat("1\n", 4097), "Content-Type", ndjson, "X-A", value)
	h.refused(w, http.StatusRequestHeaderFieldsTooLarge, "kept with each of 4097 events")
	w = h.post(batchPath, strings.Repeat("1\n", 4096), "Content-Type", ndjson, "X-A", value)
	require.Equal(t, http.StatusAccepted, w.Code)
}
