package timer_test

import (
	"context"
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

func TestArmAfterStop(t *testing.T) {
	t.Parallel()
	x := timer.New(clock)
	x.Stop()
	require.Equal(t, core.Unavailable, core.CodeOf(x.Arm(t.Context(), core.Hint{})))
}

func BenchmarkArm(b *testing.B) {
	x := timer.New(clock)
	defer x.Stop()
	at := core.At(time.Now().Add(time.Hour))
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		_ = x.Arm(b.Context(), core.Hint{Ref: core.Ref{Buffer: "b"}, At: at + core.Millis(i*7919%10_000)})
	}
}
