package scheduler

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/core/message"
	"sluice/infra/awstest"
	"sluice/infra/scheduler/schedulertest"
)

// client is the SDK's own client of a fake.
func client(t *testing.T, fake *schedulertest.Fake, opts ...awstest.Option) *scheduler.Client {
	t.Helper()
	t.Cleanup(fake.Close)
	return scheduler.NewFromConfig(awstest.Config(t, schedulertest.Serve(t, fake), opts...))
}

func newFake() *schedulertest.Fake {
	return schedulertest.New(schedulertest.Options{Groups: []string{group}})
}

// TestLostAnswer: the schedule is created and its answer lost. The SDK's retry,
// and the caller's, leave one schedule and no error.
func TestLostAnswer(t *testing.T) {
	t.Parallel()
	for name, attempts := range map[string]int{"the SDK tries again": 2, "the caller tries again": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var faults awstest.Faults
			fake := newFake()
			timer := setup(client(t, fake, faults.Option, awstest.Attempts(attempts)))
			faults.Set(awstest.Nth("CreateSchedule", 1, awstest.Lost))
			h := hint(now().Add(time.Hour))
			err := timer.Arm(t.Context(), h)
			if attempts == 1 {
				require.Equal(t, core.Unavailable, core.CodeOf(err))
				require.NoError(t, timer.Arm(t.Context(), h))
			} else {
				require.NoError(t, err)
			}
			require.Equal(t, 2, faults.Calls())
			require.Len(t, fake.Schedules(), 1)
		})
	}
}

// TestArmedByAnother is a conflict on the wire.
func TestArmedByAnother(t *testing.T) {
	t.Parallel()
	fake := newFake()
	timer := setup(client(t, fake))
	h := hint(now().Add(time.Hour))
	require.NoError(t, timer.Arm(t.Context(), h))
	h.Check++
	require.NoError(t, timer.Arm(t.Context(), h))
	require.Len(t, fake.Schedules(), 1)
}

func TestCodes(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		o    schedulertest.Options
		set  func(*Timer, *schedulertest.Fake)
		want core.Code
	}{
		{"no group", schedulertest.Options{}, nil, core.Internal},
		{"no role", options(), func(timer *Timer, _ *schedulertest.Fake) { timer.o.RoleARN = "admin" }, core.Invalid},
		{"over for Scheduler", options(), func(_ *Timer, f *schedulertest.Fake) { f.Advance(2 * time.Hour) }, core.Invalid},
		{"ended", options(), func(_ *Timer, f *schedulertest.Fake) { f.Close() }, core.Unavailable},
		{"quota", schedulertest.Options{Groups: []string{group}, MaxSchedules: 1}, another, core.Full},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			fake := schedulertest.New(tt.o)
			timer := setup(client(t, fake))
			if tt.set != nil {
				tt.set(timer, fake)
			}
			err := timer.Arm(t.Context(), hint(now().Add(time.Hour)))
			require.Equal(t, tt.want, core.CodeOf(err), "%v", err)
			require.ErrorContains(t, err, "arm schedule")
		})
	}
}

func options() schedulertest.Options { return schedulertest.Options{Groups: []string{group}} }

func another(timer *Timer, _ *schedulertest.Fake) {
	if err := timer.Arm(context.Background(), hint(now().Add(2*time.Hour))); err != nil {
		panic(err)
	}
}

// TestAnswers are answers of a service or of what stands before it.
func TestAnswers(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		status int
		kind   string
		want   core.Code
	}{
		{"throttled", 429, "ThrottlingException", core.Unavailable},
		{"throttled at the door", 400, "ThrottlingException", core.Unavailable},
		{"a proxy's 429", 429, "", core.Unavailable},
		{"fault", 500, "InternalServerException", core.Unavailable},
		{"a proxy's 503", 503, "", core.Unavailable},
		{"no permission", 403, "AccessDeniedException", core.Internal},
		{"expired token", 403, "ExpiredTokenException", core.Internal},
		{"conflict", 409, "ConflictException", 0},
		{"half an answer", 200, "", core.Unavailable},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if tt.kind != "" {
					w.Header().Set("X-Amzn-Errortype", tt.kind)
				}
				w.WriteHeader(tt.status)
				_, _ = io.WriteString(w, `{"Message": "no`)
				if tt.status != http.StatusOK {
					_, _ = io.WriteString(w, `"}`)
				}
			}))
			t.Cleanup(server.Close)
			timer := setup(scheduler.NewFromConfig(awstest.Config(t, server.URL)))
			err := timer.Arm(t.Context(), hint(now().Add(time.Hour)))
			if tt.kind == "ConflictException" {
				require.NoError(t, err)
				return
			}
			require.Error(t, err)
			require.Equal(t, tt.want, core.CodeOf(err), "%v", err)
		})
	}
}

func TestNoAnswer(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	timer := setup(scheduler.NewFromConfig(awstest.Config(t, server.URL)))
	require.Equal(t, core.Unavailable, core.CodeOf(timer.Arm(t.Context(), hint(now().Add(time.Hour)))))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.Equal(t, core.Canceled, core.CodeOf(timer.Arm(ctx, hint(now().Add(time.Hour)))))
}

// TestToTheQueue goes the whole way: the SDK arms a hint for in 40 days, and
// when they are over a consumer of the check queue has it.
func TestToTheQueue(t *testing.T) {
	t.Parallel()
	queues := awstest.SQS(t)
	check := awstest.Queue(t, queues, nil)
	fake := schedulertest.New(schedulertest.Options{Groups: []string{group}, Fire: schedulertest.ToSQS(queues)})
	timer := New(client(t, fake), Options{Group: group, QueueARN: check.ARN, RoleARN: role, Clock: core.ClockFunc(now)})
	h := hint(now().Add(40 * 24 * time.Hour))
	require.NoError(t, timer.Arm(t.Context(), h))
	fake.Advance(40*24*time.Hour - Early)

	got, err := queues.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &check.URL, WaitTimeSeconds: 20})
	require.NoError(t, err)
	require.Len(t, got.Messages, 1)
	came, err := message.DecodeHint([]byte(*got.Messages[0].Body))
	require.NoError(t, err)
	require.Equal(t, h, came)
}
