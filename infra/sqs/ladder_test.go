package sqs_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/infra/sqs"
	"sluice/infra/sqs/sqstest"
)

// sent records what is sent to the check queue.
type sent struct {
	sqs.API

	mu     sync.Mutex
	delays []int32
}

func (s *sent) SendMessage(ctx context.Context, in *awssqs.SendMessageInput, opts ...func(*awssqs.Options)) (*awssqs.SendMessageOutput, error) {
	s.mu.Lock()
	s.delays = append(s.delays, in.DelaySeconds)
	s.mu.Unlock()
	return s.API.SendMessage(ctx, in, opts...)
}

// far records what goes far.
type far struct {
	armed int
	err   error
}

func (f *far) Arm(context.Context, core.Hint) error {
	f.armed++
	return f.err
}

func in(d time.Duration) core.Hint {
	return core.Hint{Ref: core.Ref{Buffer: "orders", Key: "k", Shard: 3}, Life: "l", At: wall.Now().Add(d), Check: 4}
}

// TestLadder fixes which deadline goes where, and after which delay.
func TestLadder(t *testing.T) {
	t.Parallel()
	const s, m, day = time.Second, time.Minute, 24 * time.Hour
	const goesFar = -1
	errDown := errors.New("the scheduler is down")
	for _, c := range []struct {
		name      string
		remaining time.Duration
		threshold time.Duration
		rearm     bool
		down      bool
		want      int32 // DelaySeconds, or goesFar
	}{
		{"long past", -day, m, false, false, 0},
		{"now", 0, m, false, false, 0},
		{"100 ms", 100 * time.Millisecond, m, false, false, 0},
		{"just under two seconds", 1999 * time.Millisecond, m, false, false, 0},
		{"two seconds", 2 * s, m, false, false, 1},
		{"5.5 s", 5500 * time.Millisecond, m, false, false, 4},
		{"59 s", 59 * s, m, false, false, 58},
		{"just under the threshold", m - time.Millisecond, m, false, false, 58},
		{"60 s", m, m, false, false, goesFar},
		{"61 s", 61 * s, m, false, false, goesFar},
		{"10 min", 10 * m, m, false, false, goesFar},
		{"40 days", 40 * day, m, false, false, goesFar},

		{"60 s, threshold 900", m, 15 * m, false, false, 59},
		{"10 min, threshold 900", 10 * m, 15 * m, false, false, 599},
		{"just under 900 s, threshold 900", 15*m - time.Millisecond, 15 * m, false, false, 898},
		{"900 s, threshold 900", 15 * m, 15 * m, false, false, goesFar},
		{"40 days, threshold 900", 40 * day, 15 * m, false, false, goesFar},
		{"a threshold out of bounds", 14 * m, time.Hour, false, false, 839},
		{"another", 61 * s, 0, false, false, goesFar},

		{"down: 60 s", m, m, false, true, 59},
		{"down: 10 min", 10 * m, m, false, true, 599},
		{"down: 15 min", 15 * m, m, false, true, 899},
		{"down: 40 days", 40 * day, m, false, true, 900},

		{"again: 2 s", 2 * s, m, true, false, 1},
		{"again: 60 s, as a schedule wakes it", m, m, true, false, 59},
		{"again: 61 s", 61 * s, m, true, false, 60},
		{"again: 120 s", 2 * m, m, true, false, 119},
		{"again: just over 120 s", 2*m + time.Millisecond, m, true, false, goesFar},
		{"again: 15 min, threshold 900", 15 * m, 15 * m, true, false, 899},
		{"again: 960 s, threshold 900", 16 * m, 15 * m, true, false, 900},
		{"again: over 960 s, threshold 900", 16*m + time.Millisecond, 15 * m, true, false, goesFar},
		{"again, down: 40 days", 40 * day, m, true, true, 900},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				fake := &sqstest.SQS{}
				near, away := &sent{API: fake}, &far{}
				var reported []error
				if c.down {
					away.err = errDown
				}
				l := sqs.NewLadder(sqs.NewTimer(near, fake.Queue("check"), wall), away, sqs.LadderOptions{
					Threshold: c.threshold, Clock: wall, Failed: func(_ string, err error) { reported = append(reported, err) },
				})
				arm := l.Arm
				if c.rearm {
					arm = l.Rearm
				}
				require.NoError(t, arm(context.Background(), in(c.remaining)))
				if c.want == goesFar {
					require.Equal(t, 1, away.armed)
					require.Empty(t, near.delays)
					return
				}
				require.Equal(t, []int32{c.want}, near.delays)
				if c.down {
					require.Equal(t, []error{errDown}, reported)
				} else {
					require.Zero(t, away.armed)
				}
			})
		})
	}
}

