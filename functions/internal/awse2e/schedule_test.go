package awse2e

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/stretchr/testify/require"

	"sluice/functions/internal/scenario"
	"sluice/infra/awstest"
)

// A deadline that is far away is a schedule, a minute early. The check that it
// wakes leaves this minute to SQS.
func TestE2EFarDeadline(t *testing.T) {
	t.Parallel()
	const wait = 65 * time.Second
	sink := scenario.NewSink(t, nil)
	s := deploy(t, `
sources: {in: {type: http, auth: none}}
destinations: {out: {type: http, url: "`+sink.URL+`", allowPrivate: true}}
buffers: {b: {from: [in], to: out, batch: {idleTimeoutMs: 65000, maxWaitFromFirstMs: 600000}}}
`)
	begin := time.Now()
	resp, err := http.Post(s.front.URL+"/v1/sources/in", "application/json", strings.NewReader(`{}`))
	require.NoError(t, err)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusAccepted, resp.StatusCode, s.logs())

	list := s.schedules.Schedules()
	require.Len(t, list, 1)
	at, err := time.Parse("at(2006-01-02T15:04:05)", *list[0].ScheduleExpression)
	require.NoError(t, err)
	require.WithinRange(t, at, begin.Add(wait-time.Minute-2*time.Second), time.Now().Add(wait-time.Minute+time.Second))
	require.Equal(t, s.resources["CheckQueue.Arn"], *list[0].Target.Arn)
	require.Equal(t, s.resources["ScheduleRole.Arn"], *list[0].Target.RoleArn)
	require.Equal(t, "0 0 0", s.waiting(t, "CheckQueue"))

	require.Eventually(t, func() bool {
		return s.waiting(t, "CheckQueue") == "0 1 0" && len(s.schedules.Schedules()) == 0
	}, scenario.Patience, 50*time.Millisecond, s.logs())
	require.Len(t, s.functions["check"].Inits(), 1)
	require.False(t, time.Now().Before(at), "it must not be woken early")
	_, sent := sink.Poll()
	require.False(t, sent, "it is not due")
}

// waiting is how many messages of a queue are visible, delayed and in flight.
func (s *stack) waiting(t testing.TB, queue string) string {
	t.Helper()
	names := []types.QueueAttributeName{"ApproximateNumberOfMessages", "ApproximateNumberOfMessagesDelayed", "ApproximateNumberOfMessagesNotVisible"}
	out, err := awstest.SQS(t).GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{
		QueueUrl: aws.String(s.resources[queue]), AttributeNames: names,
	})
	require.NoError(t, err)
	var numbers []string
	for _, n := range names {
		numbers = append(numbers, out.Attributes[string(n)])
	}
	return strings.Join(numbers, " ")
}
