package queue_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/infra/queue"
)

// lane is a queue of one destination whose work waits until it is let pass.
type lane struct {
	t     *testing.T
	queue *queue.Queue
	limit atomic.Int64
	busy  atomic.Int64
	held  atomic.Int64
	done  atomic.Int64
	pass  chan struct{}
}

func newLane(t *testing.T, limit int) *lane {
	t.Helper()
	l := &lane{t: t, pass: make(chan struct{})}
	l.limit.Store(int64(limit))
	l.queue = queue.New(func(string) int { return int(l.limit.Load()) })
	return l
}

func (l *lane) start() {
	l.queue.Start(func(context.Context, core.Delivery) {
		l.busy.Add(1)
		<-l.pass
		l.busy.Add(-1)
		l.done.Add(1)
	})
}

// hand hands n groups over.
func (l *lane) hand(n int) {
	l.t.Helper()
	for i := range n {
		d := core.Delivery{Ref: core.Ref{Buffer: "b", Key: fmt.Sprint(i)}, Destination: "d"}
		require.NoError(l.t, l.queue.Hand(l.t.Context(), d))
	}
}

// let lets n deliveries end.
func (l *lane) let(n int) {
	for range n {
		l.pass <- struct{}{}
	}
	synctest.Wait()
}

func (l *lane) stop() {
	l.t.Helper()
	close(l.pass)
	require.NoError(l.t, l.queue.Stop(context.Background()))
}

// A lane that is full follows a limit that is raised or lowered as soon as one
// of its deliveries has ended, though nothing is handed over any more.
func TestLimitOfAFullLane(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLane(t, 1)
		l.start()
		l.hand(100)
		synctest.Wait()
		require.EqualValues(t, 1, l.busy.Load())
		l.limit.Store(16)
		l.let(1)
		require.EqualValues(t, 16, l.busy.Load())
		l.limit.Store(3)
		l.let(14)
		require.EqualValues(t, 3, l.busy.Load())
		l.let(5)
		require.EqualValues(t, 3, l.busy.Load())
		require.EqualValues(t, 20, l.done.Load())
		l.stop()
	})
}

// Or at once, when something is handed over, even if it waits already.
func TestLimitWhenHanding(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLane(t, 1)
		l.start()
		l.hand(100)
		synctest.Wait()
		l.limit.Store(16)
		l.hand(100) // what a reload does
		synctest.Wait()
		require.EqualValues(t, 16, l.busy.Load())
		l.stop()
	})
}

func TestLimitIsAtLeastOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLane(t, 0)
		l.start()
		l.hand(2)
		synctest.Wait()
		require.EqualValues(t, 1, l.busy.Load())
		l.let(1)
		require.EqualValues(t, 1, l.busy.Load())
		l.stop()
	})
}

func TestWhatIsHandedBeforeTheStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLane(t, 4)
		l.hand(10)
		synctest.Wait()
		require.Zero(t, l.busy.Load())
		l.start()
		synctest.Wait()
		require.EqualValues(t, 4, l.busy.Load())
		l.let(10)
		require.EqualValues(t, 10, l.done.Load())
		l.stop()
	})
}

func TestStopBeforeTheStart(t *testing.T) {
	t.Parallel()
	l := newLane(t, 1)
	l.hand(1)
	l.stop()
}
