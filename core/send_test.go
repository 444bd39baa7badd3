package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

// A send that ends as canceled, though this process did not stop it, is a
// failure like any other: it counts, and is not repeated at once.
func TestCanceledWithoutAStopIsARetry(t *testing.T) {
	t.Parallel()
	m := newManual(t, config(batch(1, 5*s, 15*s), attempts(3, s, time.Minute)))
	m.answer = func(context.Context, *core.Batch) core.Response {
		return core.Response{Err: core.Errorf(core.Canceled, "the peer canceled the stream")}
	}
	m.put("k")
	m.elapse(time.Hour)
	require.Equal(t, "0.000 k 1 items #1\n1.000 k 1 items #2\n3.000 k 1 items #3", m.summary())
	require.Equal(t, 1, m.deadLetters())
}

// One that this process stopped is no failure.
func TestCanceledByAStopIsNoFailure(t *testing.T) {
	t.Parallel()
	m := newManual(t, config(batch(1, 5*s, 15*s), attempts(1, s, time.Minute)))
	ctx, stop := context.WithCancel(context.Background())
	m.answer = func(ctx context.Context, _ *core.Batch) core.Response {
		stop()
		return core.Response{Err: core.Wrap(core.Canceled, ctx.Err(), "the send was stopped")}
	}
	m.put("k")
	require.NoError(t, m.tryDeliver(ctx, ref("k")))
	require.Zero(t, m.deadLetters())
	c := m.group("k").Claims[0]
	require.False(t, c.Held())
	require.Equal(t, m.now, c.Due)
	require.Zero(t, c.FirstErrorAt)
	m.answer = nil
	m.elapse(time.Hour)
	require.Equal(t, "0.000 k 1 items #1\n0.000 k 1 items #1", m.summary())
}

// A destination that says that some items were not taken must say which. When
// that is not clear, as when it names one that was not in the batch, all are
// sent again, under the same id.
func TestUnclearPartialSuccessRetriesAll(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		failed []int // positions in a batch of three
		left   int   // items of the next send
	}{
		{"some", []int{1}, 1},
		{"all but one", []int{0, 2}, 2},
		{"all", []int{0, 1, 2}, 3},
		{"one outside the batch", []int{3}, 3},
		{"one far outside", []int{1000}, 3},
		{"one inside, one outside", []int{1, 7}, 3},
		{"all, and one outside", []int{0, 1, 2, 3}, 3},
	} {
		for kind, set := range map[string]func(*core.Config){"": func(*core.Config) {}, ", ordered": ordered} {
			t.Run(tc.name+kind, func(t *testing.T) {
				t.Parallel()
				m := newManual(t, config(batch(3, 5*s, 15*s), set))
				m.answer = func(_ context.Context, b *core.Batch) core.Response {
					r := core.Response{Status: 200}
					for _, i := range tc.failed {
						if b.Attempt == 1 {
							r.Failed = r.Failed.With(i)
						}
					}
					return r
				}
				m.put("k", "k", "k")
				m.elapse(time.Hour)
				require.Len(t, m.sent, 2)
				require.Equal(t, 2, m.sent[1].Attempt)
				if tc.left < 3 {
					require.Equal(t, m.sent[0].ID+".2", m.sent[1].ID)
				} else {
					require.Equal(t, m.sent[0].ID, m.sent[1].ID)
				}
				if kind == "" || tc.left == 3 {
					require.Len(t, m.sent[1].Items, tc.left)
				}
				require.Empty(t, m.group("k"))
			})
		}
	}
}

// A sender that panics has failed with one batch; the process, its other
// batches and the one itself, when it is sent again, go on.
func TestSenderThatPanics(t *testing.T) {
	run(t, config(batch(1, 5*s, 15*s)), func(r *rig) {
		r.answer = func(_ string, b *core.Batch) core.Response {
			if b.Group == "bad" && b.Attempt == 1 {
				panic("a sender with a fault")
			}
			return core.Response{Status: 200}
		}
		r.put("bad")
		r.put("good")
		r.at(1 * s)
		r.put("bad")
		r.at(time.Hour)
		attempts := map[string]int{}
		for _, b := range r.sends() {
			attempts[b.ID] = b.Attempt
		}
		require.Len(r.t, attempts, 3)
		require.Len(r.t, r.sends(), 5, "the two of the bad group were sent twice")
		require.Empty(r.t, r.deadLetters())
	})
}

func TestSenderThatAlwaysPanics(t *testing.T) {
	t.Parallel()
	m := newManual(t, config(batch(1, 5*s, 15*s), attempts(2, s, s)))
	m.answer = func(context.Context, *core.Batch) core.Response { panic("a sender with a fault") }
	m.put("k")
	m.elapse(time.Hour)
	require.Len(t, m.sent, 2)
	letters, _, err := m.memory.DeadLetters().List(context.Background(), core.DeadLetterFilter{}, "", 10)
	require.NoError(t, err)
	require.Len(t, letters, 1)
	require.Equal(t, core.DeadExhausted, letters[0].Reason)
	require.Equal(t, "the sender failed", letters[0].LastError)
	report, err := m.replayer.Replay(context.Background(), core.ReplayRequest{})
	require.NoError(t, err)
	require.Equal(t, core.ReplayReport{Failed: 1, Left: 1}, report, "nor does it end a replay")
}
