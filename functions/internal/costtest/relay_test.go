package costtest

import (
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/stretchr/testify/require"

	"sluice/functions/internal/edge"
)

// full is the buffer that fills, with something added.
func full(add string) string {
	return `  full: {from: [full], to: crm, groupBy: "{{ .json.customer_id }}", ` + add + "}\n"
}

// besides are the steps that only some configurations have.
func besides(t *testing.T) []step {
	t.Helper()
	return []step{
		taken(t),
		once(t),
		guarded(t, "its delivery, to a destination with a `breaker`", "breaker: {failures: 10, cooldown: 1m}"),
		guarded(t, "its delivery, to a destination with a `rateLimit`", "rateLimit: {requests: 1000, per: 1s}"),
		held(t),
		moved(t),
	}
}

// measured is what a step uses.
func (s *stack) measured(name string, run func()) step {
	s.t.Helper()
	before := s.wire.since(usage{})
	run()
	return step{name, s.wire.since(before)}
}

// taken is what a queue hands over.
func taken(t *testing.T) step {
	t.Helper()
	const jobs = "https://" + sqsHost + "/000000000000/jobs"
	s := deploy(t, "", "sources:\n", "sources:\n  jobs: {type: sqs, queue: "+jobs+"}\n", "from: [full]", "from: [full, jobs]")
	var e edge.ReceiveEvent
	for i := range 10 {
		e.Records = append(e.Records, events.SQSMessage{
			MessageId: fmt.Sprint("m", i), Body: order(s.mint, "c-1"), EventSource: "aws:sqs", EventSourceARN: arn("jobs"),
		})
	}
	return s.measured("10 messages of a queue, which open a group", func() {
		s.invoke("ingest", len(e.Records), 0, func() { // it has as much memory
			answer, err := s.receive(t.Context(), e)
			require.NoError(t, err)
			require.Empty(t, answer.BatchItemFailures)
		})
		s.wire.count(usage{polled: 2})
	})
}

// once is an event of which a double would be left out.
func once(t *testing.T) step {
	t.Helper()
	s, w := deploy(t, full("dedupe: {window: 10m}")), way{source: "full", post: 1}
	w.send(s, order, []string{"c-1"})
	return s.measured("a POST that adds to a group, with `dedupe`", func() { w.send(s, order, []string{"c-1"}) })
}

// guarded is a delivery to a destination that is not sent to at any time.
func guarded(t *testing.T, name, guard string) step {
	t.Helper()
	s, w := deploy(t, "", "secrets:", guard+", secrets:"), way{source: "full", post: 1}
	for range groupSize {
		w.send(s, order, []string{"c-1"})
	}
	return s.measured(name, func() { require.Equal(t, 1, s.sent()) })
}

// held is an event that is held, and moved is how it goes on.
func held(t *testing.T) step {
	t.Helper()
	s, w := deploy(t, full("deliverAfter: 10m")), way{source: "full", post: 1}
	return s.measured("a POST whose event is the first to be held until its half second", func() { w.send(s, order, []string{"c-1"}) })
}

func moved(t *testing.T) step {
	t.Helper()
	s, w := deploy(t, full("deliverAfter: 10m")), way{source: "full", post: 1}
	w.send(s, order, []string{"c-1"})
	return s.measured("that half second's events on their way to their one group", func() {
		s.pass(9*time.Minute + time.Second)
		<-s.fired
		require.Equal(t, 1, s.checked())
		s.pass(time.Minute)
		require.Equal(t, 1, s.checked())
		require.Equal(t, 1, s.sent())
	})
}

// TestBesides counts what they ask for.
func TestBesides(t *testing.T) {
	compare(t, "besides", stepTable(besides(t)))
}
