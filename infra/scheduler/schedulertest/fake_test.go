package schedulertest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/scheduler/types"
	"github.com/stretchr/testify/require"
)

var errTarget = errors.New("the target is down")

// fired records invocations in a bubble.
type fired struct {
	mu  sync.Mutex
	at  []time.Duration // since the bubble's beginning
	ins []Invocation
}

func (f *fired) all() []Invocation {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.ins)
}

func (f *fired) times() []time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.at)
}

// bubble runs a test on a fake in a bubble, where time stands still at a whole
// second while anything works. target answers each invocation, if it is not nil.
func bubble(t *testing.T, o Options, target func(f *Fake, in Invocation) error, test func(t *testing.T, f *Fake, got *fired)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var got fired
		var f *Fake
		begun := time.Now()
		o.Groups = sluice.Groups
		o.Fire = func(_ context.Context, in Invocation) error {
			got.mu.Lock()
			got.at, got.ins = append(got.at, time.Since(begun)), append(got.ins, in)
			got.mu.Unlock()
			if target == nil {
				return nil
			}
			return target(f, in)
		}
		f = New(o)
		defer f.Close()
		test(t, f, &got)
	})
}

func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestFires(t *testing.T) {
	t.Parallel()
	bubble(t, Options{}, nil, func(t *testing.T, f *Fake, got *fired) {
		create(t, f, valid("a"))
		pass(time.Hour - time.Nanosecond)
		require.Empty(t, got.all())
		pass(time.Nanosecond)
		require.Equal(t, []Invocation{{
			Group: "sluice", Name: "a", TargetARN: "arn:aws:sqs:us-east-1:123456789012:check",
			RoleARN: "arn:aws:iam::123456789012:role/path/scheduler", Input: `{"v":1}`,
			At: time.Date(2000, 1, 1, 1, 0, 0, 0, time.UTC), Attempt: 1,
		}}, got.all())
		require.Empty(t, f.Schedules(), "deleted after its completion")
		pass(100 * time.Hour)
		require.Len(t, got.all(), 1)
	})
}

func TestFiresLate(t *testing.T) {
	t.Parallel()
	lateness := map[string]time.Duration{"a": 59 * time.Second, "b": time.Hour, "c": -time.Second}
	late := func(name string) time.Duration { return lateness[name] }
	bubble(t, Options{Late: late}, nil, func(t *testing.T, f *Fake, got *fired) {
		for _, name := range []string{"a", "b", "c"} {
			create(t, f, valid(name))
		}
		pass(2 * time.Hour)
		require.Equal(t, []time.Duration{time.Hour, time.Hour + 59*time.Second, time.Hour + time.Minute}, got.times())
	})
}

func TestFiresInItsZone(t *testing.T) {
	t.Parallel()
	bubble(t, Options{}, nil, func(t *testing.T, f *Fake, got *fired) {
		in := valid("a")
		in.ScheduleExpression, in.ScheduleExpressionTimezone = aws.String("at(2000-01-01T02:30:00)"), aws.String("Europe/Berlin")
		create(t, f, in)
		pass(24 * time.Hour)
		require.Equal(t, []time.Duration{90 * time.Minute}, got.times())
	})
}

func TestKeptAfterCompletion(t *testing.T) {
	t.Parallel()
	bubble(t, Options{}, nil, func(t *testing.T, f *Fake, got *fired) {
		in := valid("a")
		in.ActionAfterCompletion = types.ActionAfterCompletionNone
		create(t, f, in)
		disabled := valid("b")
		disabled.State = types.ScheduleStateDisabled
		create(t, f, disabled)
		pass(2 * time.Hour)
		require.Len(t, got.all(), 1)
		require.Len(t, f.Schedules(), 2)
		f.Advance(time.Hour)
		pass(time.Hour)
		require.Len(t, got.all(), 1, "once")
	})
}

