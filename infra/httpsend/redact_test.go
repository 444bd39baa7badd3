package httpsend

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

func TestRedactions(t *testing.T) {
	t.Parallel()
	const secret = "hunter2-hunter2"
	long := "s" + strings.Repeat("k", 899)
	tests := []struct {
		name   string
		redact []string
		body   string
		want   string
	}{
		{"every occurrence", []string{secret}, "a " + secret + " b " + secret, "a [secret] b [secret]"},
		{"as it is sent", []string{secret + " \t"}, "a " + secret + "|", "a [secret]|"},
		{"empty and short ones", []string{"", "abc"}, "abcabc", "abcabc"},
		{"the longer of two", []string{"hunter2", secret}, secret, "[secret]"},
		{"overlapping", []string{"abcdef", "defghi"}, "-abcdefghi-", "-[secret]-"},
		{"JSON", []string{`a"b\c/d<e`}, `{"1":"a\"b\\c/d<e","2":"a\"b\\c\/d<e","3":"a\"b\\c/d\u003ce"}`, `{"1":"[secret]","2":"[secret]","3":"[secret]"}`},
		{"over the cut", []string{secret}, strings.Repeat("x", core.MaxAnswer-4) + secret, strings.Repeat("x", core.MaxAnswer-4) + "[sec"},
		{"over the cut of what is shorter by then", []string{long}, strings.Repeat(long, 3) + "end", strings.Repeat("[secret]", 3) + "end"},
		{"torn at the end", []string{secret}, "a " + secret[:9], "a [secret]"},
		{"over the bound", []string{long}, strings.Repeat(long, 100), strings.Repeat("[secret]", 74)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := options(answering(t, http.StatusBadRequest, tt.body).URL)
			o.Redact = tt.redact
			r := newSender(t, o).Send(t.Context(), batchOf(1))
			require.Equal(t, tt.want, r.Answer)
		})
	}
}

// TestReflectedSecrets: an endpoint that repeats the request's headers.
func TestReflectedSecrets(t *testing.T) {
	t.Parallel()
	const token, signing = "Bearer hunter2", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	signatures := make(chan string, 1)
	o := options(serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		signatures <- r.Header.Get("Webhook-Signature")
		w.WriteHeader(http.StatusBadRequest)
		_ = r.Header.Write(w)
		_, _ = io.WriteString(w, signing)
	}).URL)
	o.Headers = []core.Header{{Name: "Authorization", Value: token}, {Name: "X-Team", Value: "billing"}}
	o.Secrets = []string{signing, "not base64, 1 key!"}
	o.Redact = []string{token}
	r := newSender(t, o).Send(t.Context(), batchOf(1))
	require.Contains(t, r.Answer, "Authorization: [secret]\r\n")
	require.Contains(t, r.Answer, "X-Team: billing\r\n")
	require.Contains(t, r.Answer, "Webhook-Signature: v1,[secret] v1,[secret]\r\n")
	require.NotContains(t, r.Answer, signing)
	require.NotEmpty(t, <-signatures)
}

// A list of failures that names a secret does not show it in the error.
func TestReflectedSecretInFailures(t *testing.T) {
	t.Parallel()
	o := options(answering(t, http.StatusOK, `{"batchItemFailures":[{"itemIdentifier":"hunter2-hunter2"}]}`).URL)
	o.Redact = []string{"hunter2-hunter2"}
	r := newSender(t, o).Send(t.Context(), batchOf(1))
	require.ErrorContains(t, r.Err, `names "[secret]"`)
}

// TestSwitchingProtocols: the connection is closed at once, though the
// endpoint keeps it open and nothing else would end the send.
func TestSwitchingProtocols(t *testing.T) {
	t.Parallel()
	for _, reads := range []bool{true, false} {
		closed := make(chan struct{})
		server := serve(t, func(w http.ResponseWriter, r *http.Request) {
			defer close(closed)
			if reads {
				_, _ = io.Copy(io.Discard, r.Body)
			}
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nhello")
			_, _ = io.Copy(io.Discard, conn) // until the sender closes it
			_ = conn.Close()
		})
		start := time.Now()
		r := newSender(t, options(server.URL)).Send(t.Context(), batchOf(200))
		require.NoError(t, r.Err)
		require.Equal(t, http.StatusSwitchingProtocols, r.Status)
		require.Empty(t, r.Answer)
		require.Equal(t, "retry", outcome(&r))
		<-closed
		require.Less(t, time.Since(start), 30*time.Second, "half of the timeout")
	}
}
