package cloud

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/functions/internal/edge"
	"sluice/functions/internal/language"
	"sluice/infra/memory"
)

// relayed is a configuration of a queue, and of all that shapes and delays.
const relayed = `
sources:
  work: {type: sqs, queue: env:QUEUE_URL}
  now: {type: http, auth: {bearer: [env:TOKEN]}, ack: delivered, respondTimeout: 2s}
destinations:
  crm: {type: http, url: "https://crm.example.com/", transform: "{n: .n}", breaker: {failures: 1, cooldown: 10m}, retry: {maxAttempts: 2}}
buffers:
  b: {from: [work], to: crm, filter: ".n > 1", batch: {maxItems: 1}, size: 2}
  later: {from: [work], to: crm, deliverAfter: 1h, filter: ".n == 9"}
  now: {from: [now], to: crm, batch: {maxItems: 1}}
`

func relay(t *testing.T) *rig {
	t.Helper()
	vars := variables(t, relayed)
	vars["QUEUE_URL"] = "https://sqs.eu-central-1.amazonaws.com/1/work.fifo"
	return setUpWith(t, vars)
}

// receives hands messages of a queue over, each with its group and number.
func (r *rig) receives(queue string, messages ...[2]string) ([]string, error) {
	r.t.Helper()
	h, err := r.receive(r.outside)
	require.NoError(r.t, err)
	var bodies []string
	for _, m := range messages {
		bodies = append(bodies, `{"n":`+m[1]+`}`)
	}
	e := edge.ReceiveEvent{SQSEvent: from(queue, bodies...)}
	for i, m := range messages {
		e.Records[i].Attributes = map[string]string{"MessageGroupId": m[0]}
	}
	answer, err := h(r.t.Context(), e)
	if err != nil {
		return nil, err
	}
	return failures(r.t, answer, nil), nil
}

// What there is room for is taken, what the filter drops is done with, and the
// rest stays in the queue.
func TestReceive(t *testing.T) {
	t.Parallel()
	r := relay(t)
	left, err := r.receives("work.fifo", [2]string{"g", "1"}, [2]string{"g", "2"}, [2]string{"h", "3"})
	require.NoError(t, err)
	require.Empty(t, left)
	require.EqualValues(t, 2, r.pending())
	require.Len(t, r.queue.all(), 2)

	left, err = r.receives("work.fifo", [2]string{"g", "4"}, [2]string{"h", "5"})
	require.NoError(t, err)
	require.Equal(t, []string{"m0", "m1"}, left, "the buffer is full")
	line := r.log.line(t, "messages stay in their queue")
	require.Equal(t, "full", line["code"])
	require.NotContains(t, r.log.String(), `"sluice_failures_total":`, "which is no failure")

	_, err = r.receives("other", [2]string{"g", "1"})
	require.Equal(t, core.NotFound, core.CodeOf(err))
	require.ErrorContains(t, err, "these messages are from the queue of none of the sources work")
}

// What a transform makes larger than the table takes is refused alone, and
// nothing else of its batch comes again.
func TestReceiveWhatGetsTooLarge(t *testing.T) {
	t.Parallel()
	vars := variables(t, strings.Replace(relayed, `filter: ".n > 1", batch: {maxItems: 1}, size: 2`,
		`transform: "if .n == 3 then {big: (\"x\" * 400000)} else . end", dedupe: {window: 1m}`, 1))
	vars["QUEUE_URL"] = "https://sqs.eu-central-1.amazonaws.com/1/work"
	r := setUpWith(t, vars)
	left, err := r.receives("work", [2]string{"", "2"}, [2]string{"", "3"}, [2]string{"", "4"})
	require.NoError(t, err)
	require.Equal(t, []string{"m1"}, left)
	require.EqualValues(t, 2, r.pending())
	require.Equal(t, "too_large", r.log.line(t, "messages stay in their queue")["code"])
}

// What there is no room for keeps nothing else of its batch.
func TestReceiveOfWhatHasRoom(t *testing.T) {
	t.Parallel()
	r := relay(t)
	left, err := r.receives("work.fifo", [2]string{"g", "2"}, [2]string{"h", "3"}, [2]string{"i", "4"}, [2]string{"h", "1"})
	require.NoError(t, err)
	require.Equal(t, []string{"m2"}, left)
	require.EqualValues(t, 2, r.pending())
}