func TestDeletedDoesNotFire(t *testing.T) {
	t.Parallel()
	bubble(t, Options{}, nil, func(t *testing.T, f *Fake, got *fired) {
		create(t, f, valid("a"))
		_, err := f.DeleteSchedule(t.Context(), &scheduler.DeleteScheduleInput{Name: aws.String("a"), GroupName: aws.String("sluice")})
		require.NoError(t, err)
		again := valid("a")
		again.ClientToken = nil
		again.ScheduleExpression = aws.String("at(2000-01-01T03:00:00)")
		create(t, f, again)
		pass(24 * time.Hour)
		require.Equal(t, []time.Duration{3 * time.Hour}, got.times())
	})
}

func TestFiresTwice(t *testing.T) {
	t.Parallel()
	bubble(t, Options{Doubled: true}, nil, func(t *testing.T, f *Fake, got *fired) {
		create(t, f, valid("a"))
		pass(2 * time.Hour)
		require.Len(t, got.all(), 2)
		require.Equal(t, got.all()[0], got.all()[1])
	})
}

func TestFiresThePast(t *testing.T) {
	t.Parallel()
	bubble(t, Options{FirePast: true}, nil, func(t *testing.T, f *Fake, got *fired) {
		in := valid("a")
		in.ScheduleExpression = aws.String("at(1999-12-31T23:59:59)")
		create(t, f, in)
		synctest.Wait()
		require.Equal(t, []time.Duration{0}, got.times())
	})
}

// TestNowIsPast: the present moment is not ahead.
func TestNowIsPast(t *testing.T) {
	t.Parallel()
	bubble(t, Options{}, nil, func(t *testing.T, f *Fake, _ *fired) {
		in := valid("a")
		in.ScheduleExpression = aws.String("at(2000-01-01T00:00:00)")
		_, err := f.CreateSchedule(t.Context(), in)
		fails(t, err, "ValidationException", "not in the future")
		in.ScheduleExpression = aws.String("at(2000-01-01T00:00:01)")
		create(t, f, in)
	})
}

// TestThereWhileItFires: a target that arms the same name meets a conflict.
func TestThereWhileItFires(t *testing.T) {
	t.Parallel()
	met := make(chan error, 1)
	arm := func(f *Fake, _ Invocation) error {
		in := valid("a")
		in.ClientToken = nil
		_, err := f.CreateSchedule(context.Background(), in)
		met <- err
		return nil
	}
	bubble(t, Options{}, arm, func(t *testing.T, f *Fake, _ *fired) {
		create(t, f, valid("a"))
		pass(time.Hour)
		fails(t, <-met, "ConflictException", "already exists")
		require.Empty(t, f.Schedules())
	})
}

func TestTriesAgain(t *testing.T) {
	t.Parallel()
	policy := func(retries, age int32) *types.RetryPolicy {
		return &types.RetryPolicy{MaximumRetryAttempts: &retries, MaximumEventAgeInSeconds: &age}
	}
	tests := []struct {
		name   string
		policy *types.RetryPolicy
		works  int // the attempt that does; 0: none
		want   int // attempts
	}{
		{"until it works", nil, 3, 3},
		{"as often as it may", policy(2, 3600), 0, 3},
		{"not at all", policy(0, 3600), 0, 1},
		{"as long as it may", policy(185, 60), 0, 6}, // after 0, 1, 3, 7, 15 and 31 s
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			down := func(_ *Fake, in Invocation) error {
				if in.Attempt == tt.works {
					return nil
				}
				return errTarget
			}
			bubble(t, Options{}, down, func(t *testing.T, f *Fake, got *fired) {
				in := valid("a")
				in.Target.RetryPolicy = tt.policy
				create(t, f, in)
				pass(25 * time.Hour)
				require.Len(t, got.all(), tt.want)
				require.Equal(t, tt.want, got.all()[tt.want-1].Attempt)
				require.Empty(t, f.Schedules(), "complete")
			})
		})
	}
}

