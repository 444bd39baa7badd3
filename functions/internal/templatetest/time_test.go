package templatetest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

// visibility is how many times a function's timeout a message that it works on
// must stay hidden: what Lambda asks for.
const visibility = 6

// longestDelay is the most that a check lies in its queue by design: what SQS
// can delay a message for.
const longestDelay = 15 * 60

// TestQueues: a message in work is not handed out twice, none is held back to
// fill a batch, and one that fails does not repeat its neighbours.
func TestQueues(t *testing.T) {
	t.Parallel()
	template := load(t)
	sources := 0
	for name := range functions {
		for event, e := range events(t, template, name) {
			if at(t, e, "Type") != "SQS" {
				continue
			}
			sources++
			p := within[object](t, e, "Properties")
			queue := properties(t, template, target(p["Queue"]))
			timeout := within[int](t, properties(t, template, name), "Timeout")
			require.GreaterOrEqual(t, within[int](t, queue, "VisibilityTimeout"), visibility*timeout, event)
			require.Zero(t, p["MaximumBatchingWindowInSeconds"], event)
			require.Equal(t, list{"ReportBatchItemFailures"}, p["FunctionResponseTypes"], event)
			for _, size := range bounds(t, template, p["BatchSize"]) {
				require.GreaterOrEqual(t, size, 1, event)
				require.LessOrEqual(t, size, 10, "more need a window of a second")
			}
			for _, most := range bounds(t, template, at(t, p, "ScalingConfig", "MaximumConcurrency")) {
				require.GreaterOrEqual(t, most, 2, event)
				require.LessOrEqual(t, most, 1000, event)
			}
		}
	}
	require.Equal(t, 3, sources)
}

// TestSourceQueueMapping: a queue of either kind may be a source, with SQS's own
// visibility timeout, and a message that is not taken does not repeat its neighbours.
func TestSourceQueueMapping(t *testing.T) {
	t.Parallel()
	template := load(t)
	p := properties(t, template, "SourceQueueMapping")
	require.Equal(t, "HasSourceQueue", at(t, template, "Resources", "SourceQueueMapping", "Condition"))
	require.Equal(t, "SourceQueuePolicy", at(t, template, "Resources", "SourceQueueMapping", "DependsOn"), "Lambda tries whether it may read")
	require.Equal(t, "ReceiveFunction", target(p["FunctionName"]))
	require.Equal(t, object{"Ref": core.QueueParameterAWS}, p["EventSourceArn"])
	require.Equal(t, list{"ReportBatchItemFailures"}, p["FunctionResponseTypes"])
	require.Equal(t, 10, p["BatchSize"], "the most of a fifo queue")
	require.NotContains(t, p, "MaximumBatchingWindowInSeconds", "which a fifo queue can't have")
	require.Equal(t, []int{2, 1000}, bounds(t, template, at(t, p, "ScalingConfig", "MaximumConcurrency")))
	require.Less(t, within[int](t, properties(t, template, "ReceiveFunction"), "Timeout"), 30, "Lambda refuses a queue whose messages come back sooner")
}

// TestMessages: a queue of hints adds no delay of its own, and a queue of dead
// letters takes the largest that there are.
func TestMessages(t *testing.T) {
	t.Parallel()
	template := load(t)
	for _, name := range []string{"CheckQueue", "DeliverQueue"} {
		require.Zero(t, within[int](t, properties(t, template, name), "DelaySeconds"), name)
	}
	for _, name := range []string{"DeadLetterQueue", "ReplayQueue"} {
		require.Equal(t, 1<<20, within[int](t, properties(t, template, name), "MaximumMessageSize"), name)
	}
}

// TestLoops: Lambda does not end the chain of checks and deliveries that keep
// a busy group going. They are the functions that a queue starts.
func TestLoops(t *testing.T) {
	t.Parallel()
	template := translated(t)
	for name := range functions {
		queued := name == "CheckFunction" || name == "DeliverFunction"
		if queued {
			require.Equal(t, "Allow", properties(t, template, name)["RecursiveLoop"], name)
		} else {
			require.NotContains(t, properties(t, template, name), "RecursiveLoop", "nothing that it starts can start it again")
		}
	}
}

// events are what starts a function.
func events(t *testing.T, template object, function string) map[string]any {
	t.Helper()
	if _, ok := properties(t, template, function)["Events"]; !ok {
		return nil
	}
	return within[object](t, properties(t, template, function), "Events")
}

// bounds are the least and the most of a number, given or by parameter.
func bounds(t *testing.T, template object, v any) []int {
	t.Helper()
	if n, ok := v.(int); ok {
		return []int{n}
	}
	parameter := within[object](t, template, "Parameters", target(v))
	return []int{within[int](t, parameter, "MinValue"), within[int](t, parameter, "MaxValue")}
}

