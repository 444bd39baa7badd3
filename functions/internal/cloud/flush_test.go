package cloud

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/functions/internal/edge"
	"sluice/functions/internal/report"
)

// upkeep is a store's maintenance.
type upkeep struct {
	calls [][]string
	err   error
}

func (u *upkeep) Maintain(_ context.Context, sized []string) error {
	u.calls = append(u.calls, sized)
	return u.err
}

// swept is what a run reports that flushed nothing.
func swept(handedOver int, unfinished bool) FlushReport {
	return FlushReport{House: report.Of(&core.FlushReport{}), HandedOver: handedOver, Unfinished: unfinished}
}

// A run finds what a lost hint has left behind, keeps the store up, and
// measures it.
func TestSweep(t *testing.T) { //nolint:paralleltest // a bubble
	synctest.Test(t, func(t *testing.T) {
		r, u := setUp(t, yaml+"  sized: {from: [other], to: crm, size: 100}\n"), new(upkeep)
		r.append("a", 1)
		<-time.After(11 * time.Second)
		h := r.flushing(r.outside, r.sender, u)
		got, err := h(t.Context(), edge.FlushEvent{Source: "aws.scheduler"})
		require.NoError(t, err)
		require.Equal(t, swept(1, false), got)
		require.Equal(t, [][]string{{"sized"}}, u.calls)
		require.Len(t, r.queue.all(), 1)
		require.Empty(t, r.crm.batches(), "it is no flush")
		require.Equal(t, "aws.scheduler", r.log.line(t, "flushed")["caller"])
		require.EqualValues(t, 11, r.log.line(t, `"sluice_oldest_seconds":`)["sluice_oldest_seconds"])

		got, err = h(t.Context(), edge.FlushEvent{})
		require.NoError(t, err)
		require.Equal(t, swept(0, false), got, "it was handed over a moment ago")
	})
}

// All steps are taken, and all that failed is told.
func TestRunThatFails(t *testing.T) { //nolint:paralleltest // a bubble
	synctest.Test(t, func(t *testing.T) {
		r, u := setUp(t, yaml), &upkeep{err: core.Errorf(core.Unavailable, "it is throttled")}
		r.append("a", 1)
		<-time.After(11 * time.Second)
		r.queue.err = core.Errorf(core.Unavailable, "SQS does not answer")
		_, err := r.flushing(r.outside, r.sender, u)(t.Context(), edge.FlushEvent{})
		require.EqualError(t, err, "sweep: SQS does not answer\nmaintain the store: it is throttled")
		require.Contains(t, r.log.String(), "sluice_oldest_seconds")
	})
}

// A sweep that does not get through leaves room for what follows, and is no
// failure: the next one goes on.
func TestSweepOfABacklog(t *testing.T) { //nolint:paralleltest // a bubble
	synctest.Test(t, func(t *testing.T) {
		r, u := setUp(t, yaml), new(upkeep)
		for i := range 70 {
			r.append(fmt.Sprint(i), 1)
		}
		<-time.After(11 * time.Second)
		r.outside.queue = slow{r.queue, 15 * time.Second}
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
		defer cancel()
		got, err := r.flushing(r.outside, r.sender, u)(ctx, edge.FlushEvent{})
		require.NoError(t, err)
		require.Equal(t, swept(3*16, true), got, "three rounds of 16 at a time")
		require.Len(t, u.calls, 1)
	})
}

// slow is a queue that takes its time.
type slow struct {
	core.Queue

	each time.Duration
}

func (s slow) Hand(ctx context.Context, d core.Delivery) error {
	<-time.After(s.each)
	return s.Queue.Hand(ctx, d)
}

// flushed is a configuration with two buffers that leave by flushes alone.
const flushed = yaml + `  f: {from: [orders], to: crm, groupBy: "{{ .json.k }}", flush: {every: 5m}}
  g: {from: [other], to: crm, flush: {every: 5m}}
  w: {from: [other], to: crm, window: {every: 1h}}
`

