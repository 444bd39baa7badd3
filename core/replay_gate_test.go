package core_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/infra/memory"
)

// replaying is a replayer of dead letters, one batch of n for out, on its own.
type replaying struct {
	*core.Replayer

	t       *testing.T
	shared  *hookedTurns
	letters core.DeadLetterQueue
	answer  func(*core.Batch) core.Response // nil: 200
	sent    []core.Batch
	at      []time.Duration // of the sends
	why     []string        // what the observer was told of
}

// replays runs a test on a replayer, in its own bubble.
func replays(t *testing.T, c *core.Config, test func(*replaying)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, begin := memory.New(), time.Now()
		catalog, err := core.NewCatalog(c, toy)
		require.NoError(t, err)
		r := &replaying{t: t, shared: &hookedTurns{Coordinator: memory.NewCoordinator()}, letters: store.DeadLetters()}
		send := senderFunc(func(b *core.Batch) core.Response {
			r.sent, r.at = append(r.sent, *b), append(r.at, time.Since(begin))
			if r.answer == nil {
				return core.Response{Status: 200}
			}
			return r.answer(b)
		})
		r.Replayer = core.NewReplayer(catalog, core.Ports{
			Clock: core.ClockFunc(func() core.Millis { return core.At(time.Now()) }), Sleep: sleep, Coordinator: r.shared,
			Sender:   func(string) core.Sender { return send },
			Observer: &core.Observer{Failed: func(op string, err error) { r.why = append(r.why, op+": "+core.DetailOf(err)) }},
		}, r.letters)
		test(r)
	})
}

type senderFunc func(*core.Batch) core.Response

func (f senderFunc) Send(_ context.Context, b *core.Batch) core.Response { return f(b) }

// refuse adds dead letters of one batch.
func (r *replaying) refuse(batch string, bodies ...string) { r.refuseBy("out", batch, bodies...) }

// refuseBy adds those of a destination.
func (r *replaying) refuseBy(to, batch string, bodies ...string) {
	letters := make([]core.DeadLetter, len(bodies))
	for i, body := range bodies {
		letters[i] = core.DeadLetter{ID: fmt.Sprintf("%s/%d", batch, i+1), Batch: batch, Buffer: "b", Destination: to, Attempts: 1,
			Item: core.Item{Seq: uint64(i) + 1, Event: core.Event{Body: []byte(body)}}}
	}
	require.NoError(r.t, r.letters.(core.DeadLetterSink).Put(context.Background(), letters))
}

func (r *replaying) replay() core.ReplayReport {
	report, err := r.Replay(context.Background(), core.ReplayRequest{})
	require.NoError(r.t, err)
	return report
}

func (r *replaying) breaker() core.Breaker {
	b, err := core.BreakerOf(context.Background(), r.shared, "out")
	require.NoError(r.t, err)
	return b
}

func breaking(failures int, cooldown time.Duration) func(*core.Config) {
	return out(func(d *core.Destination) { d.Breaker = &core.BreakerConfig{Failures: failures, Cooldown: cooldown} })
}

// A letter on which its destination's transform fails is left, and told of; it
// keeps none of its batch from being sent.
func TestAReplayLeavesOutWhatItsTransformFailsOn(t *testing.T) {
	replays(t, config(out(func(d *core.Destination) { d.Transform = "fail bad" })), func(r *replaying) {
		r.refuse("x", "one", "bad", "three", "four")
		r.refuse("y", "bad")
		r.answer = func(*core.Batch) core.Response { return core.Response{Status: 200, Failed: core.Bits(nil).With(1)} }
		require.Equal(t, core.ReplayReport{Replayed: 2, Failed: 3, Left: 3}, r.replay())
		require.Len(t, r.sent, 1)
		require.Equal(t, []string{"one", "three", "four"}, bodies(r.sent[0].Items))
		require.Equal(t, []string{
			"replay dead letters: 1 of batch x were not sent to out: x/2: the transform fails on this event: it has bad",
			"replay dead letters: 1 of batch y were not sent to out: y/1: the transform fails on this event: it has bad",
		}, r.why)

		r.answer = nil
		require.Equal(t, core.ReplayReport{Replayed: 1, Failed: 2, Left: 2}, r.replay(), "of what was sent, the one that was not taken")
		require.Equal(t, []string{"three"}, bodies(r.sent[1].Items))
		require.NotEqual(t, r.sent[0].ID, r.sent[1].ID)
	})
}

// What a replay is answered counts for its destination's breaker, and it waits
// for one that is open, to make its probe.
func TestAReplayWaitsForABreaker(t *testing.T) {
	replays(t, config(breaking(2, time.Minute)), func(r *replaying) {
		for i := range 4 {
			r.refuse(fmt.Sprint("x", i), "body")
		}
		r.answer = func(*core.Batch) core.Response {
			if len(r.sent) <= 3 {
				return core.Response{Status: 503}
			}
			return core.Response{Status: 200}
		}
		require.Equal(t, core.ReplayReport{Replayed: 1, Failed: 3, Left: 3}, r.replay())
		require.Equal(t, []time.Duration{0, 0, time.Minute, 2 * time.Minute}, r.at, "the third is a probe that fails, the fourth one that does not")
		require.Zero(t, r.breaker())
		require.Empty(t, r.why)
	})
}

