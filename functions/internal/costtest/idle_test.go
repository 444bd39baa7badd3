package costtest

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
)

// line is something that is paid for by the month.
type line struct {
	what, why string
	dollars   float64
}

// waiting is how many groups wait while the sweep is looked at.
const waiting = 100

// idle is what a stack costs a month in which nothing happens, beside that
// what can be left out, and what adds to it. The other stack has one buffer more,
// which leaves by flushes alone.
func idle(s, other *stack) (always, optional, more []line) {
	s.t.Helper()
	minutes, hours := month.Minutes(), month.Hours()
	s.swept()
	usual := s.wire.since(usage{})
	other.swept()
	flushing := other.wire.since(usual).times(minutes)
	s.pass(59 * time.Minute)
	s.swept()
	hourly := s.wire.since(usual) // has more to do
	sweeps := usual.times(minutes-hours).add(hourly, hours)
	polls := float64(s.deployed.sources) * pollers * float64(month/pollTime)
	metrics := series(s)

	w := way{source: "far", post: waiting}
	var keys []string
	for k := range waiting {
		keys = append(keys, fmt.Sprintf("c-%d", k))
	}
	w.send(s, order, keys)
	before := s.wire.since(usage{})
	s.swept()
	busy := s.wire.since(before).add(usual, -1).times(1000. / waiting * minutes)

	always = []line{
		{"the sweep: DynamoDB", fmt.Sprintf("%.0f queries of the empty indexes a minute", usual.calls), sweeps.dynamoDB()},
		{"the sweep: Lambda, Scheduler, logs", "an invocation a minute", sweeps.lambda() + sweeps.scheduler() + sweeps.logs()},
		{"SQS", fmt.Sprintf("%.2f million empty polls by Lambda of %d queues", polls/million, s.deployed.sources), polls * priceSQS},
	}
	optional = []line{
		{"alarms (`Alarms=off`)", fmt.Sprintf("%d metrics that are watched", s.deployed.alarmed), float64(s.deployed.alarmed) * priceAlarm},
		{"dashboard (`Dashboard=off`)", "one", float64(s.deployed.dashboards) * priceDashboard},
		{"metrics of one source, one buffer and one destination in use", fmt.Sprintf("%d, paid for the hours in which they have values", metrics), float64(metrics) * priceMetric},
	}
	more = []line{
		{"1,000 groups that wait at any time", "the sweep reads each once a minute, to measure what waits", busy.dynamoDB()},
		{"each buffer with `flush`", "its turn is taken and given back every minute, and the indexes are looked through once more", flushing.dynamoDB() + flushing.lambda() + flushing.logs()},
	}
	return always, optional, more
}

// series is how many metrics CloudWatch makes of one source's events on their
// way through one buffer.
func series(s *stack) int {
	w := ways[0]
	w.send(s, order, []string{"c-1"})
	s.swept()
	for range groupSize - 1 {
		w.send(s, order, []string{"c-1"})
	}
	require.Equal(s.t, 1, s.sent())
	s.pass(time.Minute)
	s.checked()
	found := map[string]bool{}
	for text := range strings.Lines(s.logs.String()) {
		var members map[string]any
		require.NoError(s.t, json.Unmarshal([]byte(text), &members))
		var emf struct {
			AWS struct {
				CloudWatchMetrics []struct {
					Dimensions [][]string
					Metrics    []struct{ Name string }
				}
			} `json:"_aws"`
		}
		require.NoError(s.t, json.Unmarshal([]byte(text), &emf))
		for _, d := range emf.AWS.CloudWatchMetrics {
			for _, m := range d.Metrics {
				for _, names := range d.Dimensions {
					id := m.Name
					for _, n := range names {
						id += fmt.Sprintf(" %s=%v", n, members[n])
					}
					found[id] = true
				}
			}
		}
	}
	require.NotEmpty(s.t, found)
	return len(found)
}