// minute is the event of the schedule.
var minute = edge.FlushEvent{Source: "aws.scheduler"}

// flushRig is a rig with flushed, whose processes take turns.
func flushRig(t *testing.T) *rig {
	t.Helper()
	return setUp(t, flushed)
}

// The buffers with a cadence leave by the run of the minute, and by it alone; how
// often is up to their cadence, in whichever process.
func TestScheduledFlush(t *testing.T) { //nolint:paralleltest // a bubble
	synctest.Test(t, func(t *testing.T) {
		r := flushRig(t)
		one, two := r.flushing(r.outside, r.sender, new(upkeep)), r.flushing(r.outside, r.sender, new(upkeep))
		r.append("a", 1)
		got, err := one(t.Context(), minute)
		require.NoError(t, err)
		require.Equal(t, report.Buffers{{Name: "f", Rows: 1}, {Name: "g"}}, got.Buffers, "b waits for its deadline, w for its end")
		require.True(t, got.OK)
		require.Equal(t, core.ReasonFlush, r.crm.batches()[0].Reason)
		line := r.log.line(t, `"flushed"`)
		require.EqualValues(t, 1, line["report"].(map[string]any)["buffers"].(map[string]any)["f"].(map[string]any)["rows"])

		r.append("a", 1)
		<-time.After(time.Minute)
		for name, h := range map[string]FlushHandler{"the same process": one, "another process": two} {
			got, err = h(t.Context(), minute)
			require.NoError(t, err)
			require.Equal(t, "cadence", got.Buffers[0].Reason, name)
			require.Equal(t, (3*time.Minute + 30*time.Second).Milliseconds(), got.Buffers[0].NextEligibleInMs, name)
		}
		<-time.After(4 * time.Minute)
		got, err = two(t.Context(), minute)
		require.NoError(t, err)
		require.Equal(t, 1, got.Buffers[0].Rows)
	})
}

// A run of the schedule whose flush fails ends with an error; one by hand
// answers its report.
func TestFlushThatFails(t *testing.T) { //nolint:paralleltest // a bubble
	synctest.Test(t, func(t *testing.T) {
		r := flushRig(t)
		r.crm.answer = func(context.Context, *core.Batch) core.Response { return core.Response{Status: http.StatusBadGateway} }
		h := r.flushing(r.outside, r.sender, new(upkeep))
		r.append("a", 1)
		_, err := h(t.Context(), minute)
		require.ErrorContains(t, err, `the flush failed for f: group "a": `)
		require.Equal(t, core.Unavailable, core.CodeOf(err))
		require.Equal(t, "WARN", r.log.line(t, `"flushed"`)["level"], "the report is logged all the same")

		got, err := h(t.Context(), edge.FlushEvent{Flush: &edge.FlushCall{Force: true, Only: []string{"f"}}})
		require.NoError(t, err)
		require.False(t, got.OK)
		require.Len(t, got.Buffers, 4)
		require.Contains(t, got.Buffers[1].Error, "502")
	})
}

