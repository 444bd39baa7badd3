package schedulertest

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/scheduler/types"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/require"

	"sluice/infra/awstest"
)

// service is what the fake and the SDK's client have in common.
type service interface {
	CreateSchedule(ctx context.Context, in *scheduler.CreateScheduleInput, opts ...func(*scheduler.Options)) (*scheduler.CreateScheduleOutput, error)
	GetSchedule(ctx context.Context, in *scheduler.GetScheduleInput, opts ...func(*scheduler.Options)) (*scheduler.GetScheduleOutput, error)
	DeleteSchedule(ctx context.Context, in *scheduler.DeleteScheduleInput, opts ...func(*scheduler.Options)) (*scheduler.DeleteScheduleOutput, error)
	CreateScheduleGroup(ctx context.Context, in *scheduler.CreateScheduleGroupInput, opts ...func(*scheduler.Options)) (*scheduler.CreateScheduleGroupOutput, error)
	DeleteScheduleGroup(ctx context.Context, in *scheduler.DeleteScheduleGroupInput, opts ...func(*scheduler.Options)) (*scheduler.DeleteScheduleGroupOutput, error)
}

var _ service = (*Fake)(nil)

// both runs a test on a fake in process, and on one through the SDK and HTTP.
func both(t *testing.T, o Options, test func(t *testing.T, f *Fake, s service)) {
	t.Helper()
	t.Run("in process", func(t *testing.T) {
		t.Parallel()
		f := New(o)
		t.Cleanup(f.Close)
		test(t, f, f)
	})
	t.Run("SDK", func(t *testing.T) {
		t.Parallel()
		f := New(o)
		t.Cleanup(f.Close)
		test(t, f, scheduler.NewFromConfig(awstest.Config(t, Serve(t, f))))
	})
}

// valid is a request that is taken, an hour ahead.
func valid(name string) *scheduler.CreateScheduleInput {
	return &scheduler.CreateScheduleInput{
		Name:                       &name,
		GroupName:                  aws.String("sluice"),
		ClientToken:                aws.String("token-of-" + name),
		ScheduleExpression:         aws.String(time.Now().UTC().Add(time.Hour).Format(atLayout)),
		ScheduleExpressionTimezone: aws.String("UTC"),
		FlexibleTimeWindow:         &types.FlexibleTimeWindow{Mode: types.FlexibleTimeWindowModeOff},
		ActionAfterCompletion:      types.ActionAfterCompletionDelete,
		Target: &types.Target{
			Arn:     aws.String("arn:aws:sqs:us-east-1:123456789012:check"),
			RoleArn: aws.String("arn:aws:iam::123456789012:role/path/scheduler"),
			Input:   aws.String(`{"v":1}`),
		},
	}
}

var sluice = Options{Groups: []string{"sluice"}}

// fails asserts an error's code, and that it has the SDK's own type for it.
func fails(t *testing.T, err error, code, message string) {
	t.Helper()
	var fault smithy.APIError
	require.ErrorAs(t, err, &fault)
	require.Equal(t, code, fault.ErrorCode())
	require.Contains(t, fault.ErrorMessage(), message)
	switch code {
	case "ConflictException":
		require.IsType(t, (*types.ConflictException)(nil), fault)
	case "InternalServerException":
		require.IsType(t, (*types.InternalServerException)(nil), fault)
	case "ResourceNotFoundException":
		require.IsType(t, (*types.ResourceNotFoundException)(nil), fault)
	case "ServiceQuotaExceededException":
		require.IsType(t, (*types.ServiceQuotaExceededException)(nil), fault)
	case "ThrottlingException":
		require.IsType(t, (*types.ThrottlingException)(nil), fault)
	default:
		require.IsType(t, (*types.ValidationException)(nil), fault)
	}
	var op *smithy.OperationError
	require.ErrorAs(t, err, &op)
	require.Equal(t, "Scheduler", op.Service())
}

type request = *scheduler.CreateScheduleInput

func target(f func(t *types.Target)) func(request) {
	return func(in request) { f(in.Target) }
}

