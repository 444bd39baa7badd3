package lambdatest

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestInvocable(t *testing.T) {
	t.Parallel()
	h := Invocable(func(_ context.Context, payload []byte) ([]byte, error) {
		switch string(payload) {
		case "late":
			return nil, &Error{ErrorTimeout, "it took too long"}
		case "bad":
			return nil, errors.New("it is bad")
		}
		return payload, nil
	})
	for _, tc := range []struct{ payload, failed, answer string }{
		{`{"a":1}`, "", `{"a":1}`},
		{"late", "Unhandled", `{"errorType":"` + ErrorTimeout + `","errorMessage":"it took too long"}`},
		{"bad", "Unhandled", `{"errorType":"errorString","errorMessage":"it is bad"}`},
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/2015-03-31/functions/f/invocations", strings.NewReader(tc.payload)))
		require.Equal(t, http.StatusOK, w.Code)
		require.Equal(t, tc.failed, w.Header().Get("X-Amz-Function-Error"))
		require.JSONEq(t, tc.answer, w.Body.String())
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
	require.Equal(t, http.StatusBadRequest, w.Code)
}
