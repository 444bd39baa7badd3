package scheduler

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/scheduler/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sluice/core"
	"sluice/core/message"
	"sluice/infra/scheduler/schedulertest"
)

const (
	queue = "arn:aws:sqs:eu-central-1:123456789012:sluice-dev-check"
	role  = "arn:aws:iam::123456789012:role/sluice-dev-scheduler"
	group = "sluice-dev"
)

func now() core.Millis { return core.At(time.Now()) }

// setup is a timer over api at the real or the bubble's time.
func setup(api API) *Timer {
	return New(api, Options{Group: group, QueueARN: queue, RoleARN: role, Clock: core.ClockFunc(now)})
}

func hint(at core.Millis) core.Hint {
	return core.Hint{Ref: core.Ref{Buffer: "crm", Key: "k", Shard: 3}, Life: "01J", At: at, Check: 7}
}

// TestRequest holds every field of the request that is sent.
func TestRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := schedulertest.New(schedulertest.Options{Groups: []string{group}})
		defer fake.Close()
		h := hint(now().Add(40 * 24 * time.Hour)) // from 2000-01-01
		require.NoError(t, setup(fake).Arm(t.Context(), h))
		body, err := message.EncodeHint(h)
		require.NoError(t, err)
		want := scheduler.CreateScheduleInput{
			Name:                       aws.String("check-e184a4e2145464abd5ad9781c146aa070b0556b5"), // as ever: releases overlap
			GroupName:                  aws.String(group),
			ScheduleExpression:         aws.String("at(2000-02-09T23:59:00)"),
			ScheduleExpressionTimezone: aws.String("UTC"),
			FlexibleTimeWindow:         &types.FlexibleTimeWindow{Mode: types.FlexibleTimeWindowModeOff},
			ActionAfterCompletion:      types.ActionAfterCompletionDelete,
			Target: &types.Target{
				Arn: aws.String(queue), RoleArn: aws.String(role), Input: &body,
				RetryPolicy: &types.RetryPolicy{MaximumRetryAttempts: aws.Int32(10), MaximumEventAgeInSeconds: aws.Int32(300)},
			},
		}
		got := fake.Schedules()
		require.Len(t, got, 1)
		token := *got[0].ClientToken
		require.Len(t, token, 64)
		got[0].ClientToken = nil
		require.Empty(t, cmp.Diff(want, got[0], cmpopts.IgnoreUnexported(
			scheduler.CreateScheduleInput{}, types.Target{}, types.RetryPolicy{}, types.FlexibleTimeWindow{})))
	})
}

