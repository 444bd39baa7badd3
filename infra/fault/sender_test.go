package fault_test

import (
	"context"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/infra/fault"
)

// taking is an endpoint that takes everything.
type taking struct{ calls int }

func (s *taking) Send(context.Context, *core.Batch) core.Response {
	s.calls++
	return core.Response{Status: http.StatusOK}
}

func setup(t *testing.T, o fault.Options) (*fault.Sender, *taking, *time.Duration) {
	t.Helper()
	to, slept := &taking{}, new(time.Duration)
	o.Rand = rand.New(rand.NewPCG(1, 2))
	o.Sleep = func(ctx context.Context, d time.Duration) error {
		*slept += d
		return ctx.Err()
	}
	return fault.NewSender(to, o), to, slept
}

// send sends so many batches, and counts them by outcome.
func send(t *testing.T, s *fault.Sender, n int) map[core.Outcome]int {
	t.Helper()
	outcomes := map[core.Outcome]int{}
	for range n {
		r := s.Send(t.Context(), &core.Batch{})
		outcomes[core.Classify(&r, nil)]++
	}
	return outcomes
}

func TestWithoutFaults(t *testing.T) {
	t.Parallel()
	s, to, slept := setup(t, fault.Options{})
	require.Equal(t, map[core.Outcome]int{core.Delivered: 1000}, send(t, s, 1000))
	require.Equal(t, 1000, to.calls)
	require.Zero(t, *slept)
}

func TestFail(t *testing.T) {
	t.Parallel()
	s, to, _ := setup(t, fault.Options{Fail: 0.2})
	outcomes := send(t, s, 10_000)
	require.InDelta(t, 2000, outcomes[core.Retry], 200)
	require.Equal(t, outcomes[core.Retry], s.Failed())
	require.Equal(t, outcomes[core.Delivered], to.calls, "what fails makes no call")
	s, to, _ = setup(t, fault.Options{Fail: 1})
	require.Equal(t, map[core.Outcome]int{core.Retry: 1000}, send(t, s, 1000))
	require.Zero(t, to.calls)
	r := s.Send(t.Context(), &core.Batch{})
	require.Equal(t, http.StatusServiceUnavailable, r.Status)
}

func TestDrop(t *testing.T) {
	t.Parallel()
	s, to, _ := setup(t, fault.Options{Drop: 0.1})
	outcomes := send(t, s, 10_000)
	require.InDelta(t, 1000, outcomes[core.Retry], 150)
	require.Equal(t, outcomes[core.Retry], s.Dropped())
	require.Equal(t, 10_000, to.calls, "the call was made")
}

func TestDelay(t *testing.T) {
	t.Parallel()
	s, to, slept := setup(t, fault.Options{Delay: 2 * time.Second})
	send(t, s, 3)
	require.Equal(t, 6*time.Second, *slept)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := s.Send(ctx, &core.Batch{})
	require.ErrorIs(t, r.Err, context.Canceled)
	require.Equal(t, core.Interrupted, core.Classify(&r, nil))
	require.Equal(t, 3, to.calls)
}
