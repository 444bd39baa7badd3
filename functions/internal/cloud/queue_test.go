package cloud

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/core/message"
	"sluice/infra/sqs"
)

// fromLoopback is a POST that claims to come from the same machine.
func fromLoopback(path string) events.APIGatewayV2HTTPRequest {
	e := events.APIGatewayV2HTTPRequest{Version: "2.0", RawPath: path, Headers: map[string]string{"host": "localhost:8080"}}
	e.RequestContext.HTTP.Method, e.RequestContext.HTTP.SourceIP = http.MethodPost, "127.0.0.1"
	return e
}

// checking makes the check function over a ladder whose two timers are the rig's.
func (r *rig) checking() QueueHandler {
	ladder := sqs.NewLadder(r.timer, r.timer, sqs.LadderOptions{Threshold: time.Minute, Clock: r.clock})
	return r.check(r.outside, sqs.NewArrivals(ladder, r.clock))
}

// A hint that comes a little early is waited for, and its group handed over at
// its time; one that comes much too early is armed again.
func TestCheck(t *testing.T) { //nolint:paralleltest // a bubble
	synctest.Test(t, func(t *testing.T) {
		r := setUp(t, yaml)
		h := r.checking()
		r.append("a", 1)
		armed := r.timer.all()
		require.Len(t, armed, 1)
		begin := time.Now()

		got, err := h(t.Context(), from("checks", hint(t, armed[0])))
		require.Empty(t, failures(t, got, err))
		require.Zero(t, time.Since(begin))
		require.Equal(t, []core.Hint{armed[0], armed[0]}, r.timer.all(), "5 s early: armed again")

		<-time.After(3500 * time.Millisecond)
		got, err = h(t.Context(), from("checks", hint(t, armed[0]), hint(t, armed[0])))
		require.Empty(t, failures(t, got, err))
		require.Equal(t, 5*time.Second, time.Since(begin), "both messages wait side by side")
		require.Len(t, r.queue.all(), 2)
		require.Equal(t, core.Ref{Buffer: "b", Key: "a"}, r.queue.all()[0].Ref)
	})
}

// A check that fails leaves another hint in its place, and its message is done
// with: else there would be two. One that cannot be armed goes back.
func TestCheckThatFails(t *testing.T) { //nolint:paralleltest // a bubble
	synctest.Test(t, func(t *testing.T) {
		r := setUp(t, yaml)
		r.append("a", 1)
		due := r.timer.all()[0]
		later := due
		later.At = due.At.Add(time.Hour)
		<-time.After(6 * time.Second)

		r.outside.store = broken{r.store}
		h := r.checking()
		got, err := h(t.Context(), from("checks", "hello", hint(t, due)))
		require.Empty(t, failures(t, got, err))
		require.Len(t, r.timer.all(), 2, "another hint")
		require.Equal(t, "m0", r.log.line(t, "a message failed")["messageId"], "the malformed one is told of, and dropped")
		require.Equal(t, "check", r.log.line(t, "the table does not answer")["op"])

		r.timer.err = core.Errorf(core.Unavailable, "SQS does not answer")
		got, err = h(t.Context(), from("checks", hint(t, due), hint(t, later)))
		require.Equal(t, []string{"m1"}, failures(t, got, err))
	})
}

// delivers makes the deliver function, and calls it with some time.
func (r *rig) delivers(t *testing.T, within time.Duration, e events.SQSEvent) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	got, err := r.deliver(r.outside, r.sender)(ctx, e)
	require.NoError(t, ctx.Err(), "it has taken all its time")
	return failures(t, got, err)
}

// A group's batches leave for as long as there are more.
func TestDeliver(t *testing.T) { //nolint:paralleltest // a bubble
	synctest.Test(t, func(t *testing.T) {
		r := setUp(t, yaml)
		r.append("a", 7)
		r.append("b", 2)
		handed := len(r.queue.all())
		require.Empty(t, r.delivers(t, time.Minute, from("deliveries", delivery(t, "a"), delivery(t, "b"), delivery(t, "none"), "?")))
		require.Len(t, r.crm.batches(), 4, "three of a, one of b")
		require.EqualValues(t, 1, r.pending(), "the seventh item of a waits for its time")
		require.Len(t, r.queue.all(), handed)
		require.Equal(t, "m3", r.log.line(t, "a message failed")["messageId"])
		require.Contains(t, r.log.String(), `"msg":"delivery"`)
	})
}

