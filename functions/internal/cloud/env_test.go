package cloud

import (
	"log/slog"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

func TestReadEnv(t *testing.T) {
	t.Parallel()
	vars := variables(t, "")
	e, err := ReadEnv(lookup(vars))
	require.NoError(t, err)
	require.Equal(t, Env{
		Config: vars["SLUICE_CONFIG"], Table: "table",
		CheckQueueURL: "https://sqs.eu-central-1.amazonaws.com/1/checks", CheckQueueARN: "arn:aws:sqs:eu-central-1:1:checks",
		DeliverQueueURL:    "https://sqs.eu-central-1.amazonaws.com/1/deliveries",
		DeadLetterQueueURL: "https://sqs.eu-central-1.amazonaws.com/1/letters",
		ScheduleGroup:      "group", ScheduleRoleARN: "arn:aws:iam::1:role/schedules",
		FlushURL:  vars["SLUICE_FLUSH_URL"],
		Threshold: time.Minute, LogLevel: slog.LevelInfo, Environment: "dev",
		Region: "eu-central-1", Credentials: Credentials{Key: "key", Secret: "secret"},
	}, e)
}

func TestReadEnvOptions(t *testing.T) {
	t.Parallel()
	vars := variables(t, "")
	delete(vars, "SLUICE_CONFIG")
	maps.Copy(vars, map[string]string{
		"LAMBDA_TASK_ROOT": "/var/task", "SLUICE_SCHEDULER_THRESHOLD": "900", "SLUICE_LOG_LEVEL": "debug", "AWS_SESSION_TOKEN": "token",
		"AWS_ENDPOINT_URL": "http://127.0.0.1:1", "AWS_ENDPOINT_URL_SQS": "http://127.0.0.1:2", "SLUICE_ENVIRONMENT": "",
		"AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "512",
	})
	e, err := ReadEnv(lookup(vars))
	require.NoError(t, err)
	require.Equal(t, "/var/task/sluice.yaml", e.Config)
	require.Equal(t, 15*time.Minute, e.Threshold)
	require.Equal(t, slog.LevelDebug, e.LogLevel)
	require.Equal(t, "token", e.Credentials.Token)
	require.Empty(t, e.Environment)
	require.EqualValues(t, 512<<20, e.Memory)
	one := "http://127.0.0.1:1"
	require.Equal(t, Endpoints{DynamoDB: one, SQS: "http://127.0.0.1:2", Scheduler: one, SSM: one, S3: one}, e.Endpoints)
}

// All that is wrong is said at once, and no value is shown.
func TestReadEnvFaults(t *testing.T) {
	t.Parallel()
	_, err := ReadEnv(lookup(map[string]string{
		"SLUICE_TABLE":               "table",
		"SLUICE_CHECK_QUEUE_URL":     "hidden/checks",
		"SLUICE_CHECK_QUEUE_ARN":     "arn:aws:sns:eu-central-1:1:hidden",
		"SLUICE_DELIVER_QUEUE_URL":   "ftp://hidden",
		"SLUICE_SCHEDULE_ROLE_ARN":   "hidden",
		"SLUICE_SCHEDULER_THRESHOLD": "59",
		"SLUICE_LOG_LEVEL":           "hidden",
		"AWS_SECRET_ACCESS_KEY":      "hidden",
		"AWS_ENDPOINT_URL_SSM":       "hidden",

		"AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "hidden",
	}))
	require.EqualError(t, err, strings.TrimSpace(`
SLUICE_CHECK_QUEUE_URL is no URL; it must begin with https:// and a host
SLUICE_CHECK_QUEUE_ARN is no ARN of sqs; it must be arn:<partition>:sqs:<region>:<account>:<name>
SLUICE_DELIVER_QUEUE_URL is no URL; it must begin with https:// and a host
SLUICE_DEAD_LETTER_QUEUE_URL is not set; the template sets it
SLUICE_SCHEDULE_GROUP is not set; the template sets it
SLUICE_SCHEDULE_ROLE_ARN is no ARN of iam; it must be arn:<partition>:iam:<region>:<account>:<name>
SLUICE_SCHEDULER_THRESHOLD must be whole seconds, from 60 to 900
SLUICE_LOG_LEVEL must be debug, info, warn or error
AWS_LAMBDA_FUNCTION_MEMORY_SIZE is no number of megabytes; Lambda sets it
AWS_REGION is not set; Lambda sets it
AWS_ACCESS_KEY_ID is not set; Lambda sets it
AWS_ENDPOINT_URL_SSM is no URL; it must begin with https:// or http:// and a host
LAMBDA_TASK_ROOT is not set; Lambda sets it`))
	require.Equal(t, core.Invalid, core.CodeOf(err))
}

func TestThresholdBounds(t *testing.T) {
	t.Parallel()
	for value, ok := range map[string]bool{"60": true, "900": true, "901": false, "60s": false, "-60": false, "1e3": false} {
		vars := variables(t, "")
		vars["SLUICE_SCHEDULER_THRESHOLD"] = value
		_, err := ReadEnv(lookup(vars))
		require.Equal(t, ok, err == nil, value)
	}
}
