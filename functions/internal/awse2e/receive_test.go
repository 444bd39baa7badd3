package awse2e

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/stretchr/testify/require"

	"sluice/functions/internal/lambdatest"
	"sluice/functions/internal/scenario"
	"sluice/infra/awstest"
)

// intake is a stack with a queue as its source.
type intake struct {
	*testing.T
	*stack

	queue  awstest.QueueRef
	source *lambdatest.Source
	sink   *scenario.Sink
	got    []string // the bodies that the sink has taken, in order
}

// takeIn deploys a stack whose source is a queue, standard or FIFO, with
// settings of the source and of its buffer.
func takeIn(t *testing.T, fifo bool, source, buffer string) *intake {
	t.Helper()
	attributes := map[string]string{"VisibilityTimeout": "1"}
	if fifo {
		attributes["FifoQueue"] = "true"
	}
	w := &intake{T: t, queue: awstest.Queue(t, awstest.SQS(t), attributes), sink: scenario.NewSink(t, nil)}
	w.stack = deploy(t, fmt.Sprintf(`
control: {tokens: [env:%s]}
sources: {in: {type: sqs, queue: %q%s}}
destinations: {out: {type: http, url: %q, allowPrivate: true, timeout: 5s, retry: {initial: 1s, max: 1s}}}
buffers: {b: {from: [in], to: out%s}}
`, scenario.TokenVariable, w.queue.URL, source, w.sink.URL, buffer))
	w.source = w.poll(t, w.queue)
	return w
}

// send puts messages into the queue, each with the group that it begins with.
func (w *intake) send(bodies ...string) {
	w.Helper()
	for some := range slices.Chunk(bodies, 10) {
		in := &sqs.SendMessageBatchInput{QueueUrl: &w.queue.URL}
		for i, body := range some {
			e := types.SendMessageBatchRequestEntry{Id: new(strconv.Itoa(i)), MessageBody: &body}
			if strings.HasSuffix(w.queue.URL, ".fifo") {
				e.MessageGroupId, e.MessageDeduplicationId = new(groupOf(body)), new(strconv.Itoa(len(body))+body[:min(len(body), 100)])
			}
			in.Entries = append(in.Entries, e)
		}
		out, err := awstest.SQS(w.T).SendMessageBatch(w.Context(), in)
		require.NoError(w, err)
		require.Empty(w, out.Failed)
	}
}

// groupOf is the group of a message: "g1-7" is of g1.
func groupOf(body string) string {
	group, _, _ := strings.Cut(body, "-")
	return group
}

// messages are n messages of so many groups.
func messages(n, groups int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("g%d-%03d", i%groups, i)
	}
	return all
}

// held is how many messages the queue has, whoever sees them.
func (w *intake) held() (n int) {
	w.Helper()
	w.resources["SourceQueue"] = w.queue.URL
	for number := range strings.FieldsSeq(w.waiting(w.T, "SourceQueue")) {
		k, err := strconv.Atoi(number)
		require.NoError(w, err)
		n += k
	}
	return n
}

// take takes what the sink has got, line by line.
func (w *intake) take() {
	w.Helper()
	for d, more := w.sink.Poll(); more; d, more = w.sink.Poll() {
		for _, line := range d.Lines {
			var body string
			require.NoError(w, json.Unmarshal([]byte(line), &body), line)
			w.got = append(w.got, body)
		}
	}
}

// until waits for something, sweeping every second.
func (w *intake) until(what string, holds func() bool) {
	w.Helper()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for end := time.Now().Add(scenario.Patience); !holds(); <-tick.C {
		if time.Now().After(end) {
			require.FailNow(w, "it never came to be that "+what, "%d messages in the queue, got %q\n%s", w.held(), w.got, w.logs())
		}
		if answer, err := w.flush(context.WithoutCancel(w.Context())); err != nil {
			w.Logf("flush: %v %s", err, answer)
		}
	}
}

// arrived waits until so many different events have been delivered, and the queue is empty.
func (w *intake) arrived(n int) {
	w.Helper()
	w.until("all is delivered", func() bool {
		w.take()
		return len(slices.Compact(slices.Sorted(slices.Values(w.got)))) >= n && w.held() == 0
	})
}

// inOrder checks that each group's events came in the order of their numbers.
func (w *intake) inOrder() {
	w.Helper()
	byGroup := map[string][]string{}
	for _, body := range w.got {
		byGroup[groupOf(body)] = append(byGroup[groupOf(body)], body)
	}
	for group, all := range byGroup {
		require.True(w, slices.IsSorted(all), "%s: %q", group, all)
	}
}

// The messages of a queue are delivered, each once, in the order that it keeps,
// though every batch of them reaches the function twice at the same time.
func TestE2EReceive(t *testing.T) {
	t.Parallel()
	for name, fifo := range map[string]bool{"standard": false, "FIFO": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := takeIn(t, fifo, "", ", ordering: {}, dedupe: {window: 10m}, batch: {maxItems: 5, idleTimeoutMs: 100}")
			w.source.Treat(lambdatest.Double)
			sent := messages(60, 4)
			w.send(sent...)
			w.arrived(len(sent))
			require.ElementsMatch(t, sent, w.got, "no event is delivered twice")
			if fifo {
				w.inOrder()
			}
		})
	}
}