// TestDeadlines runs deadlines through both halves: each is checked once, at
// its time, whatever it goes through on its way.
func TestDeadlines(t *testing.T) {
	t.Parallel()
	const farthest = 40 * 24 * time.Hour
	for _, threshold := range []time.Duration{sqs.MinThreshold, sqs.MaxThreshold} {
		for _, remaining := range []time.Duration{
			0, 100 * time.Millisecond, 1999 * time.Millisecond, 2 * time.Second, 59 * time.Second, 60 * time.Second, 61 * time.Second,
			119 * time.Second, 121 * time.Second, 10 * time.Minute, 899 * time.Second, 15 * time.Minute, 16 * time.Minute, 17 * time.Minute, farthest,
		} {
			if remaining == farthest && threshold > sqs.MinThreshold {
				continue // a bubble of 40 days is not for free
			}
			for _, down := range []bool{false, true} {
				t.Run(fmt.Sprintf("%v/%v/down %v", threshold, remaining, down), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) { deadline(t, threshold, remaining, down) })
				})
			}
		}
	}
}

func deadline(t *testing.T, threshold, remaining time.Duration, down bool) {
	type came struct {
		hint core.Hint
		at   core.Millis
	}
	checks := make(chan came, 10)
	r := start(t, threshold, func(_ context.Context, h core.Hint) error {
		checks <- came{h, wall.Now()}
		return nil
	})
	defer r.stop()
	if down {
		r.far.fail(errors.New("the scheduler is down"))
	}
	h := in(remaining)
	require.NoError(t, r.ladder.Arm(context.Background(), h))
	<-time.After(remaining)
	synctest.Wait()
	require.Len(t, checks, 1)
	require.Equal(t, came{h, h.At}, <-checks)
	require.Zero(t, r.fake.Len(r.queue), "nothing is left behind")
	require.Equal(t, !down && remaining >= threshold, r.far.taken(h), "it went far")

	<-time.After(time.Hour)
	synctest.Wait()
	require.Empty(t, checks)
}

// TestComesBack has the scheduler come back while a hint that it did not take
// wanders through the queue: it takes it then.
func TestComesBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		checks := make(chan core.Millis, 10)
		r := start(t, sqs.MinThreshold, func(context.Context, core.Hint) error {
			checks <- wall.Now()
			return nil
		})
		defer r.stop()
		r.far.fail(errors.New("the scheduler is down"))
		h := in(5 * time.Hour)
		require.NoError(t, r.ladder.Arm(context.Background(), h))
		<-time.After(time.Hour)
		r.far.fail(nil)
		<-time.After(time.Hour)
		require.True(t, r.far.taken(h))
		before := r.fake.Calls("SendMessage")
		require.Less(t, before, 10, "once in a quarter of an hour")
		<-time.After(h.At.Sub(wall.Now()))
		synctest.Wait()
		require.Len(t, checks, 1)
		require.Equal(t, h.At, <-checks)
	})
}

// TestNearDown shows that what neither half takes is the caller's to know.
func TestNearDown(t *testing.T) {
	t.Parallel()
	fake := &sqstest.SQS{Fault: func(sqstest.Call) sqstest.Fault { return sqstest.Unsent }}
	l := sqs.NewLadder(sqs.NewTimer(fake, fake.Queue("check"), wall), &far{err: errors.New("down too")}, sqs.LadderOptions{Clock: wall})
	for _, remaining := range []time.Duration{time.Second, time.Hour} {
		err := l.Arm(context.Background(), in(remaining))
		require.Equal(t, core.Unavailable, core.CodeOf(err), "%v", err)
	}
}

// TestLadderServes shows that what is beyond the threshold, but too close for
// the far timer, goes near as if that was the rule, and is no failure.
func TestLadderServes(t *testing.T) {
	t.Parallel()
	const s, least = time.Second, 61 * time.Second
	for _, c := range []struct {
		remaining time.Duration
		rearm     bool
		want      int32 // DelaySeconds; -1: it goes far
	}{
		{59 * s, false, 58},
		{60 * s, false, 59},
		{61*s - time.Millisecond, false, 59},
		{61 * s, false, -1},
		{10 * time.Minute, false, -1},
		{40 * 24 * time.Hour, false, -1},
		{60 * s, true, 59},
		{61 * s, true, 60},
		{10 * time.Minute, true, -1},
	} {
		t.Run(fmt.Sprintf("%v/again %v", c.remaining, c.rearm), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				fake := &sqstest.SQS{}
				near, away := &sent{API: fake}, &far{}
				l := sqs.NewLadder(sqs.NewTimer(near, fake.Queue("check"), wall), away, sqs.LadderOptions{
					Clock:  wall,
					Serves: func(deadline, now core.Millis) bool { return deadline.Sub(now) >= least },
					Failed: func(op string, err error) { t.Errorf("%s: %v", op, err) },
				})
				arm := l.Arm
				if c.rearm {
					arm = l.Rearm
				}
				require.NoError(t, arm(t.Context(), in(c.remaining)))
				if c.want < 0 {
					require.Equal(t, 1, away.armed)
					require.Empty(t, near.delays)
					return
				}
				require.Zero(t, away.armed)
				require.Equal(t, []int32{c.want}, near.delays)
			})
		})
	}
}