func TestContextAttributes(t *testing.T) {
	t.Parallel()
	bubble(t, Options{}, nil, func(t *testing.T, f *Fake, got *fired) {
		in := valid("a")
		in.Target.Input = aws.String("<aws.scheduler.schedule-arn> <aws.scheduler.scheduled-time> " +
			"<aws.scheduler.execution-id> <aws.scheduler.attempt-number> <aws.scheduler.other>")
		create(t, f, in)
		empty := valid("b")
		empty.Target.Input = nil
		create(t, f, empty)
		pass(time.Hour)
		require.Len(t, got.all(), 2)
		var inputs []string
		for _, in := range got.all() {
			inputs = append(inputs, in.Input)
		}
		require.ElementsMatch(t, []string{"", "arn:aws:scheduler:us-east-1:123456789012:schedule/sluice/a " +
			"2000-01-01T01:00:00Z a-1 1 <aws.scheduler.other>"}, inputs)
	})
}

// TestAdvance sets the clock on: what is due fires at once, the rest when it is due.
func TestAdvance(t *testing.T) {
	t.Parallel()
	bubble(t, Options{}, nil, func(t *testing.T, f *Fake, got *fired) {
		far := valid("far")
		far.ScheduleExpression = aws.String("at(2000-02-10T00:00:00)") // in 40 days
		create(t, f, valid("near"))
		create(t, f, far)
		f.Advance(40*24*time.Hour - time.Minute)
		synctest.Wait()
		require.Equal(t, []time.Duration{0}, got.times())
		require.Equal(t, time.Now().Add(40*24*time.Hour-time.Minute), f.Now())
		pass(time.Minute)
		require.Equal(t, []time.Duration{0, time.Minute}, got.times())
		_, err := f.CreateSchedule(t.Context(), valid("gone"))
		fails(t, err, "ValidationException", "not in the future")
	})
}

// TestAdvanceOnRealTime is how a test with processes of their own goes 40 days on.
func TestAdvanceOnRealTime(t *testing.T) {
	t.Parallel()
	came := make(chan Invocation, 1)
	o := Options{Groups: sluice.Groups, Fire: func(_ context.Context, in Invocation) error {
		came <- in
		return nil
	}}
	both(t, o, func(t *testing.T, f *Fake, s service) {
		in := valid("a")
		in.ScheduleExpression = aws.String(f.Now().UTC().Add(40 * 24 * time.Hour).Format(atLayout))
		create(t, s, in)
		f.Advance(40 * 24 * time.Hour)
		require.Equal(t, "a", (<-came).Name)
	})
}

func TestCloseEndsAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		gate := make(chan struct{})
		f := New(Options{Groups: sluice.Groups, Fire: func(context.Context, Invocation) error {
			calls.Add(1)
			<-gate
			return errTarget // and no retry any more
		}})
		create(t, f, valid("a"))
		later := valid("b")
		later.ScheduleExpression = aws.String("at(2000-01-01T02:00:00)")
		create(t, f, later)
		pass(time.Hour)
		closed := make(chan struct{})
		go func() {
			f.Close()
			close(closed)
		}()
		synctest.Wait()
		select {
		case <-closed:
			require.Fail(t, "closed while a target was being called")
		default:
		}
		close(gate)
		<-closed
		pass(24 * time.Hour)
		require.EqualValues(t, 1, calls.Load())
		f.Close() // once more does nothing
	})
}

func TestOrderOfSchedules(t *testing.T) {
	t.Parallel()
	bubble(t, Options{}, nil, func(t *testing.T, f *Fake, _ *fired) {
		early := valid("c")
		early.ScheduleExpression = aws.String("at(2000-01-01T00:30:00)")
		for _, in := range []request{valid("b"), valid("a"), early} {
			create(t, f, in)
		}
		var names []string
		for _, in := range f.Schedules() {
			names = append(names, *in.Name)
		}
		require.Equal(t, []string{"c", "a", "b"}, names)
	})
}
