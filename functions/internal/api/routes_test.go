package api_test

import (
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/functions/internal/api"
)

func TestPaths(t *testing.T) {
	t.Parallel()
	h := setup(t)
	for _, path := range []string{
		"/", "/v1", "/v1/", "/v2/buffers", "/v1/sources", "/v1/sources/", "/v1/sources//batch", "/v1/sources/orders/",
		"/v1/sources/orders/batch/", "/v1/sources/orders/other", "/v1/sources/orders%2Fother", "/v1/sources/orders%2Fbatch", "/v1/sources/orders%2fbatch", "/v1%2Fsources/orders",
		"/v1/buffers/crm-orders%2Fgroups", "/v1/deadletters%2Freplay", "//v1/sources/orders",
		"/v1/buffers/", "/v1/buffers//groups", "/v1/buffers/crm-orders/", "/v1/buffers/crm-orders/groups/a", "/v1/buffers/crm-orders/flush/",
		"/v1/buffers//flush", "/v1/buffers/flush/flush/flush", "/v1/buffers/crm-orders%2Fflush", "/v1/flush/", "/v1/flush/crm-orders", "/v1/deadletters/", "/v1/deadletters/replay/x", "/healthz/", "/HEALTHZ", "/metrics/x",
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost, "BREW"} {
			p := problem(t, h.do(request(method, path, "")))
			require.Equal(t, http.StatusNotFound, p.Status, "%s %s", method, path)
		}
	}
}

func TestMethods(t *testing.T) {
	t.Parallel()
	h := setup(t)
	wrong := func(path, allow string, methods ...string) {
		for _, method := range methods {
			w := h.do(request(method, path, ""))
			require.Equal(t, http.StatusMethodNotAllowed, problem(t, w).Status, "%s %s", method, path)
			require.Equal(t, allow, w.Header().Get("Allow"))
		}
	}
	for _, path := range []string{sourcePath, batchPath, "/v1/deadletters/replay", "/v1/flush", "/v1/buffers/x/flush", "/v1/sources/other"} {
		require.Equal(t, http.StatusMethodNotAllowed, h.do(request(http.MethodHead, path, "")).Code)
		wrong(path, "POST", http.MethodGet, http.MethodPut, http.MethodDelete, http.MethodOptions, "post")
	}
	for _, path := range []string{"/v1/buffers", "/v1/buffers/x", "/v1/buffers/x/groups", "/v1/deadletters", "/healthz", "/readyz", "/metrics"} {
		wrong(path, "GET, HEAD", http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions, "get")
	}
}

// TestHead shows that a HEAD answers what a GET does, without the body.
func TestHead(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.build(config(), api.Options{Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		_, _ = io.WriteString(w, "sluice_groups 1\n")
	})})
	for _, path := range []string{"/healthz", "/readyz", "/metrics", "/v1/buffers", "/v1/buffers/crm-orders", "/v1/buffers/crm-orders/groups", "/v1/deadletters", "/v1/buffers/x"} {
		get, head := h.get(path), h.do(request(http.MethodHead, path, ""))
		require.Equal(t, get.Code, head.Code, path)
		require.Equal(t, get.Header(), head.Header(), path)
		require.NotZero(t, get.Body.Len(), path)
		require.Zero(t, head.Body.Len(), path)
	}
}

func TestHealth(t *testing.T) {
	t.Parallel()
	h := setup(t)
	elsewhereGet := func(path string) (int, string) {
		w := h.do(from(request(http.MethodGet, path, ""), elsewhere, public))
		return w.Code, w.Body.String()
	}
	code, body := elsewhereGet("/healthz")
	require.Equal(t, http.StatusOK, code)
	require.JSONEq(t, `{"status":"ok"}`, body)
	code, body = elsewhereGet("/readyz")
	require.Equal(t, http.StatusOK, code)
	require.JSONEq(t, `{"status":"ready"}`, body)

	h.ready = io.ErrClosedPipe
	w := h.get("/readyz")
	require.NotContains(t, w.Body.String(), "closed pipe")
	h.refused(w, http.StatusServiceUnavailable, "not ready to take events")
	h.ready = core.Errorf(core.Internal, "the configuration is being read again")
	h.refused(h.get("/readyz"), http.StatusServiceUnavailable, "the configuration is being read again")
	code, _ = elsewhereGet("/healthz")
	require.Equal(t, http.StatusOK, code, "alive, though not ready")
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.refused(h.get("/metrics"), http.StatusNotFound, "there are no metrics here")
	h.build(config(), api.Options{Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "sluice_groups 1\n")
	})})
	require.Equal(t, "sluice_groups 1\n", h.get("/metrics").Body.String())
	h.refused(h.do(from(request(http.MethodGet, "/metrics", ""), elsewhere, public)), http.StatusForbidden, "")
}
