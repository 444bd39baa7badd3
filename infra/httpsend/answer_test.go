package httpsend

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/core/format"
)

func outcome(r *core.Response) string { return core.Classify(r, nil).String() }

func bits(n ...int) core.Bits {
	var b core.Bits
	for _, i := range n {
		b = b.With(i)
	}
	return b
}

func TestBatchItemFailures(t *testing.T) {
	t.Parallel()
	const lines, envelope = format.NDJSON, format.Envelope
	long := `{"pad":"` + strings.Repeat("x", answerBytes+5*answerItemBytes) + `"`
	tests := []struct {
		name   string
		f      format.Format
		answer string
		want   string // outcome
		failed core.Bits
	}{
		{"the second of five, by position", lines, `{"batchItemFailures":[{"itemIdentifier":"1"}]}`, "partial", bits(1)},
		{"the second of five, by id", envelope, `{"batchItemFailures":[{"itemIdentifier":"ev-1"}]}`, "partial", bits(1)},
		{"several, one twice", lines, `{"batchItemFailures":[{"itemIdentifier":"4"},{"itemIdentifier":"0"},{"itemIdentifier":"4"}]}`, "partial", bits(0, 4)},
		{"more in the answer", envelope, `{"n":1,"batchItemFailures":[{"itemIdentifier":"ev-4","why":{"x":[1]}}],"z":null}`, "partial", bits(4)},
		{"behind a byte order mark", lines, "\ufeff" + `{"batchItemFailures":[{"itemIdentifier":"1"}]}`, "partial", bits(1)},

		{"an unknown position", lines, `{"batchItemFailures":[{"itemIdentifier":"5"}]}`, "retry", nil},
		{"a position with a zero", lines, `{"batchItemFailures":[{"itemIdentifier":"01"}]}`, "retry", nil},
		{"an id where there are positions", lines, `{"batchItemFailures":[{"itemIdentifier":"ev-1"}]}`, "retry", nil},
		{"a position where there are ids", envelope, `{"batchItemFailures":[{"itemIdentifier":"1"}]}`, "retry", nil},
		{"one known, one unknown", lines, `{"batchItemFailures":[{"itemIdentifier":"1"},{"itemIdentifier":"x"}]}`, "retry", nil},
		{"an empty identifier", lines, `{"batchItemFailures":[{"itemIdentifier":""}]}`, "retry", nil},
		{"a null identifier", lines, `{"batchItemFailures":[{"itemIdentifier":null}]}`, "retry", nil},
		{"a number", lines, `{"batchItemFailures":[{"itemIdentifier":1}]}`, "retry", nil},
		{"another name", lines, `{"batchItemFailures":[{"identifier":"1"}]}`, "retry", nil},
		{"null among them", lines, `{"batchItemFailures":[null]}`, "retry", nil},
		{"strings", lines, `{"batchItemFailures":["1"]}`, "retry", nil},
		{"an object for a list", lines, `{"batchItemFailures":{"itemIdentifier":"1"}}`, "retry", nil},
		{"a string for a list", lines, `{"batchItemFailures":"1"}`, "retry", nil},
		{"cut off", lines, `{"batchItemFailures":[{"itemIdentifier":"1"}`, "retry", nil},
		{"text around it", lines, `)]}' {"batchItemFailures":[{"itemIdentifier":"1"}]}`, "retry", nil},
		{"broken before it", lines, `{"a":tru,"batchItemFailures":[]}`, "retry", nil},
		{"beyond what is read", lines, `{"batchItemFailures":[{"itemIdentifier":"1"}],` + long[1:] + `}`, "retry", nil},

		{"an empty list", lines, `{"batchItemFailures":[]}`, "delivered", nil},
		{"null", lines, `{"batchItemFailures":null}`, "delivered", nil},
		{"no such field", lines, `{"ok":true}`, "delivered", nil},
		{"the field of something else", lines, `{"result":{"batchItemFailures":[{"itemIdentifier":"1"}]}}`, "delivered", nil},
		{"the words in a list", lines, ` ["batchItemFailures"]`, "delivered", nil},
		{"the words as the answer", lines, `"batchItemFailures"`, "delivered", nil},
		{"no answer", lines, "", "delivered", nil},
		{"text", lines, "thanks, no batchItemFailures here", "delivered", nil},
		{"broken JSON", lines, `{"ok":tru`, "delivered", nil},
		{"a long answer without it", lines, long + `}`, "delivered", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := options(answering(t, http.StatusOK, tt.answer).URL)
			o.Format = tt.f
			r := newSender(t, o).Send(t.Context(), batchOf(5))
			require.Equal(t, tt.want, outcome(&r), "error %v", r.Err)
			require.Equal(t, tt.failed, r.Failed)
			require.Equal(t, http.StatusOK, r.Status)
			if r.Err != nil {
				require.Equal(t, core.Unavailable, core.CodeOf(r.Err))
				require.Contains(t, core.DetailOf(r.Err), "batchItemFailures")
			}
		})
	}
}

