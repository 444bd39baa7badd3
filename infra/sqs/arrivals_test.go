package sqs_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/infra/sqs"
)

// near records what is armed again.
type near struct {
	hints chan core.Hint
	err   error
}

func (n *near) Arm(_ context.Context, h core.Hint) error {
	n.hints <- h
	return n.err
}

func arrivals(n *near) *sqs.Arrivals {
	return sqs.NewArrivals(sqs.NewLadder(n, n, sqs.LadderOptions{Clock: wall}), wall)
}

// TestArrivals takes one invocation's hints, all at once.
func TestArrivals(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun := wall.Now()
		waits := []time.Duration{
			1999 * time.Millisecond, -24 * time.Hour, 0, 100 * time.Millisecond, 2 * time.Second, time.Second, 100 * time.Millisecond,
			time.Minute, time.Hour,
		}
		hints := make([]core.Hint, len(waits))
		for i, w := range waits {
			hints[i] = in(w)
			hints[i].Check = uint64(i)
		}
		again := &near{hints: make(chan core.Hint, 10)}
		checked := make(chan core.Hint, 10)
		errs := arrivals(again).Take(context.Background(), hints, func(_ context.Context, h core.Hint) error {
			require.Equal(t, max(h.At, begun), wall.Now(), "checked at its time")
			checked <- h
			return nil
		})
		require.Equal(t, make([]error, len(hints)), errs)
		require.Equal(t, begun.Add(1999*time.Millisecond), wall.Now(), "it waits for the latest, side by side")
		require.Len(t, checked, 6)
		require.Len(t, again.hints, 3)
		close(again.hints)
		for h := range again.hints {
			require.Contains(t, []uint64{4, 7, 8}, h.Check)
		}
	})
}

// TestArrivalsSideBySide shows that a slow check holds up no other.
func TestArrivalsSideBySide(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const n = 1000
		gate := make(chan struct{})
		reached := make(chan struct{}, n)
		hints := make([]core.Hint, n)
		for i := range hints {
			hints[i] = in(time.Duration(i) * time.Millisecond)
		}
		done := make(chan []error)
		go func() {
			done <- arrivals(&near{}).Take(context.Background(), hints, func(context.Context, core.Hint) error {
				reached <- struct{}{}
				<-gate
				return nil
			})
		}()
		<-time.After(time.Second)
		synctest.Wait()
		require.Len(t, reached, n)
		close(gate)
		require.Equal(t, make([]error, n), <-done)
	})
}

// TestArrivalsFail names those that failed, and none else.
func TestArrivalsFail(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		errCheck, errArm := errors.New("no check"), errors.New("no arm")
		again := &near{hints: make(chan core.Hint, 10), err: errArm}
		hints := []core.Hint{in(0), in(time.Second), in(time.Hour), in(time.Second)}
		hints[1].Life = "bad"
		errs := arrivals(again).Take(context.Background(), hints, func(_ context.Context, h core.Hint) error {
			if h.Life == "bad" {
				return errCheck
			}
			return nil
		})
		require.Equal(t, []error{nil, errCheck, errArm, nil}, errs)
		require.Empty(t, arrivals(again).Take(context.Background(), nil, nil))
	})
}

// TestArrivalsCut ends the invocation while hints wait: none of them begins.
func TestArrivalsCut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		hints := []core.Hint{in(500 * time.Millisecond), in(1500 * time.Millisecond)}
		var checked []core.Hint
		errs := arrivals(&near{}).Take(ctx, hints, func(_ context.Context, h core.Hint) error {
			checked = append(checked, h)
			return nil
		})
		require.Equal(t, hints[:1], checked)
		require.NoError(t, errs[0])
		require.Equal(t, core.Canceled, core.CodeOf(errs[1]), "%v", errs[1])
	})
}

// TestDoubledHints shows that a doubled message is a doubled hint and no more.
func TestDoubledHints(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		checks := make(chan core.Hint, 10)
		r := start(t, sqs.MinThreshold, func(_ context.Context, h core.Hint) error {
			checks <- h
			return nil
		})
		defer r.stop()
		h := in(time.Hour)
		for range 3 {
			require.NoError(t, r.ladder.Arm(context.Background(), h))
			require.NoError(t, sqs.NewTimer(r.fake, r.queue, wall).Arm(context.Background(), h))
		}
		<-time.After(time.Hour)
		synctest.Wait()
		require.LessOrEqual(t, len(checks), 4, "one of the schedule, which is one, and those of SQS")
		require.NotEmpty(t, checks)
		<-time.After(24 * time.Hour)
		synctest.Wait()
		require.LessOrEqual(t, len(checks), 4)
		require.Zero(t, r.fake.Len(r.queue))
	})
}

// TestFailedChecksComeAgain shows that a hint whose check fails is not lost.
func TestFailedChecksComeAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tries := make(chan struct{}, 10)
		r := start(t, sqs.MinThreshold, func(context.Context, core.Hint) error {
			tries <- struct{}{}
			if len(tries) < 3 {
				return errors.New("the store is down")
			}
			return nil
		})
		defer r.stop()
		require.NoError(t, r.ladder.Arm(context.Background(), in(100*time.Millisecond)))
		<-time.After(time.Second)
		synctest.Wait()
		require.Len(t, tries, 3)
		require.Zero(t, r.fake.Len(r.queue))
	})
}