// An event whose time is none is a dead letter, and its message done with; one on
// which a filter fails is refused.
func TestReceiveOfADeadLetter(t *testing.T) {
	t.Parallel()
	vars := variables(t, strings.NewReplacer(`deliverAfter: 1h, filter: ".n == 9"`, `deliverAt: "{{ .json.n }}"`, ".n > 1", ".n <= 1 or .n.m").Replace(relayed))
	vars["QUEUE_URL"] = "https://sqs.eu-central-1.amazonaws.com/1/work"
	r := setUpWith(t, vars)
	left, err := r.receives("work", [2]string{"", "1"}, [2]string{"", "271828"})
	require.NoError(t, err)
	require.Equal(t, []string{"m1"}, left)
	require.Contains(t, r.log.line(t, "messages stay in their queue")["error"], "the filter fails on this event")
	require.NotContains(t, r.log.String(), "271828", "no payload gets into logs")
	require.Equal(t, 1, r.dead())
}

// Without the store all messages stay, and that is a failure.
func TestReceiveWithoutStore(t *testing.T) {
	t.Parallel()
	r := relay(t)
	r.outside.store = refusing{r.store}
	left, err := r.receives("work.fifo", [2]string{"g", "2"}, [2]string{"h", "3"})
	require.NoError(t, err)
	require.Equal(t, []string{"m0", "m1"}, left)
	require.Contains(t, r.log.String(), `"sluice_failures_total":`)
}

// refusing is a store that takes nothing.
type refusing struct{ *memory.Store }

func (refusing) Append(context.Context, core.Millis, []core.Part) ([]core.Appended, error) {
	return nil, core.Errorf(core.Unavailable, "the table does not answer")
}

// Two sources can't share a queue: whose a message is would be chance.
func TestReceiveQueueOfTwo(t *testing.T) {
	t.Parallel()
	vars := variables(t, `
sources:
  a: {type: sqs, queue: env:QUEUE_A}
  b: {type: sqs, queue: env:QUEUE_B}
`)
	vars["QUEUE_A"], vars["QUEUE_B"] = "https://sqs.eu-central-1.amazonaws.com/1/hidden", "https://sqs.eu-central-1.amazonaws.com/1/hidden/"
	r := setUpWith(t, vars)
	_, err := r.receive(r.outside)
	require.ErrorContains(t, err, "sources a and b have the same queue")
	require.NotContains(t, err.Error(), "hidden")
}

// Queues of one name in other regions and accounts are others; a URL that is not
// of AWS has a name alone.
func TestReceiveQueuesOfOneName(t *testing.T) {
	t.Parallel()
	r := setUp(t, `
sources:
  a: {type: sqs, queue: "https://sqs.eu-central-1.amazonaws.com/1/work"}
  region: {type: sqs, queue: "https://sqs.eu-west-1.amazonaws.com/1/work"}
  account: {type: sqs, queue: "https://sqs.eu-central-1.amazonaws.com/2/work"}
  china: {type: sqs, queue: "https://sqs.cn-north-1.amazonaws.com.cn/1/work"}
  local: {type: sqs, queue: "http://127.0.0.1:4566/000000000000/job"}
`)
	sources, err := r.intakes()
	require.NoError(t, err)
	for arn, want := range map[string]string{
		"arn:aws:sqs:eu-central-1:1:work":      "a",
		"arn:aws:sqs:eu-west-1:1:work":         "region",
		"arn:aws:sqs:eu-central-1:2:work":      "account",
		"arn:aws-cn:sqs:cn-north-1:1:work":     "china",
		"arn:aws:sqs:eu-central-1:7:job":       "local",
		"arn:aws:sqs:eu-central-1:3:work":      "",
		"arn:aws:sqs:us-east-1:1:work":         "",
		"arn:aws:sqs:eu-central-1:1:work.fifo": "",
	} {
		source, err := sources.of(arn)
		require.Equal(t, want, source, arn)
		require.Equal(t, want == "", err != nil, arn)
	}
}

// What a reference leads to is checked, and not shown.
func TestReceiveOfNoQueue(t *testing.T) {
	t.Parallel()
	vars := variables(t, relayed)
	vars["QUEUE_URL"] = "hidden"
	r := setUpWith(t, vars)
	_, err := r.receive(r.outside)
	require.ErrorContains(t, err, "sources.work: queue: what it refers to ")
	require.NotContains(t, err.Error(), "hidden")
}