func TestRefused(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(in request)
		says   string
	}{
		{"name with a slash", func(in request) { in.Name = aws.String("a/b") }, "Name must"},
		{"name with an umlaut", func(in request) { in.Name = aws.String("ä") }, "Name must"},
		{"name of 65", func(in request) { in.Name = aws.String(strings.Repeat("n", 65)) }, "Name must"},
		{"group with a space", func(in request) { in.GroupName = aws.String("my group") }, "GroupName must"},
		{"no group", func(in request) { in.GroupName = aws.String("") }, "GroupName must"},
		{"token with a dot", func(in request) { in.ClientToken = aws.String("a.b") }, "ClientToken must"},
		{"token of 65", func(in request) { in.ClientToken = aws.String(strings.Repeat("t", 65)) }, "ClientToken must"},
		{"no expression", func(in request) { in.ScheduleExpression = aws.String("") }, "Invalid Schedule Expression"},
		{"a rate", func(in request) { in.ScheduleExpression = aws.String("rate(5 minutes)") }, "Invalid Schedule Expression"},
		{"a fraction of a second", func(in request) { in.ScheduleExpression = aws.String("at(2090-01-01T00:00:00.5)") }, "Invalid Schedule Expression"},
		{"a zone in it", func(in request) { in.ScheduleExpression = aws.String("at(2090-01-01T00:00:00Z)") }, "Invalid Schedule Expression"},
		{"no such day", func(in request) { in.ScheduleExpression = aws.String("at(2090-02-30T00:00:00)") }, "Invalid Schedule Expression"},
		{"one digit", func(in request) { in.ScheduleExpression = aws.String("at(2090-1-01T00:00:00)") }, "Invalid Schedule Expression"},
		{"the past", func(in request) { in.ScheduleExpression = aws.String("at(2020-01-01T00:00:00)") }, "not in the future"},
		{"no such zone", func(in request) { in.ScheduleExpressionTimezone = aws.String("Mars/Olympus") }, "Timezone"},
		{"the machine's zone", func(in request) { in.ScheduleExpressionTimezone = aws.String("Local") }, "Timezone"},
		{"an empty zone", func(in request) { in.ScheduleExpressionTimezone = aws.String("") }, "Timezone"},
		{"an open window", func(in request) { in.FlexibleTimeWindow.Mode = "MAYBE" }, "OFF or FLEXIBLE"},
		{"a window that is off", func(in request) { in.FlexibleTimeWindow.MaximumWindowInMinutes = aws.Int32(1) }, "MaximumWindowInMinutes"},
		{"a window without end", func(in request) { in.FlexibleTimeWindow.Mode = types.FlexibleTimeWindowModeFlexible }, "1 to 1440"},
		{"state", func(in request) { in.State = "ON" }, "State must"},
		{"action", func(in request) { in.ActionAfterCompletion = "delete" }, "ActionAfterCompletion must"},
		{"description", func(in request) { in.Description = aws.String(strings.Repeat("d", 513)) }, "Description"},
		{"key", func(in request) { in.KmsKeyArn = aws.String("arn:aws:kms:us-east-1:1:key/k") }, "KmsKeyArn"},
		{"target", target(func(t *types.Target) { t.Arn = aws.String("check") }), "Target.Arn must be an ARN"},
		{"a queue's URL", target(func(t *types.Target) { t.Arn = aws.String("https://sqs.us-east-1.amazonaws.com/123456789012/q") }), "Target.Arn"},
		{"a queue of no account", target(func(t *types.Target) { t.Arn = aws.String("arn:aws:sqs:us-east-1::check") }), "Target.Arn must be the ARN of a queue"},
		{"role", target(func(t *types.Target) { t.RoleArn = aws.String("arn:aws:iam::1:role/r") }), "Target.RoleArn"},
		{"a user for a role", target(func(t *types.Target) { t.RoleArn = aws.String("arn:aws:iam::123456789012:user/r") }), "Target.RoleArn"},
		{"empty input", target(func(t *types.Target) { t.Input = aws.String("") }), "Target.Input"},
		{"much input", target(func(t *types.Target) { t.Input = aws.String(strings.Repeat("i", maxInput+1)) }), "Target.Input"},
		{"dead letters to a topic", target(func(t *types.Target) {
			t.DeadLetterConfig = &types.DeadLetterConfig{Arn: aws.String("arn:aws:sns:us-east-1:123456789012:t")}
		}), "DeadLetterConfig"},
		{"dead letters to a FIFO queue", target(func(t *types.Target) {
			t.DeadLetterConfig = &types.DeadLetterConfig{Arn: aws.String("arn:aws:sqs:us-east-1:123456789012:t.fifo")}
		}), "DeadLetterConfig"},
		{"retries", target(func(t *types.Target) { t.RetryPolicy = &types.RetryPolicy{MaximumRetryAttempts: aws.Int32(186)} }), "0 to 185"},
		{"age", target(func(t *types.Target) { t.RetryPolicy = &types.RetryPolicy{MaximumEventAgeInSeconds: aws.Int32(59)} }), "60 to 86400"},
		{"message group of a standard queue", target(func(t *types.Target) {
			t.SqsParameters = &types.SqsParameters{MessageGroupId: aws.String("g")}
		}), "for FIFO queues"},
		{"FIFO queue without a message group", target(func(t *types.Target) {
			t.Arn = aws.String("arn:aws:sqs:us-east-1:123456789012:check.fifo")
		}), "MessageGroupId"},
		{"long message group", target(func(t *types.Target) {
			t.Arn = aws.String("arn:aws:sqs:us-east-1:123456789012:check.fifo")
			t.SqsParameters = &types.SqsParameters{MessageGroupId: aws.String(strings.Repeat("g", 129))}
		}), "1 to 128"},
		{"message group of a function", target(func(t *types.Target) {
			t.Arn = aws.String("arn:aws:lambda:us-east-1:123456789012:function:check")
			t.SqsParameters = &types.SqsParameters{MessageGroupId: aws.String("g")}
		}), "need a queue"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			both(t, sluice, func(t *testing.T, f *Fake, s service) {
				in := valid("a")
				tt.change(in)
				_, err := s.CreateSchedule(t.Context(), in)
				fails(t, err, "ValidationException", tt.says)
				require.Empty(t, f.Schedules())
			})
		})
	}
}