// TestMoments is what is armed, to the second, for deadlines near the bound, far
// off, between two seconds, and where zones change their clocks.
func TestMoments(t *testing.T) {
	t.Parallel()
	const layout = "2006-01-02T15:04:05.000"
	tests := []struct {
		name, now, deadline string
		at                  string // "": too near
	}{
		{"59 s", "2026-03-01T10:00:00.000", "2026-03-01T10:00:59.000", ""},
		{"60 s", "2026-03-01T10:00:00.000", "2026-03-01T10:01:00.000", ""},
		{"just under 61 s", "2026-03-01T10:00:00.000", "2026-03-01T10:01:00.999", ""},
		{"61 s", "2026-03-01T10:00:00.000", "2026-03-01T10:01:01.000", "2026-03-01T10:00:01"},
		{"61 s, but its second begins too soon", "2026-03-01T10:00:00.500", "2026-03-01T10:01:01.500", ""},
		{"61.5 s", "2026-03-01T10:00:00.500", "2026-03-01T10:01:02.000", "2026-03-01T10:00:02"},
		{"10 min", "2026-03-01T10:00:00.000", "2026-03-01T10:10:00.000", "2026-03-01T10:09:00"},
		{"10 min and a millisecond", "2026-03-01T10:00:00.000", "2026-03-01T10:10:00.001", "2026-03-01T10:09:00"},
		{"10 min less a millisecond", "2026-03-01T10:00:00.000", "2026-03-01T10:09:59.999", "2026-03-01T10:08:59"},
		{"40 days", "2026-03-01T10:00:00.000", "2026-04-10T10:00:00.000", "2026-04-10T09:59:00"},
		{"into a leap day", "2028-02-28T23:59:30.000", "2028-02-29T00:01:00.250", "2028-02-29T00:00:00"},
		{"where Europe's clocks go forward", "2026-03-28T00:00:00.000", "2026-03-29T02:31:00.000", "2026-03-29T02:30:00"},
		{"where Europe's clocks go back", "2026-10-24T00:00:00.000", "2026-10-25T02:31:00.000", "2026-10-25T02:30:00"},
		{"where America's clocks go forward", "2026-03-07T00:00:00.000", "2026-03-08T02:31:00.000", "2026-03-08T02:30:00"},
		{"the past", "2026-03-01T10:00:00.000", "2026-02-01T10:00:00.000", ""},
		{"no time at all", "2026-03-01T10:00:00.000", "1970-01-01T00:00:00.000", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			at := func(s string) core.Millis {
				m, err := time.Parse(layout, s)
				require.NoError(t, err)
				return core.At(m)
			}
			var api recorder
			timer := New(&api, Options{
				Group: group, QueueARN: queue, RoleARN: role,
				Clock: core.ClockFunc(func() core.Millis { return at(tt.now) }),
			})
			err := timer.Arm(t.Context(), hint(at(tt.deadline)))
			require.Equal(t, tt.at != "", Serves(at(tt.deadline), at(tt.now)))
			if tt.at == "" {
				require.Equal(t, core.Invalid, core.CodeOf(err))
				require.ErrorContains(t, err, "a schedule is for what is 1m1s away or more")
				require.Empty(t, api.sent)
				return
			}
			require.NoError(t, err)
			require.Len(t, api.sent, 1)
			require.Equal(t, "at("+tt.at+")", *api.sent[0].ScheduleExpression)
			require.Equal(t, "UTC", *api.sent[0].ScheduleExpressionTimezone)
		})
	}
}

// recorder takes everything.
type recorder struct {
	sent []*scheduler.CreateScheduleInput
}

func (r *recorder) CreateSchedule(_ context.Context, in *scheduler.CreateScheduleInput, _ ...func(*scheduler.Options)) (
	*scheduler.CreateScheduleOutput, error,
) {
	r.sent = append(r.sent, in)
	return &scheduler.CreateScheduleOutput{}, nil
}

// TestWake: a whole second, never later than a minute before the deadline, and
// less than a second earlier than that.
func TestWake(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		deadline := core.Millis(rapid.Int64Range(-1e14, 1e14).Draw(t, "deadline"))
		wake := Wake(deadline)
		require.Zero(t, wake%1000)
		require.GreaterOrEqual(t, deadline.Sub(wake), Early)
		require.Less(t, deadline.Sub(wake), Early+time.Second)
	})
}

// TestComes: whatever Scheduler's precision does, the hint comes as it was
// armed, by its deadline at the latest and 61 s early at most, and its
// schedule is gone.
func TestComes(t *testing.T) {
	t.Parallel()
	for _, late := range []time.Duration{0, 17 * time.Second, time.Minute} {
		for _, ahead := range []time.Duration{61 * time.Second, 10 * time.Minute, 9*time.Hour + 987*time.Millisecond, 40 * 24 * time.Hour} {
			t.Run(fmt.Sprintf("%v late, %v ahead", late, ahead), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					came := make(chan core.Millis, 2)
					h := hint(now().Add(ahead))
					fake := schedulertest.New(schedulertest.Options{
						Groups: []string{group},
						Late:   func(string) time.Duration { return late },
						Fire: func(_ context.Context, in schedulertest.Invocation) error {
							came <- now()
							got, err := message.DecodeHint([]byte(in.Input))
							require.NoError(t, err)
							require.Equal(t, h, got)
							require.Equal(t, []string{queue, role, group}, []string{in.TargetARN, in.RoleARN, in.Group})
							return nil
						},
					})
					defer fake.Close()
					require.NoError(t, setup(fake).Arm(t.Context(), h))
					<-time.After(ahead)
					synctest.Wait()
					require.Len(t, came, 1)
					at := <-came
					require.LessOrEqual(t, at, h.At)
					require.Less(t, h.At.Sub(at), Early+time.Second)
					require.Empty(t, fake.Schedules())
				})
			})
		}
	}
}

