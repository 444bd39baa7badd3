package api_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/functions/internal/api"
)

// A part of the API that a process does not have is not there for anybody.
func TestPartsThatAreAbsent(t *testing.T) {
	t.Parallel()
	h := setup(t)
	catalog, err := core.NewCatalog(config())
	require.NoError(t, err)
	whole := api.Backend{
		Catalog: catalog, Ready: func() error { return nil }, Ingester: core.NewIngester(catalog, core.Ports{}),
		Store: h.store, Replayer: h, DeadLetters: h.store.DeadLetters(), Attempts: &h.attempts,
	}
	sources, controls := whole, whole
	sources.Store, sources.Replayer, sources.DeadLetters, sources.Attempts = nil, nil, nil, nil
	controls.Ingester = nil

	intake := [][2]string{{http.MethodPost, sourcePath}, {http.MethodPost, sourcePath + "/batch"}}
	probes := [][2]string{{http.MethodGet, "/healthz"}, {http.MethodGet, "/readyz"}}
	for _, tt := range []struct {
		name          string
		backend       api.Backend
		there, absent [][2]string
	}{
		{"sources alone", sources, probes, controlCalls},
		{"control calls alone", controls, append(probes, controlCalls[:5]...), intake},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			handler, err := api.New(tt.backend, api.Options{Clock: clock, Resolve: resolve})
			require.NoError(t, err)
			do := func(call [2]string) *httptest.ResponseRecorder {
				w := httptest.NewRecorder()
				handler.ServeHTTP(w, request(call[0], call[1], ""))
				return w
			}
			for _, call := range tt.there {
				require.Equal(t, http.StatusOK, do(call).Code, call)
			}
			for _, call := range tt.absent {
				require.Equal(t, http.StatusNotFound, do(call).Code, call)
			}
		})
	}
}

// A list whose answer is bounded ends early, and the next one goes on there.
func TestListOfBoundedBytes(t *testing.T) {
	t.Parallel()
	const letters, size = 40, 300 << 10
	h := setup(t)
	for i := range letters {
		require.NoError(t, h.store.DeadLetters().Put(t.Context(), []core.DeadLetter{{
			ID: fmt.Sprintf("B/%02d", i), Buffer: "crm-orders", Item: core.Item{Event: core.Event{Body: []byte(strings.Repeat("x", size))}},
		}}))
	}
	h.build(config(), api.Options{MaxListBytes: 2 << 20})
	var seen []string
	for after := ""; ; {
		var list api.DeadLetterList
		w := h.get("/v1/deadletters?limit=1000&after=" + after)
		decode(t, w, &list)
		require.LessOrEqual(t, len(list.DeadLetters), 7, "2 MiB are reached with the seventh")
		for _, l := range list.DeadLetters {
			seen = append(seen, l.ID)
		}
		if after = list.Next; after == "" {
			break
		}
	}
	require.Len(t, seen, letters)
	require.IsIncreasing(t, seen)
}

func TestRefuse(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	api.Refuse(w, core.Errorf(core.TooLarge, "the answer is too large"))
	require.Equal(t, http.StatusRequestEntityTooLarge, w.Code)
	require.Equal(t, "the answer is too large", problem(t, w).Detail)
}