// A message that is refused stays, with those behind it in its group; all others
// are taken and deleted.
func TestE2EReceivePartly(t *testing.T) {
	t.Parallel()
	w := takeIn(t, true, ", maxEventBytes: 1KiB", ", batch: {idleTimeoutMs: 100}")
	large := "g1-003" + strings.Repeat("x", 1<<10)
	w.send("g1-001", "g2-002", large, "g2-004", "g1-005", "g3-006")
	want := []string{"g1-001", "g2-002", "g2-004", "g3-006"}
	w.until("the others are delivered", func() bool {
		w.take()
		return len(w.got) >= len(want) && w.held() == 2
	})
	w.until("it has come again", func() bool { return strings.Count(w.functions["receive"].Logs(), "messages stay in their queue") >= 3 })
	w.take()
	require.ElementsMatch(t, want, w.got)
	w.until("it is there still", func() bool { return w.held() == 2 })
	w.inOrder()
}

// What a full buffer has no room for stays in the queue until it has.
func TestE2EReceiveFull(t *testing.T) {
	t.Parallel()
	w := takeIn(t, false, "", ", size: 5, batch: {maxItems: 1}, groupBy: '{{ .id }}'")
	w.sink.Answers(func(scenario.Delivery) scenario.Answer { return scenario.Answer{Status: http.StatusServiceUnavailable} })
	sent := messages(15, 3)
	w.send(sent[:5]...)
	w.arrived(5)                   // though none is taken
	_, err := w.flush(t.Context()) // which counts what it holds
	require.NoError(t, err)
	w.functions["receive"].Kill() // another process asks again
	w.send(sent[5:]...)
	w.until("they are not taken", func() bool {
		refused := strings.Count(w.functions["receive"].Logs(), "is full: it holds at most 5 events")
		return refused >= 3 && w.held() == 10 // in time: the numbers are approximate
	})
	w.take()
	w.got = nil // none of these was taken
	w.sink.Answers(nil)
	w.arrived(len(sent))
	for _, body := range sent {
		require.Contains(t, w.got, body)
	}
}

// The function dies at each of its calls, before and after, and with the answer
// lost. Nothing is lost, and with dedupe nothing comes twice.
func TestE2EReceiveCrashes(t *testing.T) {
	t.Parallel()
	for name, dedupe := range map[string]string{"dedupe": ", dedupe: {window: 10m}", "plain": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := takeIn(t, false, "", ", batch: {maxItems: 2, idleTimeoutMs: 100}"+dedupe)
			w.crashes.only = "receive"
			var sent []string
			for still := 0; still < 3; {
				died, stop := w.crashes.arm()
				some := messages(len(sent)+3, 1)[len(sent):]
				sent = append(sent, some...)
				w.send(some...)
				select {
				case step := <-died:
					t.Logf("fault: %s", step)
					still = 0
				case <-time.After(time.Second):
					still++
				}
				stop()
			}
			w.arrived(len(sent))
			for _, f := range fates {
				require.True(t, slices.ContainsFunc(w.crashes.steps(), func(s string) bool { return strings.HasSuffix(s, ", "+f.name) }), f.name)
			}
			if dedupe != "" {
				require.ElementsMatch(t, sent, w.got)
			}
			for _, body := range sent {
				require.Contains(t, w.got, body)
			}
			t.Logf("%d faults, %d messages, %d delivered", len(w.crashes.steps()), len(sent), len(w.got))
		})
	}
}

// What a destination of type sqs sends, a source of type sqs reads byte for byte.
func TestE2ERelay(t *testing.T) {
	t.Parallel()
	queue, sink := awstest.Queue(t, awstest.SQS(t), map[string]string{"FifoQueue": "true"}), scenario.NewSink(t, nil)
	s := deploy(t, fmt.Sprintf(`
sources: {in: {type: http, auth: none}, work: {type: sqs, queue: %[1]q}}
destinations:
  queue: {type: sqs, queue: %[1]q, allowPrivate: true}
  out: {type: http, url: %[2]q, allowPrivate: true, format: envelope}
buffers:
  a: {from: [in], to: queue, groupBy: "{{ .headers.k }}", batch: {maxItems: 1}}
  b: {from: [work], to: out, batch: {maxItems: 1}}
`, queue.URL, sink.URL))
	s.poll(t, queue)
	bodies := []string{"", " ", "\x00\xff", `{"a":"\u0000"}`, "plain ä", "\ufffe"}
	for _, body := range bodies {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.front.URL+"/v1/sources/in", strings.NewReader(body))
		require.NoError(t, err)
		r.Header.Set("Content-Type", "application/x-odd")
		r.Header.Set("K", strings.Repeat("k ", 100))
		resp, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, http.StatusAccepted, resp.StatusCode, s.logs())
	}
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	var got []string
	for range bodies {
		d := sink.Next(t, s.logs)
		require.Len(t, d.Lines, 1)
		got = append(got, original(t, d.Lines[0]))
	}
	require.ElementsMatch(t, bodies, got)
}

// original is the body of an envelope's one item.
func original(t *testing.T, envelope string) string {
	t.Helper()
	var e struct {
		Group string
		Items []struct {
			ContentType string
			Headers     map[string]string
			Body        json.RawMessage
			BodyBase64  *string
		}
	}
	require.NoError(t, json.Unmarshal([]byte(envelope), &e), envelope)
	require.Len(t, e.Items, 1)
	it := e.Items[0]
	require.Len(t, e.Group, 64, "the message group, a hash")
	require.Equal(t, "application/x-odd", it.ContentType)
	require.NotContains(t, it.Headers, "sluice-encoding")
	require.Equal(t, "a", it.Headers["sluice-buffer"])
	if it.BodyBase64 != nil {
		raw, err := base64.StdEncoding.DecodeString(*it.BodyBase64)
		require.NoError(t, err)
		return string(raw)
	}
	var text string
	if json.Unmarshal(it.Body, &text) != nil {
		return string(it.Body)
	}
	return text
}