// What was held goes on when its time has come: the deliver function moves it,
// without a slot of any destination.
func TestDelay(t *testing.T) { //nolint:paralleltest // a bubble
	synctest.Test(t, func(t *testing.T) {
		r := relay(t)
		left, err := r.receives("work.fifo", [2]string{"g", "9"})
		require.NoError(t, err)
		require.Empty(t, left)
		hints := r.timer.all()
		require.NotEmpty(t, hints)
		flushed, err := r.flushing(r.outside, r.sender, new(upkeep))(t.Context(), edge.FlushEvent{Flush: &edge.FlushCall{Final: true, Force: true}})
		require.NoError(t, err)
		require.Len(t, flushed.Left, 1, "no flush makes it leave early")
		require.Equal(t, Left{Buffer: "later", Groups: 1, Items: 1, OpenItems: 1, OpenUntil: flushed.Left[0].OpenUntil}, flushed.Left[0])
		require.NotEmpty(t, flushed.Left[0].OpenUntil)
		<-time.After(2 * time.Hour)
		for _, h := range hints {
			require.NoError(t, core.NewChecker(r.catalog, r.ports(r.outside)).Check(t.Context(), h))
		}
		deliver := r.deliver(r.outside, r.sender)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		moved := false
		for _, d := range r.queue.all() {
			of, held := core.Held(d.Ref.Buffer)
			moved = moved || held && of == "later"
			_, err := deliver(ctx, events.SQSEvent{Records: from("deliveries", deliveryOf(t, d)).Records})
			require.NoError(t, err)
		}
		require.True(t, moved)
		g, err := r.store.Group(t.Context(), core.Ref{Buffer: "later", Key: "g"})
		require.NoError(t, err)
		require.NotZero(t, g.Tail, "it waits in its own buffer now")
	})
}

// opensBreaker has a send fail, after which the breaker of its destination is open.
func (r *rig) opensBreaker(t *testing.T) {
	t.Helper()
	_, err := r.receives("work.fifo", [2]string{"g", "2"})
	require.NoError(t, err)
	r.crm.answer = func(context.Context, *core.Batch) core.Response {
		return core.Response{Status: http.StatusServiceUnavailable}
	}
	require.Empty(t, r.delivers(t, time.Minute, from("deliveries", delivery(t, "g"))))
}

// The breaker that a send has opened is known to the flush and control functions.
func TestBreaker(t *testing.T) { //nolint:paralleltest // a bubble
	synctest.Test(t, func(t *testing.T) {
		r := relay(t)
		r.opensBreaker(t)
		require.Equal(t, `{"n":2}`, string(r.crm.batches()[0].Items[0].Body))
		state, err := core.BreakerOf(t.Context(), r.outside.shared, "crm")
		require.NoError(t, err)
		require.NotZero(t, state.Until)

		r.log.text.Reset()
		_, err = r.flushing(r.outside, r.sender, new(upkeep))(t.Context(), minute)
		require.NoError(t, err)
		require.Contains(t, r.log.String(), `"sluice_breaker_open":1`)
	})
}

// A letter that comes back by queue waits for an open breaker for a moment, and no
// longer: it has a slot meanwhile.
func TestRedriveIntoAnOpenBreaker(t *testing.T) { //nolint:paralleltest // a bubble
	synctest.Test(t, func(t *testing.T) {
		r := relay(t)
		r.opensBreaker(t)
		r.crm.answer = nil
		letters := r.bury(1, "crm")
		letters[0].Item.Body = []byte(`{"n":7}`)
		e := from("replays", letter(t, &letters[0]))
		<-time.After(9*time.Minute + 20*time.Second)
		begin := time.Now()
		require.Equal(t, []string{"m0"}, r.delivers(t, time.Minute, e))
		require.Zero(t, time.Since(begin), "it is open for 40 s")
		<-time.After(20 * time.Second)
		require.Equal(t, []string{"m0"}, r.delivers(t, time.Minute, e))
		require.Equal(t, 20*time.Second, time.Since(begin), "and for 20 s, in which there would be time")
		<-time.After(18 * time.Second)
		require.Empty(t, r.delivers(t, time.Minute, e))
		require.Equal(t, 40*time.Second, time.Since(begin))
		require.Len(t, r.crm.batches(), 2)
	})
}

// Whoever waits for the outcome hears it, or after its time that it is pending.
func TestIngestThatWaits(t *testing.T) { //nolint:paralleltest // a bubble
	synctest.Test(t, func(t *testing.T) {
		r := relay(t)
		h, err := r.ingest(r.outside)
		require.NoError(t, err)
		begin := time.Now()
		answer := call(t, h, http.MethodPost, "/v1/sources/now", "orders-token", `{"n":5}`)
		require.Contains(t, answer.Body, `"pending"`)
		require.Equal(t, 2*time.Second, time.Since(begin))
	})
}

// What can't be compiled keeps a function from starting, with its place; one that
// runs no program does not look.
func TestProgramsThatAreBroken(t *testing.T) {
	t.Parallel()
	vars := variables(t, `
sources: {s: {type: http, auth: none}}
destinations: {crm: {type: http, url: "https://crm.example.com/"}}
buffers: {b: {from: [s], to: crm, filter: ".a["}}
`)
	p := Process{Env: lookup(vars), Stdout: new(output), Language: language.JQ}
	_, err := setup(t.Context(), p, noSecrets)
	require.ErrorContains(t, err, "sluice.yaml:4:")
	require.ErrorContains(t, err, "buffers.b.filter: is not a jq program: 1:4: unexpected EOF")
	p.Language = nil
	_, err = setup(t.Context(), p, noSecrets)
	require.NoError(t, err)
}