// TestMissing are requests that the SDK's client does not even send.
func TestMissing(t *testing.T) {
	t.Parallel()
	tests := map[string]func(in request){
		"Name":               func(in request) { in.Name = nil },
		"ScheduleExpression": func(in request) { in.ScheduleExpression = nil },
		"FlexibleTimeWindow": func(in request) { in.FlexibleTimeWindow = nil },
		"Target":             func(in request) { in.Target = nil },
		"Target.Arn":         target(func(t *types.Target) { t.Arn = nil }),
		"Target.RoleArn":     target(func(t *types.Target) { t.RoleArn = nil }),
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := New(sluice)
			t.Cleanup(f.Close)
			in := valid("a")
			change(in)
			_, err := f.CreateSchedule(t.Context(), in)
			fails(t, err, "ValidationException", name)
		})
	}
}

func TestTaken(t *testing.T) {
	t.Parallel()
	tests := map[string]func(in request){
		"as it is":          func(request) {},
		"name of 64":        func(in request) { in.Name = aws.String(strings.Repeat("n", 60) + "-_.0") },
		"the default group": func(in request) { in.GroupName = nil },
		"no token":          func(in request) { in.ClientToken = nil },
		"no zone":           func(in request) { in.ScheduleExpressionTimezone = nil },
		"a zone":            func(in request) { in.ScheduleExpressionTimezone = aws.String("America/Caracas") },
		"a flexible window": func(in request) {
			in.FlexibleTimeWindow = &types.FlexibleTimeWindow{Mode: "FLEXIBLE", MaximumWindowInMinutes: aws.Int32(1440)}
		},
		"dates":              func(in request) { in.StartDate, in.EndDate = aws.Time(time.Now()), aws.Time(time.Now()) },
		"disabled":           func(in request) { in.State = types.ScheduleStateDisabled },
		"a key":              func(in request) { in.KmsKeyArn = aws.String("arn:aws:kms:us-east-1:123456789012:key/k") },
		"no input":           target(func(t *types.Target) { t.Input = nil }),
		"much input":         target(func(t *types.Target) { t.Input = aws.String(strings.Repeat("i", maxInput)) }),
		"another partition":  target(func(t *types.Target) { t.Arn = aws.String("arn:aws-cn:sqs:cn-north-1:123456789012:check") }),
		"a universal target": target(func(t *types.Target) { t.Arn = aws.String("arn:aws:scheduler:::aws-sdk:sqs:sendMessage") }),
		"a FIFO queue": target(func(t *types.Target) {
			t.Arn = aws.String("arn:aws:sqs:us-east-1:123456789012:check.fifo")
			t.SqsParameters = &types.SqsParameters{MessageGroupId: aws.String("g")}
		}),
		"a retry policy": target(func(t *types.Target) {
			t.RetryPolicy = &types.RetryPolicy{MaximumRetryAttempts: aws.Int32(185), MaximumEventAgeInSeconds: aws.Int32(86400)}
			t.DeadLetterConfig = &types.DeadLetterConfig{Arn: aws.String("arn:aws:sqs:us-east-1:123456789012:dead")}
		}),
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			both(t, sluice, func(t *testing.T, f *Fake, s service) {
				in := valid("a")
				change(in)
				out, err := s.CreateSchedule(t.Context(), in)
				require.NoError(t, err)
				require.Equal(t, "arn:aws:scheduler:us-east-1:123456789012:schedule/"+groupOf(in.GroupName)+"/"+*in.Name, *out.ScheduleArn)
				require.Len(t, f.Schedules(), 1)
				got, err := s.GetSchedule(t.Context(), &scheduler.GetScheduleInput{Name: in.Name, GroupName: in.GroupName})
				require.NoError(t, err)
				require.Equal(t, *out.ScheduleArn, *got.Arn)
				require.Equal(t, in.ScheduleExpression, got.ScheduleExpression)
				require.Equal(t, in.Target, got.Target)
				require.Equal(t, in.ActionAfterCompletion, got.ActionAfterCompletion)
				require.WithinDuration(t, f.Now(), *got.CreationDate, time.Hour)
			})
		})
	}
}
