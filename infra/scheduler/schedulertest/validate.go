package schedulertest

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/scheduler/types"
	"github.com/aws/smithy-go"
)

// The patterns and bounds of the service's API reference.
var (
	namePattern  = regexp.MustCompile(`^[0-9a-zA-Z-_.]{1,64}$`)
	tokenPattern = regexp.MustCompile(`^[a-zA-Z0-9-_]{1,64}$`)
	rolePattern  = regexp.MustCompile(`^arn:aws[a-z-]*:iam::\d{12}:role/[\w+=,.@/-]+$`)
	kmsPattern   = regexp.MustCompile(`^arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:(key|alias)/[0-9a-zA-Z-_]*$`)
	arnPattern   = regexp.MustCompile(`^arn:aws[a-z-]*:[a-z0-9-]+:[a-z0-9-]*:(\d{12})?:\S+$`)
	queuePattern = regexp.MustCompile(`^arn:aws[a-z-]*:sqs:[a-z0-9-]+:\d{12}:[\w-]{1,80}(\.fifo)?$`)
)

const (
	atLayout       = "at(2006-01-02T15:04:05)"
	maxARN         = 1600
	maxDescription = 512
	maxZone        = 50
	maxInput       = 256 << 10
)

// operationError is err as the SDK returns it.
func operationError(op string, err error) error {
	return &smithy.OperationError{ServiceID: scheduler.ServiceID, OperationName: op, Err: err}
}

func invalid(format string, args ...any) error {
	return &types.ValidationException{Message: new(fmt.Sprintf(format, args...))}
}

func conflict(format string, args ...any) error {
	return &types.ConflictException{Message: new(fmt.Sprintf(format, args...))}
}

func notFound(format string, args ...any) error {
	return &types.ResourceNotFoundException{Message: new(fmt.Sprintf(format, args...))}
}

// validateNames checks what every call has. A nil group or token is fine.
func validateNames(name, group, token *string) error {
	switch {
	case name == nil || !namePattern.MatchString(*name):
		return invalid("Name must be 1 to 64 of [0-9a-zA-Z-_.].")
	case group != nil && !namePattern.MatchString(*group):
		return invalid("GroupName must be 1 to 64 of [0-9a-zA-Z-_.].")
	case token != nil && !tokenPattern.MatchString(*token):
		return invalid("ClientToken must be 1 to 64 of [a-zA-Z0-9-_].")
	}
	return nil
}

// validate checks all that does not depend on what exists, and returns the
// schedule's moment.
func validate(in *scheduler.CreateScheduleInput) (time.Time, error) {
	if err := validateNames(in.Name, in.GroupName, in.ClientToken); err != nil {
		return time.Time{}, err
	}
	if err := validateSettings(in); err != nil {
		return time.Time{}, err
	}
	if err := validateTarget(in.Target); err != nil {
		return time.Time{}, err
	}
	return moment(in.ScheduleExpression, in.ScheduleExpressionTimezone)
}

// moment reads an expression in its zone.
func moment(expression, zone *string) (time.Time, error) {
	loc := time.UTC
	if zone != nil {
		var err error
		loc, err = time.LoadLocation(*zone)
		if err != nil || *zone == "" || *zone == "Local" || len(*zone) > maxZone {
			return time.Time{}, invalid("Invalid Schedule Expression Timezone %s.", *zone)
		}
	}
	if expression == nil {
		return time.Time{}, invalid("ScheduleExpression is required.")
	}
	at, err := time.ParseInLocation(atLayout, *expression, loc)
	if err != nil || at.Format(atLayout) != *expression {
		return time.Time{}, invalid("Invalid Schedule Expression %s.", *expression)
	}
	return at, nil
}