// TestWokenNeverMeetsItself: at the moment at which a schedule fires, its own
// deadline is too near for a schedule. If it were not, the second one would
// conflict with the first, which is not yet deleted, and be taken for armed.
func TestWokenNeverMeetsItself(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		deadline := core.Millis(rapid.Int64Range(1e12, 2e12).Draw(t, "deadline"))
		skew := time.Duration(rapid.IntRange(0, 999).Draw(t, "clocks differ by ms")) * time.Millisecond
		require.False(t, Serves(deadline, Wake(deadline).Add(-skew)))
	})
}

// TestOneSchedule: however often and by whomever a hint is armed.
func TestOneSchedule(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fake := schedulertest.New(schedulertest.Options{Groups: []string{group}})
		defer fake.Close()
		h := hint(now().Add(time.Hour))
		var wg sync.WaitGroup
		for n := range 8 {
			wg.Go(func() {
				mine := h
				mine.Check += uint64(n) // numbers of other checks for the same deadline
				for range 4 {
					require.NoError(t, setup(fake).Arm(t.Context(), mine))
				}
			})
		}
		wg.Wait()
		require.Len(t, fake.Schedules(), 1)
	})
}

// TestNames: all that makes a hint another one makes another name, and no text
// can run into its neighbour.
func TestNames(t *testing.T) {
	t.Parallel()
	at := core.Millis(1_800_000_000_000)
	change := map[string]func(h *core.Hint){
		"as it is":  func(*core.Hint) {},
		"buffer":    func(h *core.Hint) { h.Ref.Buffer = "crm2" },
		"key":       func(h *core.Hint) { h.Ref.Key = "K" },
		"no key":    func(h *core.Hint) { h.Ref.Key = "" },
		"shard":     func(h *core.Hint) { h.Ref.Shard = 4 },
		"life":      func(h *core.Hint) { h.Life = "01K" },
		"deadline":  func(h *core.Hint) { h.At++ },
		"for claim": func(h *core.Hint) { h.Check = 0 },
		"shift":     func(h *core.Hint) { h.Ref.Buffer, h.Ref.Key = "cr", "mk" },
		"hostile":   func(h *core.Hint) { h.Ref.Key = "../ä\x00\xff?groupName=other" },
		"long":      func(h *core.Hint) { h.Ref.Key = strings.Repeat("k", 2048) },
	}
	names := map[string]string{}
	for what, f := range change {
		h := hint(at)
		f(&h)
		name := Name(h)
		require.Regexp(t, `^(check|claim)-[0-9a-f]{40}$`, name)
		require.Empty(t, names[name], "%s and %s share a name", what, names[name])
		names[name] = what
	}
	require.Len(t, slices.Collect(maps.Keys(names)), len(change))
	other := hint(at)
	other.Check = 8
	require.Equal(t, Name(hint(at)), Name(other))
}

// TestKeysAreNoAttributes: a group key with the text that Scheduler replaces
// in inputs comes as it is.
func TestKeysAreNoAttributes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		input := make(chan string, 1)
		fake := schedulertest.New(schedulertest.Options{
			Groups: []string{group},
			Fire: func(_ context.Context, in schedulertest.Invocation) error {
				input <- in.Input
				return nil
			},
		})
		defer fake.Close()
		h := hint(now().Add(time.Hour))
		h.Ref.Key = "<aws.scheduler.execution-id><aws.scheduler.scheduled-time>"
		require.NoError(t, setup(fake).Arm(t.Context(), h))
		got, err := message.DecodeHint([]byte(<-input))
		require.NoError(t, err)
		require.Equal(t, h.Ref.Key, got.Ref.Key)
	})
}

func TestTooLarge(t *testing.T) {
	t.Parallel()
	var api recorder
	h := hint(now().Add(time.Hour))
	h.Ref.Key = strings.Repeat("k", 1<<20)
	require.Equal(t, core.TooLarge, core.CodeOf(setup(&api).Arm(t.Context(), h)))
	require.Empty(t, api.sent)
}