func TestEveryItemOfTheLargestBatchCanFail(t *testing.T) {
	t.Parallel()
	b := &core.Batch{ID: "b", Items: make([]core.Item, 10_000)}
	ids := make([]string, len(b.Items))
	for i := range b.Items {
		b.Items[i].ID = fmt.Sprintf("a-longer-id-than-most-are-%030d", i)
		ids[i] = b.Items[i].ID
	}
	o := options(serve(t, func(w http.ResponseWriter, _ *http.Request) { writeFailures(w, ids) }).URL)
	o.Format = format.Envelope
	r := newSender(t, o).Send(t.Context(), b)
	require.NoError(t, r.Err)
	require.Equal(t, len(ids), r.Failed.Len())
}

// TestFailuresOfOtherStatuses: a list counts with a 2xx only.
func TestFailuresOfOtherStatuses(t *testing.T) {
	t.Parallel()
	const list = `{"batchItemFailures":[{"itemIdentifier":"1"}]}`
	for status, want := range map[int]string{201: "partial", 202: "partial", 207: "partial", 400: "permanent", 500: "retry", 429: "retry"} {
		r := newSender(t, options(answering(t, status, list).URL)).Send(t.Context(), batchOf(5))
		require.Equal(t, want, outcome(&r), status)
		require.Equal(t, want == "partial", r.Failed.Len() == 1, status)
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	date := func(d time.Duration) string { return now.Time().Add(d).Format(http.TimeFormat) }
	tests := []struct {
		name, value string
		want        time.Duration
	}{
		{"none", "", 0},
		{"seconds", "3", 3 * time.Second},
		{"a year", "31536000", 365 * 24 * time.Hour},
		{"zero", "0", 0},
		{"negative", "-3", 0},
		{"more than a duration holds", "99999999999", 9223372036 * time.Second},
		{"more than a number holds", "99999999999999999999999", 9223372036 * time.Second},
		{"a date", date(time.Minute), time.Minute - 890*time.Millisecond},
		{"a date that has passed", date(-time.Minute), 0},
		{"a date of RFC 850", now.Time().Add(time.Minute).Format("Monday, 02-Jan-06 15:04:05 GMT"), time.Minute - 890*time.Millisecond},
		{"garbage", "soon", 0},
		{"a fraction", "1.5", 0},
		{"a unit", "3s", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, status := range []int{429, 503, 200} {
				server := answering(t, status, `{"batchItemFailures":[{"itemIdentifier":"1"}]}`, "Retry-After", tt.value)
				r := newSender(t, options(server.URL)).Send(t.Context(), batchOf(2))
				require.Equal(t, tt.want, r.RetryAfter, "status %d", status)
			}
		})
	}
}

// TestRetryAfterToWait goes from the header to the wait that a claim gets.
func TestRetryAfterToWait(t *testing.T) {
	t.Parallel()
	policy := core.RetryPolicy{MaxAttempts: 20, Initial: time.Second, Max: 15 * time.Minute}
	for _, tt := range []struct {
		value string
		want  time.Duration
	}{
		{"3", 3 * time.Second},
		{now.Time().Add(time.Minute).Format(http.TimeFormat), time.Minute - 890*time.Millisecond},
		{"garbage", 42}, // own backoff
		{"31536000", policy.Max},
	} {
		r := newSender(t, options(answering(t, 503, "", "Retry-After", tt.value).URL)).Send(t.Context(), batchOf(1))
		require.Equal(t, tt.want, policy.Wait(1, r.RetryAfter, fixed(42)), tt.value)
	}
}

type fixed int64

func (f fixed) Int64N(int64) int64 { return int64(f) }

func TestAnswerIsCut(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, body, want string }{
		{"short", "no such customer", "no such customer"},
		{"long", strings.Repeat("x", 5_000), strings.Repeat("x", core.MaxAnswer)},
		{"a torn character", strings.Repeat("x", core.MaxAnswer-1) + "äx", strings.Repeat("x", core.MaxAnswer-1)},
		{"a torn emoji", strings.Repeat("x", core.MaxAnswer-2) + "😀x", strings.Repeat("x", core.MaxAnswer-2)},
		{"exactly as long", strings.Repeat("ä", core.MaxAnswer/2), strings.Repeat("ä", core.MaxAnswer/2)},
		{"not UTF-8", "a\xff\xfeb", "a\uFFFDb"},
		{"replacements over the end", strings.Repeat("x\xff", core.MaxAnswer), strings.Repeat("x\uFFFD", core.MaxAnswer/4)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newSender(t, options(answering(t, http.StatusBadRequest, tt.body).URL)).Send(t.Context(), batchOf(1))
			require.Equal(t, tt.want, r.Answer)
			require.Equal(t, "permanent", outcome(&r))
		})
	}
}