// A flush by hand ships what it is asked for. A final one says what is left,
// and which of it no flush can ship yet.
func TestFlushByHand(t *testing.T) { //nolint:paralleltest // a bubble
	synctest.Test(t, func(t *testing.T) {
		r := flushRig(t)
		h := r.flushing(r.outside, r.sender, new(upkeep))
		r.append("a", 1)
		r.append("c", 1)
		_, err := core.NewIngester(r.catalog, r.ports(r.outside)).Ingest(t.Context(), "other", []core.Event{{}, {}})
		require.NoError(t, err)

		got, err := h(t.Context(), edge.FlushEvent{Flush: &edge.FlushCall{Only: []string{"b", "x"}, Groups: []string{"c"}}})
		require.NoError(t, err)
		require.Equal(t, []string{"x"}, got.Unmatched)
		require.Equal(t, report.Buffer{Name: "b", Rows: 1}, got.Buffers[0])
		require.Equal(t, "not-selected", got.Buffers[1].Reason)
		require.Nil(t, got.Left)
		require.Equal(t, "c", r.crm.batches()[0].Group)

		_, err = h(t.Context(), edge.FlushEvent{Flush: &edge.FlushCall{Strict: true, Only: []string{"x"}}})
		require.Equal(t, core.Invalid, core.CodeOf(err))

		got, err = h(t.Context(), edge.FlushEvent{Flush: &edge.FlushCall{Force: true, Final: true}})
		require.NoError(t, err)
		require.True(t, got.OK)
		end := time.Now().UTC().Truncate(time.Hour).Add(time.Hour).Format("2006-01-02T15:04:05.000Z")
		require.Equal(t, []Left{{Buffer: "w", Groups: 1, Items: 2, OpenItems: 2, OpenUntil: end}}, got.Left)

		<-time.After(time.Hour)
		got, err = h(t.Context(), edge.FlushEvent{Flush: &edge.FlushCall{Force: true, Final: true}})
		require.NoError(t, err)
		require.Equal(t, []Left{}, got.Left)
		text, err := json.Marshal(got)
		require.NoError(t, err)
		require.Contains(t, string(text), `"left":[]`)
	})
}

// A flush keeps to a fallback's concurrency, too: what has to wait there does, and
// leaves all the same.
func TestFlushConcurrencyOfAFallback(t *testing.T) { //nolint:paralleltest // a bubble
	synctest.Test(t, func(t *testing.T) {
		r := setUp(t, strings.Replace(yaml, "concurrency: 2, retry: {maxAttempts: 2}}",
			`concurrency: 5, retry: {maxAttempts: 1}, fallbacks: [spare]}
  spare: {type: http, url: "https://spare.example.com/", timeout: 10s, concurrency: 1}`, 1))
		for i := range 8 {
			r.append(fmt.Sprint(i), 1)
		}
		var under, over atomic.Int64
		r.crm.answer = func(context.Context, *core.Batch) core.Response { return core.Response{Status: http.StatusBadRequest} }
		spare := &receiver{answer: func(context.Context, *core.Batch) core.Response {
			if under.Add(1) > 1 {
				over.Add(1)
			}
			<-time.After(5 * time.Second)
			under.Add(-1)
			return core.Response{Status: http.StatusOK}
		}}
		h := r.flushing(r.outside, func(name string) core.Sender {
			if name == "spare" {
				return spare
			}
			return r.crm
		}, new(upkeep))
		_, err := h(t.Context(), edge.FlushEvent{Flush: &edge.FlushCall{Only: []string{"b"}, Final: true}})
		require.NoError(t, err)
		require.Len(t, r.crm.batches(), 8)
		require.Len(t, spare.batches(), 8)
		require.Zero(t, over.Load())
		require.Zero(t, r.pending())
	})
}

// A flush begins sends for as long as the slowest of destinations leaves time
// to settle them; what it does not get to is told.
func TestFlushEndsInTime(t *testing.T) { //nolint:paralleltest // a bubble
	synctest.Test(t, func(t *testing.T) {
		r := flushRig(t)
		r.crm.answer = func(context.Context, *core.Batch) core.Response {
			<-time.After(9 * time.Second)
			return core.Response{Status: http.StatusNoContent}
		}
		for i := range 10 {
			r.append(fmt.Sprint(i), 1)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
		defer cancel()
		begin := time.Now()
		_, err := r.flushing(r.outside, r.sender, new(upkeep))(ctx, minute)
		require.ErrorContains(t, err, "f: the time was over")
		require.Less(t, time.Since(begin), 40*time.Second)
		require.Len(t, r.crm.batches(), 4, "two at a time; 10 s for a send and 15 s to settle it are left twice")
	})
}