func validateSettings(in *scheduler.CreateScheduleInput) error {
	window := in.FlexibleTimeWindow
	switch {
	case window == nil:
		return invalid("FlexibleTimeWindow is required.")
	case window.Mode == types.FlexibleTimeWindowModeOff:
		if window.MaximumWindowInMinutes != nil {
			return invalid("MaximumWindowInMinutes must not be set when the flexible time window is OFF.")
		}
	case window.Mode == types.FlexibleTimeWindowModeFlexible:
		if m := window.MaximumWindowInMinutes; m == nil || *m < 1 || *m > 1440 {
			return invalid("MaximumWindowInMinutes must be 1 to 1440.")
		}
	default:
		return invalid("FlexibleTimeWindow.Mode must be OFF or FLEXIBLE.")
	}
	switch {
	case !oneOf(in.State, types.ScheduleState("").Values()):
		return invalid("State must be ENABLED or DISABLED.")
	case !oneOf(in.ActionAfterCompletion, types.ActionAfterCompletion("").Values()):
		return invalid("ActionAfterCompletion must be NONE or DELETE.")
	case in.Description != nil && len(*in.Description) > maxDescription:
		return invalid("Description must be at most %d long.", maxDescription)
	case in.KmsKeyArn != nil && !kmsPattern.MatchString(*in.KmsKeyArn):
		return invalid("KmsKeyArn must be the ARN of a key.")
	}
	return nil
}

// oneOf reports whether v is unset or a known value.
func oneOf[T ~string](v T, known []T) bool {
	return v == "" || slices.Contains(known, v)
}

func validateTarget(t *types.Target) error {
	switch {
	case t == nil:
		return invalid("Target is required.")
	case t.Arn == nil || len(*t.Arn) > maxARN || !arnPattern.MatchString(*t.Arn):
		return invalid("Target.Arn must be an ARN.")
	case t.RoleArn == nil || len(*t.RoleArn) > maxARN || !rolePattern.MatchString(*t.RoleArn):
		return invalid("Target.RoleArn must be the ARN of a role.")
	case t.Input != nil && (*t.Input == "" || len(*t.Input) > maxInput):
		return invalid("Target.Input must be 1 to %d long.", maxInput)
	case t.DeadLetterConfig != nil && t.DeadLetterConfig.Arn != nil &&
		(!queuePattern.MatchString(*t.DeadLetterConfig.Arn) || strings.HasSuffix(*t.DeadLetterConfig.Arn, ".fifo")):
		return invalid("Target.DeadLetterConfig.Arn must be the ARN of a standard queue.")
	}
	if p := t.RetryPolicy; p != nil {
		if n := p.MaximumRetryAttempts; n != nil && (*n < 0 || *n > 185) {
			return invalid("MaximumRetryAttempts must be 0 to 185.")
		}
		if n := p.MaximumEventAgeInSeconds; n != nil && (*n < 60 || *n > 86400) {
			return invalid("MaximumEventAgeInSeconds must be 60 to 86400.")
		}
	}
	return validateQueue(t)
}

// validateQueue checks a target that is a queue.
func validateQueue(t *types.Target) error {
	if !strings.Contains(*t.Arn, ":sqs:") || strings.Contains(*t.Arn, ":aws-sdk:") {
		if t.SqsParameters != nil {
			return invalid("SqsParameters need a queue as their target.")
		}
		return nil
	}
	if !queuePattern.MatchString(*t.Arn) {
		return invalid("Target.Arn must be the ARN of a queue.")
	}
	fifo := strings.HasSuffix(*t.Arn, ".fifo")
	group := t.SqsParameters != nil && t.SqsParameters.MessageGroupId != nil
	switch {
	case fifo && !group:
		return invalid("A FIFO queue needs SqsParameters.MessageGroupId.")
	case !fifo && group:
		return invalid("SqsParameters.MessageGroupId is for FIFO queues.")
	case group && (*t.SqsParameters.MessageGroupId == "" || len(*t.SqsParameters.MessageGroupId) > 128):
		return invalid("SqsParameters.MessageGroupId must be 1 to 128 long.")
	}
	return nil
}
