package api_test

import (
	"context"
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
	catalog, err := core.NewCatalog(config(), nil)
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
		require.LessOrEqual(t, len(list.DeadLetters), 6, "a seventh is more than 2 MiB")
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

// looks counts the calls that a list of dead letters makes.
type looks struct {
	api.DeadLetters

	calls  int
	filter core.DeadLetterFilter
	limit  int
}

func (l *looks) List(ctx context.Context, f core.DeadLetterFilter, from string, limit int) ([]core.DeadLetter, string, error) {
	l.calls++
	l.filter, l.limit = f, limit
	return l.DeadLetters.List(ctx, f, from, limit)
}

// A list is one look at the queue, which may be all that there is time for.
func TestListIsOneLook(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.bury("removed", 1000, 1)
	catalog, err := core.NewCatalog(config(), nil)
	require.NoError(t, err)
	for target, want := range map[string]int{
		"/v1/deadletters?limit=1000":                           1000,
		"/v1/deadletters?buffer=removed&limit=1000":            1000,
		"/v1/deadletters?buffer=crm-orders":                    0,
		"/v1/deadletters?buffer=removed&limit=1000&after=1000": 0,
		"/v1/deadletters?buffer=other":                         http.StatusNotFound,
	} {
		l := &looks{DeadLetters: h.store.DeadLetters()}
		handler, err := api.New(api.Backend{Catalog: catalog, Store: h.store, DeadLetters: l}, api.Options{Clock: clock, Resolve: resolve, MaxListBytes: 1 << 20})
		require.NoError(t, err)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, request(http.MethodGet, target, ""))
		require.Equal(t, 1, l.calls, target)
		require.EqualValues(t, 1<<20, l.filter.MaxBytes)
		if want == http.StatusNotFound {
			require.Equal(t, want, w.Code, target)
			continue
		}
		var list api.DeadLetterList
		decode(t, w, &list)
		require.Len(t, list.DeadLetters, want, target)
	}
}

func TestRefuse(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	api.Refuse(w, core.Errorf(core.TooLarge, "the answer is too large"))
	require.Equal(t, http.StatusRequestEntityTooLarge, w.Code)
	require.Equal(t, "the answer is too large", problem(t, w).Detail)
}