// TestRetention: a hint outlives its delay, and its alarm goes off before it is
// gone; dead letters stay for as long as SQS keeps anything.
func TestRetention(t *testing.T) {
	t.Parallel()
	template := load(t)
	alarm := bounds(t, template, object{"Ref": "QueueAgeAlarm"})[1]
	for _, name := range []string{"CheckQueue", "DeliverQueue"} {
		retention := within[int](t, properties(t, template, name), "MessageRetentionPeriod")
		require.Greater(t, retention, alarm+5*60, "%s: the alarm looks at five minutes", name)
		require.Greater(t, retention, longestDelay+within[int](t, properties(t, template, name), "VisibilityTimeout"), name)
	}
	for _, name := range []string{"DeadLetterQueue", "ReplayQueue"} {
		require.Equal(t, 14*24*60*60, within[int](t, properties(t, template, name), "MessageRetentionPeriod"), name)
	}
}

// TestDeliverTimeout: the slowest destination that a configuration may have is
// waited for, and its batch settled.
func TestDeliverTimeout(t *testing.T) {
	t.Parallel()
	const slowest = 5 * time.Minute
	require.Empty(t, configured(slowest).Validate())
	require.NotEmpty(t, configured(slowest+time.Millisecond).Validate(), "there are slower ones")
	catalog, err := core.NewCatalog(configured(slowest), nil)
	require.NoError(t, err)
	lease := catalog.Buffer("b").Policy.Lease
	require.Greater(t, lease, slowest)
	timeout := time.Duration(within[int](t, properties(t, load(t), "DeliverFunction"), "Timeout")) * time.Second
	require.GreaterOrEqual(t, timeout, lease+time.Minute, "what is before the send, and thousands of dead letters behind it")
	require.LessOrEqual(t, timeout, 15*time.Minute)
}

// configured is a configuration with a destination of a timeout.
func configured(timeout time.Duration) *core.Config {
	c := core.NewConfig()
	c.Sources = []core.Source{core.NewSource("s")}
	d := core.NewDestination("d")
	d.Type, d.URL, d.Timeout = core.TypeHTTP, "https://example.com/", timeout
	c.Destinations = []core.Destination{d}
	b := core.NewBuffer("b")
	b.From, b.To = []string{"s"}, "d"
	c.Buffers = []core.Buffer{b}
	return c
}

// TestHTTPTimeouts: a function behind the API ends before the API gives up on
// it, which is after 30 s.
func TestHTTPTimeouts(t *testing.T) {
	t.Parallel()
	template := load(t)
	routes := make(map[string]string)
	for name := range functions {
		for event, e := range events(t, template, name) {
			if at(t, e, "Type") != "HttpApi" {
				continue
			}
			p := within[object](t, e, "Properties")
			routes[within[string](t, p, "Method")+" "+within[string](t, p, "Path")] = name
			require.Equal(t, "2.0", p["PayloadFormatVersion"], event)
			require.Equal(t, "Api", target(p["ApiId"]), event)
			api := within[int](t, p, "TimeoutInMillis")
			require.LessOrEqual(t, api, 30_000, event)
			require.Less(t, 1000*within[int](t, properties(t, template, name), "Timeout"), api, event)
		}
	}
	ingest := time.Duration(within[int](t, properties(t, template, "IngestFunction"), "Timeout")) * time.Second
	require.GreaterOrEqual(t, ingest, time.Duration(core.RespondRange.Max)+3*time.Second, "a sender may wait for the outcome")
	require.Equal(t, map[string]string{
		"POST /v1/sources/{proxy+}": "IngestFunction",
		"GET /healthz":              "IngestFunction",
		"GET /readyz":               "IngestFunction",
		"ANY /v1/{proxy+}":          "ControlFunction",
	}, routes)
}

// TestSweep: it runs every minute, and is not repeated when it fails.
func TestSweep(t *testing.T) {
	t.Parallel()
	template := load(t)
	p := properties(t, template, "FlushFunction")
	require.Zero(t, within[int](t, p, "EventInvokeConfig", "MaximumRetryAttempts"))
	minute := within[object](t, p, "Events", "Minute")
	require.Equal(t, "ScheduleV2", minute["Type"])
	require.Equal(t, "rate(1 minute)", at(t, minute, "Properties", "ScheduleExpression"))
	require.Equal(t, "ScheduleGroup", target(at(t, minute, "Properties", "GroupName")), "names of the default group collide between stacks")
	require.Zero(t, within[int](t, minute, "Properties", "RetryPolicy", "MaximumRetryAttempts"))
}

// TestFlushTime: behind a minute's sweep there is time to begin sends to the
// slowest destination for minutes, and to settle them.
func TestFlushTime(t *testing.T) {
	t.Parallel()
	slowest := time.Duration(core.TimeoutRange.Max)
	catalog, err := core.NewCatalog(configured(slowest), nil)
	require.NoError(t, err)
	timeout := time.Duration(within[int](t, properties(t, load(t), "FlushFunction"), "Timeout")) * time.Second
	require.GreaterOrEqual(t, timeout, time.Minute+catalog.Buffer("b").Policy.Lease+5*time.Minute)
	require.LessOrEqual(t, timeout, 15*time.Minute, "what Lambda lets a function take")
}