// Where a breaker is open for longer than a replay may take, nothing is sent, and
// that is told.
func TestAReplayIntoAnOpenBreaker(t *testing.T) {
	replays(t, config(breaking(1, time.Hour)), func(r *replaying) {
		r.refuse("x", "one", "two")
		r.refuse("y", "three")
		r.answer = func(*core.Batch) core.Response { return core.Response{Status: 503} }
		require.Equal(t, core.ReplayReport{Failed: 3, Left: 3}, r.replay())
		require.Len(t, r.sent, 1)
		require.Len(t, r.why, 1)
		require.Contains(t, r.why[0], "replay dead letters: 1 of batch y were not sent to out: the breaker of destination out is open until ")

		sleepFor(time.Hour)
		r.answer = nil
		require.Equal(t, core.ReplayReport{Replayed: 3}, r.replay())
	})
}

// A probe that is cut off has shown nothing: another is let through.
func TestAReplaysProbeThatIsCutOff(t *testing.T) {
	replays(t, config(breaking(1, time.Minute)), func(r *replaying) {
		r.refuse("x", "one")
		r.answer = func(*core.Batch) core.Response { return core.Response{Status: 503} }
		r.replay()
		sleepFor(time.Minute)
		ctx, stop := context.WithCancel(context.Background())
		r.answer = func(*core.Batch) core.Response {
			stop()
			return core.Response{Err: core.Errorf(core.Canceled, "cut off")}
		}
		_, err := r.Replay(ctx, core.ReplayRequest{})
		require.NoError(t, err)
		require.Len(t, r.sent, 2)
		r.answer = nil
		require.Equal(t, core.ReplayReport{Replayed: 1}, r.replay())
		require.Equal(t, []time.Duration{0, time.Minute, time.Minute}, r.at)
	})
}

// sleepFor moves a bubble's clock.
func sleepFor(d time.Duration) { _ = sleep(context.Background(), d) }

// A probe is let through for one send: a replay that waits for its token meanwhile
// leaves it to others.
func TestAReplayThatWaitsForATokenIsNoProbe(t *testing.T) {
	c := config(breaking(1, 5*time.Second), out(func(d *core.Destination) {
		d.RateLimit = &core.RateConfig{Requests: 1, Per: 2 * time.Minute}
	}))
	replays(t, c, func(r *replaying) {
		r.refuse("x", "body")
		r.answer = func(*core.Batch) core.Response { return core.Response{Status: 503} }
		r.replay()
		r.answer = nil
		sleepFor(10 * time.Second)
		done := make(chan core.ReplayReport)
		go func() { done <- r.replay() }()
		for range 10 {
			sleepFor(10 * time.Second)
			require.False(t, r.breaker().Probing)
		}
		require.Equal(t, core.ReplayReport{Replayed: 1}, <-done)
		require.Equal(t, []time.Duration{0, 2 * time.Minute}, r.at)
		require.Zero(t, r.breaker())
	})
}

// A token that came before the breaker let anything through counts, unless that is long
// ago.
func TestAReplayKeepsItsToken(t *testing.T) {
	for per, want := range map[time.Duration]time.Duration{
		40 * time.Second: 60 * time.Second,
		20 * time.Second: 60 * time.Second, // it takes another, which is there by now
	} {
		t.Run(per.String(), func(t *testing.T) {
			c := config(breaking(1, time.Minute), out(func(d *core.Destination) { d.RateLimit = &core.RateConfig{Requests: 1, Per: per} }))
			replays(t, c, func(r *replaying) {
				r.refuse("x", "body")
				r.answer = func(*core.Batch) core.Response { return core.Response{Status: 503} }
				r.replay()
				r.answer = nil
				r.open(0)
				sleepFor(10 * time.Second)
				done := make(chan core.ReplayReport)
				go func() { done <- r.replay() }()
				sleepFor(5 * time.Second)
				r.open(45 * time.Second)
				require.Equal(t, core.ReplayReport{Replayed: 1}, <-done)
				require.Equal(t, want, r.at[1])
			})
		})
	}
}

// open opens the breaker for so long.
func (r *replaying) open(long time.Duration) {
	require.NoError(r.t, r.shared.Change(context.Background(), "breaker/out", func([]byte) ([]byte, error) {
		return json.Marshal(core.Breaker{Failures: 1, Until: core.At(time.Now().Add(long))})
	}))
}

// Where a destination takes nothing, its letters are not gone through one by one.
func TestAReplayLeavesTheRestWhereNothingIsTaken(t *testing.T) {
	t.Parallel()
	for name, q := range map[string]core.ReplayRequest{"their own": {Chunk: 10}, "another": {Chunk: 10, To: "out"}} {
		t.Run(name, func(t *testing.T) {
			replays(t, config(breaking(1, time.Hour)), func(r *replaying) {
				for i := range 50 {
					r.refuse(fmt.Sprint("x", i), "body")
				}
				r.open(time.Hour)
				calls := 0
				r.shared.fail = func() error {
					calls++
					return nil
				}
				report, err := r.Replay(context.Background(), q)
				require.NoError(t, err)
				require.Equal(t, core.ReplayReport{Failed: 10, Left: 50}, report)
				require.Equal(t, 2, calls, "once at once, once when the others are through")
				require.Len(t, r.why, 1)
				require.Empty(t, r.sent)
			})
		})
	}
}

// Who waits for one destination sends to the others before.
func TestAReplayWaitsLast(t *testing.T) {
	c := config(breaking(1, time.Hour), with("second"), with("third", func(d *core.Destination) {
		d.RateLimit = &core.RateConfig{Requests: 1, Per: time.Minute}
	}))
	replays(t, c, func(r *replaying) {
		for i, to := range []string{"out", "third", "third", "second", "out", "second"} {
			r.refuseBy(to, fmt.Sprint("x", i), to)
		}
		r.open(3 * time.Minute)
		require.Equal(t, core.ReplayReport{Replayed: 6}, r.replay())
		require.Equal(t, []time.Duration{0, 0, 0, 3 * time.Minute, 3 * time.Minute, 3 * time.Minute}, r.at)
	})
}
