package core_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

// manualWithLetters is a rig with dead letters: so many batches of two.
func manualWithLetters(t *testing.T, batches int) *manual {
	t.Helper()
	m := newManual(t, config(batch(2, 5*s, 15*s)))
	letters := make([]core.DeadLetter, 0, 2*batches)
	for i := range batches {
		for seq := range uint64(2) {
			id := fmt.Sprint("batch", i)
			letters = append(letters, core.DeadLetter{ID: fmt.Sprintf("%s/%d", id, seq+1), Batch: id, Buffer: "b",
				Destination: "out", Attempts: 1, Item: core.Item{Seq: seq + 1}})
		}
	}
	require.NoError(t, m.memory.DeadLetters().Put(context.Background(), letters))
	return m
}

// free takes every letter that nobody has taken.
func (m *manual) free() int {
	m.t.Helper()
	letters, err := m.memory.DeadLetters().Take(context.Background(), core.DeadLetterFilter{}, 10_000, m.now, m.now.Add(time.Hour))
	require.NoError(m.t, err)
	return len(letters)
}

// A replay of more than it has time for ends with the send that outlasts its
// four minutes. The next one goes on with what is left, and sends nothing twice.
func TestReplayEndsWithinItsTime(t *testing.T) {
	t.Parallel()
	m := manualWithLetters(t, 40)
	m.answer = func(context.Context, *core.Batch) core.Response {
		m.pass(15 * s)
		return core.Response{Status: 200}
	}
	for _, want := range []core.ReplayReport{
		{Replayed: 32, Left: 48}, {Replayed: 32, Left: 16}, {Replayed: 16},
	} {
		begin := m.now
		report, err := m.replayer.Replay(context.Background(), core.ReplayRequest{})
		require.NoError(t, err)
		require.Equal(t, want, report)
		require.LessOrEqual(t, m.now.Sub(begin), 4*time.Minute)
	}
	batches := map[string]bool{}
	for _, b := range m.sent {
		batches[b.ID] = true
	}
	require.Len(t, m.sent, 40)
	require.Len(t, batches, 40)
}

// Whatever ends a replay, the letters that are still there are free for the
// next one at once. Only those that were sent, but could not be removed, stay
// leased, so that they are not sent once more in the meantime.
func TestReplayGivesBackWhatItHasTaken(t *testing.T) {
	t.Parallel()
	const second = 2 // the send at which it happens
	for _, tc := range []struct {
		name   string
		q      core.ReplayRequest
		answer func(m *manual, stop func()) core.Response // to the second batch
		want   core.ReplayReport
		leased int
		fails  bool
	}{
		{name: "nothing does", want: core.ReplayReport{Replayed: 20}},
		{name: "its caller leaves",
			answer: func(_ *manual, stop func()) core.Response {
				stop()
				return core.Response{Status: 200}
			},
			want: core.ReplayReport{Replayed: 4, Left: 16}},
		{name: "its time is over",
			answer: func(m *manual, _ func()) core.Response {
				m.pass(4 * time.Minute)
				return core.Response{Status: 200}
			},
			want: core.ReplayReport{Replayed: 4, Left: 16}},
		{name: "it has replayed enough", q: core.ReplayRequest{Max: 5}, want: core.ReplayReport{Replayed: 5, Left: 15}},
		{name: "a send fails", answer: func(*manual, func()) core.Response { return core.Response{Status: 503} },
			want: core.ReplayReport{Replayed: 18, Failed: 2, Left: 2}},
		{name: "a sender panics", answer: func(*manual, func()) core.Response { panic("a sender with a fault") },
			want: core.ReplayReport{Replayed: 18, Failed: 2, Left: 2}},
		{name: "a send fails in part",
			answer: func(*manual, func()) core.Response {
				return core.Response{Status: 200, Failed: core.Bits(nil).With(1)}
			},
			want: core.ReplayReport{Replayed: 19, Failed: 1, Left: 1}},
		{name: "settling fails",
			answer: func(m *manual, _ func()) core.Response {
				m.letters.settle = func([]core.DeadLetter) error { m.letters.settle = nil; return broken() }
				return core.Response{Status: 200}
			},
			want: core.ReplayReport{Replayed: 4}, leased: 2, fails: true},
		{name: "settling fails behind a failed send",
			answer: func(m *manual, _ func()) core.Response {
				m.letters.settle = func(done []core.DeadLetter) error {
					if len(done) == 0 {
						return nil
					}
					m.letters.settle = nil
					return broken()
				}
				return core.Response{Status: 200, Failed: core.Bits(nil).With(0)}
			},
			want: core.ReplayReport{Replayed: 3, Failed: 1}, leased: 1, fails: true},
		{name: "taking more fails",
			answer: func(m *manual, _ func()) core.Response {
				m.letters.take = broken
				return core.Response{Status: 503}
			},
			want: core.ReplayReport{Replayed: 18, Failed: 2}, fails: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			m := manualWithLetters(t, 10)
			ctx, stop := context.WithCancel(context.Background())
			defer stop()
			m.answer = func(context.Context, *core.Batch) core.Response {
				if len(m.sent) == second && tc.answer != nil {
					return tc.answer(m, stop)
				}
				return core.Response{Status: 200}
			}
			report, err := m.replayer.Replay(ctx, tc.q)
			if tc.fails {
				require.Equal(t, core.Unavailable, core.CodeOf(err))
			} else {
				require.NoError(t, err)
			}
			require.Equal(t, tc.want, report)
			require.Equal(t, m.deadLetters()-tc.leased, m.free())
		})
	}
}

