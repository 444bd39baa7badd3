package scenario

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/stretchr/testify/require"
)

// inputs are the scenarios about what is posted.
func inputs() []scenario {
	return []scenario{{
		name:   "weird keys",
		buffer: ", batch: {idleTimeoutMs: 200}",
		run:    weirdKeys,
	}, {
		name:   "bad requests",
		source: ", maxEventBytes: 4KiB",
		buffer: ", batch: {idleTimeoutMs: 200}",
		run:    badRequests,
	}}
}

// weirdKeys: a key is any text, and each its own group.
func weirdKeys(w *world) {
	keys := []string{
		"", " ", "a", "A", "a ", "a/b", "a#b", "a?b=c&d", "%41", "..", "\\", `"`, "'", "{{ .json.k }}", "\n", "\t\r", "\x7f",
		"ключ", "é", "e\u0301", "🐘", "\u202e", strings.Repeat("x", 2048), strings.Repeat("é", 1024),
	}
	byGroup := make(map[string]string) // the event, by its group
	for i, key := range keys {
		text, err := json.Marshal(map[string]any{"k": key, "n": i})
		require.NoError(w, err)
		byGroup[key] = string(text)
		w.accept(string(text))
	}
	for range keys {
		d := w.next()
		require.Len(w, d.Lines, 1, "groups do not mix")
		var e struct {
			K string `json:"k"`
		}
		require.NoError(w, json.Unmarshal([]byte(d.Lines[0]), &e))
		require.Equal(w, byGroup[e.K], d.Lines[0])
		delete(byGroup, e.K)
		group := d.Header.Get("Sluice-Group")
		name, err := url.PathUnescape(group)
		require.NoError(w, err)
		require.True(w, strings.HasPrefix(e.K, strings.ToValidUTF8(name, "")), "%q is no %q", name, e.K)
		require.LessOrEqual(w, len(group), 256)
	}
	require.Empty(w, byGroup)
}

// badRequests are refused as a whole, and leave nothing behind.
func badRequests(w *world) {
	const (
		single = "/v1/sources/in"
		batch  = "/v1/sources/in/batch"
		text   = "application/json"
		ndjson = "application/x-ndjson"
	)
	tests := []struct {
		name, path, contentType, body string
		status                        int
		detail                        string
	}{
		{"no such source", "/v1/sources/none", text, `{}`, 404, "no source of this name"},
		{"no JSON", single, text, `{"k":`, 400, ""},
		{"too large", single, "text/plain", strings.Repeat("x", 4097), 413, "4096"},
		{"too long a key", single, text, fmt.Sprintf(`{"k":%q}`, strings.Repeat("k", 2049)), 400, "2049"},
		{"a bad line", batch, ndjson, event("a", 1) + "\n{\"k\":\n" + event("a", 3), 400, "line 2"},
		{"a bad item", batch, text, `[` + event("a", 1) + `,]`, 400, ""},
		{"a large line", batch, ndjson, event("a", 1) + "\n" + `{"k":"` + strings.Repeat("x", 4097) + `"}`, 413, "line 2"},
		{"no such format", batch, "text/csv", "a,b", 415, ""},
		{"no such destination", "/v1/deadletters/replay", text, `{"to":"none"}`, 400, "none"},
		{"no such field", "/v1/deadletters/replay", text, `{"bufer":"b"}`, 400, "not a replay"},
	}
	for _, tt := range tests {
		status, answer, header := w.call(http.MethodPost, tt.path, tt.contentType, tt.body)
		require.Equal(w, tt.status, status, "%s: %s", tt.name, answer)
		require.Equal(w, "application/problem+json", header.Get("Content-Type"), tt.name)
		require.Contains(w, answer, tt.detail, tt.name)
	}
	status, _, _ := w.call(http.MethodGet, "/elsewhere", "", "")
	require.Equal(w, http.StatusNotFound, status)
	anybody, err := w.client.Get(w.URL() + "/v1/buffers") //nolint:noctx // the client has a timeout
	require.NoError(w, err)
	require.NoError(w, anybody.Body.Close())
	require.Equal(w, http.StatusUnauthorized, anybody.StatusCode)

	w.accept(event("a", 9))
	require.Equal(w, []string{event("a", 9)}, w.next().Lines)
	w.over()
}
