package scheduler

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/scheduler/types"

	"sluice/core"
	"sluice/core/message"
)

const (
	// Early is how long before its deadline a hint comes at the latest: the
	// precision of EventBridge Scheduler.
	Early = 60 * time.Second

	// lead is how far ahead a schedule's moment must be. It covers the call
	// itself, and keeps a check that comes at that moment from meeting its own
	// schedule, which is deleted only after it was woken.
	lead = time.Second

	// The target is a queue, which is rarely down. After five minutes the
	// sweep has found the deadline four times.
	retries = 10
	maxAge  = 5 * time.Minute
)

// API is what the timer needs of [scheduler.Client].
type API interface {
	CreateSchedule(ctx context.Context, in *scheduler.CreateScheduleInput, opts ...func(*scheduler.Options)) (
		*scheduler.CreateScheduleOutput, error)
}

// Options say where schedules live and what they wake. All are required.
type Options struct {
	Group    string // the schedule group's name
	QueueARN string // of the check queue, which gets the hint as [message.EncodeHint] writes it
	RoleARN  string // with which Scheduler sends to that queue
	Clock    core.Clock
}

// Timer arms schedules. It has no state of its own.
type Timer struct {
	api API
	o   Options
}

// New is a timer that arms its schedules through api.
func New(api API, o Options) *Timer { return &Timer{api: api, o: o} }

// Wake is the moment that a schedule for a deadline names: [Early] before it,
// in the whole second that has begun by then.
func Wake(deadline core.Millis) core.Millis {
	wake := deadline.Add(-Early)
	return wake - (wake%1000+1000)%1000
}

// Serves reports whether a deadline is far enough away for [Timer.Arm]: its
// [Wake] lies a second ahead or more.
func Serves(deadline, now core.Millis) bool { return Wake(deadline) >= now.Add(lead) }

// Arm creates the schedule that brings h to the check queue between [Wake] of
// its time and a minute later, and succeeds if it is there already.
//
// Invalid: the deadline is too near (see [Serves]) by this clock or by
// Scheduler's, or Scheduler does not take what the options say; a queue with
// delays takes the hint. Full: there are as many schedules as the account may
// have. Unavailable: Scheduler is throttling, or does not answer. Internal: it
// refuses, because a role, group or permission is missing.
func (t *Timer) Arm(ctx context.Context, h core.Hint) error {
	now := t.o.Clock.Now()
	if !Serves(h.At, now) {
		return core.Errorf(core.Invalid, "arm schedule: %s is %s away; a schedule is for what is %s away or more",
			h.At, h.At.Sub(now), Early+lead)
	}
	in, err := t.schedule(h)
	if err != nil {
		return err
	}
	if _, err := t.api.CreateSchedule(ctx, in); err != nil {
		if _, armed := errors.AsType[*types.ConflictException](err); armed {
			return nil
		}
		return wrap(ctx, err)
	}
	return nil
}

// schedule is the request for a hint. It is a function of hint and options
// alone, so that a second one is the same.
func (t *Timer) schedule(h core.Hint) (*scheduler.CreateScheduleInput, error) {
	body, err := message.EncodeHint(h)
	if err != nil {
		return nil, err
	}
	name, at := Name(h), Wake(h.At).Time().Format("at(2006-01-02T15:04:05)")
	return &scheduler.CreateScheduleInput{
		GroupName:                  &t.o.Group,
		Name:                       &name,
		ClientToken:                aws.String(digest(t.o.Group, name, at, body, t.o.QueueARN, t.o.RoleARN)),
		ScheduleExpression:         &at,
		ScheduleExpressionTimezone: aws.String("UTC"),
		FlexibleTimeWindow:         &types.FlexibleTimeWindow{Mode: types.FlexibleTimeWindowModeOff},
		ActionAfterCompletion:      types.ActionAfterCompletionDelete,
		Target: &types.Target{
			Arn: &t.o.QueueARN, RoleArn: &t.o.RoleARN, Input: &body,
			RetryPolicy: &types.RetryPolicy{
				MaximumRetryAttempts:     aws.Int32(retries),
				MaximumEventAgeInSeconds: aws.Int32(int32(maxAge / time.Second)),
			},
		},
	}, nil
}

// Name is the name of a hint's schedule: "check-" or "claim-" and 40 digits.
// Hints that ask for the same, whatever number their check has, share it.
func Name(h core.Hint) string {
	kind := "claim"
	if h.Check != 0 {
		kind = "check"
	}
	sum := digest(h.Ref.Buffer, h.Ref.Key, strconv.Itoa(h.Ref.Shard), h.Life, strconv.FormatInt(int64(h.At), 10), kind)
	return kind + "-" + sum[:40]
}

// digest is a hash of parts, 64 hexadecimal digits. No two lists of parts run
// into one.
func digest(parts ...string) string {
	sum := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(sum, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(sum.Sum(nil))
}
