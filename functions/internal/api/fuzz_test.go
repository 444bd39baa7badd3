package api_test

import (
	"net/http"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/functions/internal/api"
)

// FuzzIngest posts anything to a source: the answer is a documented one, is
// never a fault of ours, and what is not accepted leaves nothing behind.
func FuzzIngest(f *testing.F) {
	for _, s := range []struct{ contentType, body string }{
		{"application/json", `{"k":{"x":"a"}}`}, {"application/json", `{"k":1}`}, {"", ""}, {"text/plain", "x"},
		{ndjson, "1\n\n{\"k\":2}\r\n"}, {"application/json", `[1,{"k":{"x":3}}]`}, {cloud, "[" + cloudEvent("a") + "]"},
		{"application/cloudevents+json", cloudEvent("a")}, {"application/json", `["\"\\",{"]":[]}]`},
	} {
		f.Add(true, s.contentType, "", "Idempotency-Key", "k", []byte(s.body))
		f.Add(false, s.contentType, "", "Ce-Id", "%41", []byte(s.body))
		f.Add(true, s.contentType, "gzip", "X-A", "1", []byte(zip(f, s.body)))
	}
	documented := []int{202, 400, 413, 415, 431}
	f.Fuzz(func(t *testing.T, many bool, contentType, encoding, name, value string, body []byte) {
		h := setup(t, maxEventBytes(1000))
		h.build(config(maxEventBytes(1000), func(c *core.Config) { c.Buffers[0].GroupBy = "{{ .json.k.x }}" }),
			api.Options{MaxBatchBytes: 4000})
		path := sourcePath
		if many {
			path = batchPath
		}
		r := request(http.MethodPost, path, string(body), "Content-Type", contentType)
		if encoding != "" {
			r.Header.Set("Content-Encoding", encoding)
		}
		if !slices.Contains([]string{"Forwarded", "Origin", "X-Real-Ip"}, http.CanonicalHeaderKey(name)) {
			r.Header.Set(name, value)
		}
		w := h.do(r)
		require.Empty(t, h.log.String())
		if w.Code == http.StatusForbidden { // the fuzzer has found another mark of a proxy
			return
		}
		require.Contains(t, documented, w.Code)
		stored := h.stored()
		if w.Code != http.StatusAccepted {
			problem(t, w)
			require.Empty(t, stored)
			return
		}
		var a api.Accepted
		decode(t, w, &a)
		require.Len(t, stored, a.Accepted)
		require.Len(t, a.IDs, a.Accepted)
		if !many && encoding == "" {
			require.Equal(t, string(body), string(stored[0].Body))
			require.Equal(t, a.IDs[0], stored[0].ID)
		}
	})
}
