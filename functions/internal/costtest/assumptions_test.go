package costtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

// List prices in us-east-1 without any free tier, in dollars.
const (
	million = 1e6

	// aws.amazon.com/dynamodb/pricing/on-demand, standard table class.
	priceWrite   = 0.625 / million
	priceRead    = 0.125 / million
	priceStored  = 0.25 // a GB and month
	priceBackups = 0.20 // a GB and month of point-in-time recovery

	// aws.amazon.com/sqs/pricing, standard queues; up to 64 KB of payload are one request.
	priceSQS = 0.40 / million
	sqsChunk = 64 << 10

	// aws.amazon.com/lambda/pricing, arm64.
	priceInvocation = 0.20 / million
	priceGBSecond   = 0.0000133334

	// aws.amazon.com/api-gateway/pricing; up to 512 KB are one request. A function URL is free.
	priceHTTP = 1.00 / million
	httpChunk = 512 << 10

	// aws.amazon.com/eventbridge/pricing, beyond the first 14 million a month.
	priceSchedule = 1.00 / million

	// aws.amazon.com/cloudwatch/pricing: the first tier of each.
	priceLog       = 0.50 // a GB taken in
	priceMetric    = 0.30 // a custom metric and month
	priceAlarm     = 0.10 // a metric that an alarm watches and month
	priceDashboard = 3.00 // a month
)

// What is assumed. The page names these.
const (
	// callTime is how long a call to DynamoDB, SQS or Scheduler takes an
	// invocation, which makes them one after the other.
	callTime = 5 * time.Millisecond
	// ownTime is what an invocation takes beside its calls, and eventTime what
	// each event that it takes in or sends adds.
	ownTime   = 2 * time.Millisecond
	eventTime = 50 * time.Microsecond
	// destinationTime is how long a destination takes to answer.
	destinationTime = 100 * time.Millisecond

	// Lambda keeps at least five long polls of twenty seconds open on each queue
	// whose mapping has a maximum concurrency:
	// docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html.
	pollers  = 5
	pollTime = 20 * time.Second

	month = 30 * 24 * time.Hour

	// logOverhead is what CloudWatch adds to each line that it takes in, in bytes.
	logOverhead = 26
	// itemOverhead is what DynamoDB adds to each item that it keeps, in bytes.
	itemOverhead = 100

	// groupSize is how many events leave together.
	groupSize = 50
)

// root is the module's root, from here.
const root = "../../.."

// deployed is what template.yaml says that costs something.
type deployed struct {
	memory     map[string]float64 // of each function, in MB
	sources    int                // queues that Lambda polls
	alarmed    int                // metrics that alarms watch
	retention  time.Duration      // how long items are kept, by the default of sluice.yaml
	dashboards int
}

// template reads what is deployed by default.
func template(t *testing.T) deployed {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, "template.yaml"))
	require.NoError(t, err)
	text := string(data)
	return deployed{
		memory: map[string]float64{
			"ingest":  number(t, text, `(?m)^  IngestMemory:\n(?:    .*\n)*?    Default: (\d+)$`),
			"check":   number(t, text, `(?m)^  CheckMemory:\n(?:    .*\n)*?    Default: (\d+)$`),
			"deliver": number(t, text, `(?m)^  DeliverMemory:\n(?:    .*\n)*?    Default: (\d+)$`),
			"flush":   number(t, text, `(?m)^  FlushMemory:\n(?:    .*\n)*?    Default: (\d+)$`),
		},
		sources: strings.Count(text, "Type: SQS\n"),
		// There is no function URL, and no queue as a source.
		alarmed:    strings.Count(text, "MetricName: ") - strings.Count(text, "MetricName: Url") - strings.Count(text, "Condition: HasReceiveAlarms\n"),
		dashboards: strings.Count(text, "Type: AWS::CloudWatch::Dashboard\n"),
		retention:  time.Duration(core.RetentionRange.Default),
	}
}

// number is what a pattern's one group matches.
func number(t *testing.T, text, pattern string) float64 {
	t.Helper()
	m := regexp.MustCompile(pattern).FindStringSubmatch(text)
	require.NotNil(t, m, "template.yaml has nothing like %s", pattern)
	n, err := strconv.ParseFloat(m[1], 64)
	require.NoError(t, err)
	return n
}