// A delivery that cannot be made is told of, and its message is done with:
// core has armed a check where it has used up a hint, and else there would be two.
func TestDeliverThatFails(t *testing.T) {
	t.Parallel()
	r := setUp(t, yaml)
	r.append("a", 2)
	r.outside.store = broken{r.store}
	require.Empty(t, r.delivers(t, time.Minute, from("deliveries", delivery(t, "a"))))
	require.Equal(t, "deliver", r.log.line(t, "the table does not answer")["op"])
	failures := r.log.line(t, `"sluice_failures_total":`)
	require.EqualValues(t, 1, failures["sluice_failures_total"])
	require.Equal(t, "deliver", failures["op"])
}

// What an invocation has no time for is handed back, and not begun.
func TestDeliverHandsBack(t *testing.T) { //nolint:paralleltest // a bubble
	synctest.Test(t, func(t *testing.T) {
		r := setUp(t, yaml)
		r.append("a", 100)
		r.crm.answer = func(context.Context, *core.Batch) core.Response {
			<-time.After(8 * time.Second)
			return core.Response{Status: http.StatusOK}
		}
		before := len(r.queue.all())
		// 60 s leave 30 in which to begin: at 0, 8, 16 and 24 s
		require.Empty(t, r.delivers(t, time.Minute, from("deliveries", delivery(t, "a"))))
		require.Len(t, r.crm.batches(), 4)
		after := r.queue.all()[before:]
		require.Equal(t, []core.Delivery{{Ref: core.Ref{Buffer: "b", Key: "a"}, Destination: "crm"}}, after)

		r.queue.err = core.Errorf(core.Unavailable, "SQS does not answer")
		require.Equal(t, []string{"m0"}, r.delivers(t, time.Minute, from("deliveries", delivery(t, "a"))))
	})
}

// A batch may go on to a fallback, whose send takes longer: nothing is begun that
// leaves no time for that.
func TestDeliverLeavesTimeForFallback(t *testing.T) { //nolint:paralleltest // a bubble
	synctest.Test(t, func(t *testing.T) {
		r := setUp(t, strings.NewReplacer("timeout: 10s,", "timeout: 10s, fallbacks: [slow],", "buffers:",
			"  slow: {type: http, url: \"https://slow.example.com/\", timeout: 25s}\nbuffers:").Replace(yaml))
		r.append("a", 100)
		r.crm.answer = func(context.Context, *core.Batch) core.Response {
			<-time.After(8 * time.Second)
			return core.Response{Status: http.StatusOK}
		}
		// 60 s leave 15 in which to begin: at 0 and 8 s
		require.Empty(t, r.delivers(t, time.Minute, from("deliveries", delivery(t, "a"))))
		require.Len(t, r.crm.batches(), 2)
	})
}

// No more sends than a destination's concurrency are under way, and messages
// that wait for a slot come in turn.
func TestDeliverConcurrency(t *testing.T) { //nolint:paralleltest // a bubble
	synctest.Test(t, func(t *testing.T) {
		r := setUp(t, yaml)
		var bodies []string
		for _, key := range []string{"a", "b", "c", "d", "e"} {
			r.append(key, 4)
			bodies = append(bodies, delivery(t, key))
		}
		var under, over atomic.Int64
		r.crm.answer = func(context.Context, *core.Batch) core.Response {
			if under.Add(1) > 2 {
				over.Add(1)
			}
			<-time.After(time.Second)
			under.Add(-1)
			return core.Response{Status: http.StatusOK}
		}
		begin := time.Now()
		require.Empty(t, r.delivers(t, time.Minute, from("deliveries", bodies...)))
		require.Len(t, r.crm.batches(), 10)
		require.Zero(t, over.Load())
		require.Equal(t, 5*time.Second, time.Since(begin))
		first := map[string]bool{}
		for _, b := range r.crm.batches()[:6] { // two at a time
			first[b.Group] = true
		}
		require.Len(t, first, 5, "each group has its turn before any has a second one")
	})
}

