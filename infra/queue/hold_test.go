package queue_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/infra/queue"
)

// holding is a hold that was asked for.
type holding struct {
	end  context.CancelFunc // of its context
	free chan struct{}      // closed to release it, once it is there
	err  chan error         // nil: it is there
}

// hold asks for one and waits until it is there, or all wait.
func (l *lane) hold() *holding {
	ctx, end := context.WithCancel(context.Background())
	h := &holding{end: end, free: make(chan struct{}), err: make(chan error, 1)}
	go func() {
		defer end()
		release, err := l.queue.Hold(ctx, "d")
		h.err <- err
		if err == nil {
			l.held.Add(1)
			<-h.free
			l.held.Add(-1)
			release()
			release() // once is enough
		}
	}()
	synctest.Wait()
	return h
}

func (h *holding) release() {
	close(h.free)
	synctest.Wait()
}

// under checks how many deliveries and holds are under way.
func (l *lane) under(deliveries, holds int64) {
	l.t.Helper()
	require.Equal(l.t, []int64{deliveries, holds}, []int64{l.busy.Load(), l.held.Load()})
}

func TestHoldIsWithinTheLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLane(t, 3)
		l.start()
		first := l.hold()
		l.hand(100)
		second := l.hold()
		synctest.Wait()
		l.under(2, 1)
		l.let(1)
		l.under(1, 2)
		first.release()
		l.under(2, 1)
		l.limit.Store(5)
		second.release()
		l.under(5, 0)
		l.limit.Store(1)
		third := l.hold()
		l.let(4)
		l.under(1, 0)
		l.let(1)
		l.under(0, 1)
		third.release()
		l.under(1, 0)
		l.stop()
	})
}

// While both wait, every second slot is a hold's, however many wait.
func TestHoldsAndDeliveriesTakeTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLane(t, 1)
		l.start()
		l.hand(6)
		synctest.Wait()
		var holds []*holding
		for range 9 {
			holds = append(holds, l.hold())
		}
		var order strings.Builder
		for l.busy.Load()+l.held.Load() > 0 {
			if l.busy.Load() > 0 {
				order.WriteByte('d')
				l.let(1)
				continue
			}
			order.WriteByte('h')
			require.NoError(t, <-holds[0].err, "in the order in which they were asked for")
			holds[0].release()
			holds = holds[1:]
		}
		require.Equal(t, "dhdhdhdhdhdhhhh", order.String())
		l.stop()
	})
}

// Lanes have nothing to do with each other, and one that nothing was handed to
// is there all the same.
func TestHoldOfAnotherLane(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLane(t, 1)
		l.start()
		l.hand(2)
		release, err := l.queue.Hold(t.Context(), "other")
		require.NoError(t, err)
		release()
		l.stop()
	})
}

func TestHoldBeforeTheStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLane(t, 1)
		h := l.hold()
		l.under(0, 0)
		l.start()
		synctest.Wait()
		l.under(0, 1)
		h.release()
		l.stop()
	})
}

// A hold whose caller has gone leaves its place, and a slot that it got at the
// same moment.
func TestHoldThatIsGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLane(t, 1)
		l.start()
		l.hand(1)
		synctest.Wait()
		first, second := l.hold(), l.hold()
		first.end()
		require.ErrorIs(t, <-first.err, context.Canceled)
		l.let(1)
		l.under(0, 1)
		second.release()
		_, err := l.queue.Hold(canceled(t), "d")
		require.ErrorIs(t, err, context.Canceled)
		l.stop()
	})
}

func canceled(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// A stop waits for a hold that is there, and refuses those that wait.
func TestStopWithHolds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLane(t, 1)
		l.start()
		there, waits := l.hold(), l.hold()
		l.hand(1)
		stopped := make(chan error, 1)
		go func() { stopped <- l.queue.Stop(context.Background()) }()
		synctest.Wait()
		require.Empty(t, stopped)
		require.NoError(t, <-there.err)
		require.Equal(t, core.Unavailable, core.CodeOf(<-waits.err))
		require.Equal(t, core.Unavailable, core.CodeOf(<-l.hold().err), "nor is there another")
		there.release()
		require.NoError(t, <-stopped)
		l.under(0, 0)
	})
}

// The end of a stop's patience is told, once the holds have ended.
func TestStopWithAHoldThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLane(t, 1)
		l.start()
		h := l.hold()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		stopped := make(chan error, 1)
		go func() { stopped <- l.queue.Stop(ctx) }()
		<-time.After(time.Minute)
		require.Empty(t, stopped)
		h.release()
		require.ErrorIs(t, <-stopped, context.DeadlineExceeded)
	})
}

// When deliveries have ended, those that waited are dropped, and holds have the
// lane to themselves.
func TestEndDeliveries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLane(t, 2)
		l.start()
		l.hand(100)
		synctest.Wait()
		ended := make(chan error, 1)
		require.ErrorIs(t, l.queue.EndDeliveries(canceled(t)), context.Canceled, "it is not waited for")
		go func() { ended <- l.queue.EndDeliveries(context.Background()) }()
		h := l.hold()
		l.under(2, 0)
		require.Empty(t, ended)
		l.let(1)
		l.under(1, 1)
		l.let(1)
		require.NoError(t, <-ended)
		l.hand(1)
		second := l.hold()
		l.under(0, 2)
		h.release()
		second.release()
		require.EqualValues(t, 2, l.done.Load())
		l.stop()
	})
}

// However holds and deliveries meet, and whoever gives up, there are never more
// under way than the limit, and no slot is lost.
func TestHoldsInAStorm(t *testing.T) {
	t.Parallel()
	const limit, callers, each = 3, 20, 200
	var busy, done atomic.Int64
	var over atomic.Bool
	use := func() {
		if busy.Add(1) > limit {
			over.Store(true)
		}
		busy.Add(-1)
	}
	q := queue.New(func(string) int { return limit })
	q.Start(func(context.Context, core.Delivery) { use() })
	var all sync.WaitGroup
	for caller := range callers {
		all.Go(func() {
			for i := range each {
				_ = q.Hand(t.Context(), core.Delivery{Ref: core.Ref{Buffer: "b", Shard: caller*each + i}, Destination: "d"})
				ctx, cancel := context.WithCancel(t.Context())
				if (caller+i)%2 == 0 {
					go cancel()
				}
				if release, err := q.Hold(ctx, "d"); err == nil {
					use()
					release()
					done.Add(1)
				}
				cancel()
			}
		})
	}
	all.Wait()
	for range limit { // as many as there are slots
		release, err := q.Hold(t.Context(), "d")
		require.NoError(t, err)
		t.Cleanup(release)
	}
	require.False(t, over.Load())
	require.GreaterOrEqual(t, done.Load(), int64(callers))
}