// What a replay says is left is never less than what it has given back itself,
// however little time there was to count; a count that fails otherwise is told of.
func TestReplayCountsWhatItCan(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		count int
		err   error
		want  core.ReplayReport
	}{
		{name: "all", count: 30, want: core.ReplayReport{Replayed: 2, Failed: 2, Left: 30}},
		{name: "some", count: 3, want: core.ReplayReport{Replayed: 2, Failed: 2, Left: 18}},
		{name: "none, as the time was over", err: core.Errorf(core.Canceled, "cut short"), want: core.ReplayReport{Replayed: 2, Failed: 2, Left: 18}},
		{name: "none, by a fault", err: broken(), want: core.ReplayReport{Replayed: 2, Failed: 2, Left: 18}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			m := manualWithLetters(t, 10)
			m.letters.count = func() (int, error) { return tc.count, tc.err }
			m.answer = func(context.Context, *core.Batch) core.Response {
				if len(m.sent) == 1 {
					return core.Response{Status: 503}
				}
				m.pass(4 * time.Minute)
				return core.Response{Status: 200}
			}
			report, err := m.replayer.Replay(context.Background(), core.ReplayRequest{})
			require.Equal(t, tc.want, report)
			if core.CodeOf(tc.err) == core.Unavailable {
				require.ErrorIs(t, err, tc.err)
			} else {
				require.NoError(t, err)
			}
		})
	}
}

// Letters of destinations that are not configured any more are failed ones,
// without an attempt, and the report names each destination once.
func TestReplayToADestinationThatIsGone(t *testing.T) {
	t.Parallel()
	m := manualWithLetters(t, 2)
	require.NoError(t, m.memory.DeadLetters().Put(context.Background(), []core.DeadLetter{
		{ID: "other/1", Batch: "other", Buffer: "b", Destination: "before", Attempts: 1, Item: core.Item{Seq: 1}},
	}))
	c := config()
	c.Destinations[0].Name, c.Buffers[0].To = "new", "new"
	m.configure(c)
	report, err := m.replayer.Replay(context.Background(), core.ReplayRequest{})
	require.NoError(t, err)
	require.Equal(t, core.ReplayReport{Failed: 5, Left: 5, Missing: []string{"before", "out"}}, report)
	require.Empty(t, m.sent)

	report, err = m.replayer.Replay(context.Background(), core.ReplayRequest{To: "new", Max: 1})
	require.NoError(t, err)
	require.Equal(t, core.ReplayReport{Replayed: 1, Left: 4}, report)
	require.Equal(t, 4, m.free())
}