// Nor are they at a fallback, to which several come at once.
func TestDeliverConcurrencyOfAFallback(t *testing.T) { //nolint:paralleltest // a bubble
	synctest.Test(t, func(t *testing.T) {
		r := setUp(t, strings.Replace(yaml, "concurrency: 2, retry: {maxAttempts: 2}}",
			`concurrency: 5, retry: {maxAttempts: 1}, fallbacks: [spare]}
  spare: {type: http, url: "https://spare.example.com/", timeout: 10s, concurrency: 1}`, 1))
		var bodies []string
		for _, key := range []string{"a", "b", "c", "d", "e"} {
			r.append(key, 2)
			bodies = append(bodies, delivery(t, key))
		}
		r.crm.answer = func(context.Context, *core.Batch) core.Response {
			return core.Response{Status: http.StatusInternalServerError}
		}
		var under, over atomic.Int64
		spare := &receiver{answer: func(context.Context, *core.Batch) core.Response {
			if under.Add(1) > 1 {
				over.Add(1)
			}
			<-time.After(time.Second)
			under.Add(-1)
			return core.Response{Status: http.StatusOK}
		}}
		handle := r.deliver(r.outside, func(name string) core.Sender {
			if name == "spare" {
				return spare
			}
			return r.crm
		})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		for range 60 {
			_, err := handle(ctx, from("deliveries", bodies...))
			require.NoError(t, err)
			<-time.After(time.Second)
		}
		require.Len(t, r.crm.batches(), 5)
		require.Len(t, spare.batches(), 5)
		require.Zero(t, over.Load())
		require.Zero(t, r.pending())
	})
}

// A send that takes longer than its invocation is cut while there is time to
// settle it. It counts, so that the batch does not come back for ever.
func TestDeliverThatHangs(t *testing.T) { //nolint:paralleltest // a bubble
	synctest.Test(t, func(t *testing.T) {
		r := setUp(t, yaml)
		r.append("a", 2)
		r.crm.answer = func(ctx context.Context, _ *core.Batch) core.Response {
			<-ctx.Done()
			return core.Response{Err: core.Wrap(core.Canceled, ctx.Err(), "cut off")}
		}
		begin := time.Now()
		require.Empty(t, r.delivers(t, 20*time.Second, from("deliveries", delivery(t, "a"))))
		require.Equal(t, 10*time.Second, time.Since(begin), "half of what there was")
		g, err := r.store.Group(t.Context(), core.Ref{Buffer: "b", Key: "a"})
		require.NoError(t, err)
		require.Len(t, g.Claims, 1)
		<-time.After(time.Until(g.Claims[0].Due.Time()))
		require.Empty(t, r.delivers(t, 20*time.Second, from("deliveries", delivery(t, "a"))))
		require.Equal(t, 2, r.dead(), "two attempts are all that it has")
		require.Zero(t, r.pending())
	})
}

// letter is a dead letter as a message.
func letter(t *testing.T, l *core.DeadLetter) string {
	t.Helper()
	body, err := message.EncodeLetter(l)
	require.NoError(t, err)
	return body
}

// Dead letters that come by queue are sent once; those that are not taken, and
// what is no letter, go back.
func TestRedrive(t *testing.T) { //nolint:paralleltest // a bubble
	synctest.Test(t, func(t *testing.T) {
		r := setUp(t, yaml)
		good, bad := r.bury(2, "crm"), r.bury(1, "gone")
		r.crm.answer = func(_ context.Context, b *core.Batch) core.Response {
			if b.Items[0].ID == "B001" {
				return core.Response{Status: http.StatusInternalServerError}
			}
			return core.Response{Status: http.StatusOK}
		}
		e := from("replays", letter(t, &good[0]), letter(t, &good[1]), letter(t, &bad[0]), delivery(t, "a"))
		require.Equal(t, []string{"m1", "m2", "m3"}, r.delivers(t, time.Minute, e))
		sent := r.crm.batches()
		require.Len(t, sent, 2)
		for _, b := range sent {
			require.Equal(t, core.ReasonReplay, b.Reason)
			require.Equal(t, 3, b.Attempt)
		}
	})
}

// A letter for which there is no time goes back as it came.
func TestRedriveOutOfTime(t *testing.T) { //nolint:paralleltest // a bubble
	synctest.Test(t, func(t *testing.T) {
		r := setUp(t, yaml)
		all := r.bury(3, "crm")
		r.crm.answer = func(context.Context, *core.Batch) core.Response {
			<-time.After(9 * time.Second)
			return core.Response{Status: http.StatusOK}
		}
		e := from("replays", letter(t, &all[0]), letter(t, &all[1]), letter(t, &all[2]))
		require.Len(t, r.delivers(t, 32*time.Second, e), 1, "two slots, and 2 s in which to begin")
		require.Len(t, r.crm.batches(), 2)
	})
}
