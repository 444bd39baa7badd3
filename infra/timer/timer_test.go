package timer_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"sluice/core"
	"sluice/core/timertest"
	"sluice/infra/timer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var clock = core.ClockFunc(func() core.Millis { return core.At(time.Now()) })

func TestTimer(t *testing.T) {
	t.Parallel()
	timertest.Run(t, timertest.Harness{
		Name: "timer",
		Late: time.Millisecond, // hints are in whole milliseconds, and so are the times by which they are armed
		Start: func(_ *testing.T, fire func(context.Context, core.Hint)) (core.Timer, func()) {
			x := timer.New(clock)
			x.Start(fire)
			return x, x.Stop
		},
	})
}

// Setting the system clock neither delays nor hastens an armed hint.
func TestClockIsSet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var set time.Duration
		x := timer.New(core.ClockFunc(func() core.Millis { return core.At(time.Now().Add(set)) }))
		fired := make(chan core.Hint, 1)
		x.Start(func(_ context.Context, h core.Hint) { fired <- h })
		defer x.Stop()
		begin := time.Now()
		require.NoError(t, x.Arm(t.Context(), core.Hint{At: core.At(begin.Add(time.Minute))}))
		set = -time.Hour
		<-fired
		require.Equal(t, time.Minute, time.Since(begin))
	})
}

// A later hint for a group's check replaces the one before, in whatever order
// they are armed; a claim's stands for itself.
func TestOneCheckOfAGroup(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		x := timer.New(clock)
		fired := make(chan core.Hint, 10)
		x.Start(func(_ context.Context, h core.Hint) { fired <- h })
		defer x.Stop()
		ref := core.Ref{Buffer: "b", Key: "k"}
		now := clock.Now()
		at := func(seconds int, life string, check uint64) core.Hint {
			return core.Hint{Ref: ref, Life: life, At: now.Add(time.Duration(seconds) * time.Second), Check: check}
		}
		for _, h := range []core.Hint{at(1, "l1", 5), at(9, "l1", 7), at(2, "l1", 6), at(5, "l2", 1), at(3, "l2", 0), at(3, "l2", 0)} {
			require.NoError(t, x.Arm(t.Context(), h))
		}
		<-time.After(time.Minute)
		require.Len(t, fired, 2)
		require.Equal(t, at(3, "l2", 0), <-fired)
		require.Equal(t, at(5, "l2", 1), <-fired)
	})
}

func BenchmarkArm(b *testing.B) {
	x := timer.New(clock)
	defer x.Stop()
	at := core.At(time.Now().Add(time.Hour))
	keys := make([]string, 10_000)
	for i := range keys {
		keys[i] = fmt.Sprint(i)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		_ = x.Arm(b.Context(), core.Hint{Ref: core.Ref{Buffer: "b", Key: keys[i%len(keys)]}, Check: uint64(i + 1), At: at + core.Millis(i*7919%10_000)})
	}
}
