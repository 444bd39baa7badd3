package core_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

// waits makes the source wait for the outcome, ten seconds at most.
func waits(c *core.Config) {
	c.Sources[0].AckDelivered, c.Sources[0].RespondTimeout = true, 10*time.Second
}

// word reports whether the coordinator has a record for those who wait for an
// event that came since the rig's begin.
func (r *rig) word(id string) bool {
	found := false
	for at := core.At(r.begin); at <= core.At(time.Now()) && !found; at++ {
		_ = r.shared.Coordinator.Change(context.Background(), core.WordOf("in", id, at), func(old []byte) ([]byte, error) {
			found = old != nil
			return old, nil
		})
	}
	return found
}

// answered posts events and says what was answered, and after how long.
func (r *rig) answered(bodies ...string) (core.Status, time.Duration) {
	begin := time.Now()
	receipt := r.post(bodies...)
	for _, id := range receipt.IDs {
		require.False(r.t, r.word(id), "no record is left")
	}
	return receipt.Status, time.Since(begin)
}

func TestAnOutcomeIsWaitedFor(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		change func(*core.Config)
		answer func(string, *core.Batch) core.Response
		takes  time.Duration
		want   core.Status
		least  time.Duration
		most   time.Duration
	}{
		{"delivered", at1, nil, 0, core.StatusDelivered, 0, 10 * time.Millisecond},
		{"by a slow one", at1, nil, 2 * time.Second, core.StatusDelivered, 2 * time.Second, 2300 * time.Millisecond},
		{"when the batch leaves", batch(50, 3*time.Second, 9*time.Second), nil, 0, core.StatusDelivered, 3 * time.Second, 3300 * time.Millisecond},
		{"at the second attempt", at1, attempt(2, 200, 500), 0, core.StatusDelivered, 0, 1300 * time.Millisecond},
		{"refused", at1, attempt(9, 200, 400), time.Second, core.StatusDeadLettered, time.Second, 1300 * time.Millisecond},
		{"too slow", at1, nil, 11 * time.Second, core.StatusPending, 10 * time.Second, 10 * time.Second},
		{"too late a batch", batch(50, 11*time.Second, 15*time.Second), nil, 0, core.StatusPending, 10 * time.Second, 10 * time.Second},
		{"held", func(c *core.Config) { at1(c); after(time.Second)(c) }, nil, 0, core.StatusPending, 0, 0},
		{"held in its place", func(c *core.Config) { at1(c); ordered(c); after(time.Minute)(c) }, nil, 0, core.StatusPending, 10 * time.Second, 10 * time.Second},
		{"no time", func(c *core.Config) { at1(c); c.Buffers[0].DeliverAt = "garbage" }, nil, 0, core.StatusDeadLettered, 0, 0},
		{"filtered", func(c *core.Config) { at1(c); c.Buffers[0].Filter = "null" }, nil, 0, "", 0, 0},
		{"filtered on its way", func(c *core.Config) { at1(c); c.Destinations[0].Filter = "null" }, nil, 0, core.StatusDelivered, 0, 10 * time.Millisecond},
		{"broken on its way", func(c *core.Config) { at1(c); c.Destinations[0].Filter = "fail k" }, nil, 0, core.StatusDeadLettered, 0, 10 * time.Millisecond},
		{"by a fallback", func(c *core.Config) { at1(c); fallback(1)(c) }, status("out", 400), 0, core.StatusDelivered, 0, 10 * time.Millisecond},
		{"and not a shadow", func(c *core.Config) { at1(c); copied()(c) }, status("copies", 500), 0, core.StatusDelivered, 0, 10 * time.Millisecond},
		{"in both buffers", func(c *core.Config) {
			at1(c)
			with("slow")(c)
			beside("second", func(b *core.Buffer) { b.To = "slow" })(c)
		}, status("slow", 400), 0, core.StatusDeadLettered, 0, 10 * time.Millisecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			run(t, config(waits, tt.change), func(r *rig) {
				r.replies(tt.answer)
				r.sendsTake(tt.takes)
				got, took := r.answered(`{"k":"a"}`)
				require.Equal(t, tt.want, got)
				require.GreaterOrEqual(t, took, tt.least)
				require.LessOrEqual(t, took, tt.most)
			})
		})
	}
}

// attempt answers a status from so many attempts on, another before.
func attempt(n, then, first int) func(string, *core.Batch) core.Response {
	return func(_ string, b *core.Batch) core.Response {
		if b.Attempt >= n {
			return core.Response{Status: then}
		}
		return core.Response{Status: first}
	}
}

// status answers a status for one destination.
func status(of string, status int) func(string, *core.Batch) core.Response {
	return func(to string, _ *core.Batch) core.Response {
		if to == of {
			return core.Response{Status: status}
		}
		return core.Response{Status: 200}
	}
}

func TestTheOutcomeOfManyEvents(t *testing.T) {
	run(t, config(batch(2, time.Second, time.Second), waits), func(r *rig) {
		slow := func(status int, d time.Duration) func(string, *core.Batch) core.Response {
			return func(_ string, b *core.Batch) core.Response {
				if b.Group == "slow" {
					<-time.After(d)
					return core.Response{Status: status}
				}
				return core.Response{Status: 200}
			}
		}
		var many []string
		for i := range 100 {
			many = append(many, fmt.Sprintf(`{"k":"%d"}`, i))
		}
		many = append(many, `{"k":"slow"}`)
		r.replies(slow(200, 5*time.Second))
		got, took := r.answered(many...)
		require.Equal(t, core.StatusDelivered, got)
		require.Greater(t, took, 6*time.Second, "the slowest of them")

		r.replies(slow(400, time.Second))
		got, _ = r.answered(many...)
		require.Equal(t, core.StatusDeadLettered, got, "one of them is")
		require.Len(t, r.deadLetters(), 1)
	})
}

// itemsOf is how many items were sent.
func itemsOf(all []sent) (n int) {
	for _, s := range all {
		n += len(s.Items)
	}
	return n
}

// A coordinator that is slow makes nobody wait for longer than they asked for.
func TestASlowCoordinatorDelaysNoAnswer(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		events int
		call   time.Duration // how long one takes
		want   core.Status
	}{
		"few":                     {16, 8 * time.Millisecond, core.StatusDelivered},
		"more than are asked for": {5000, 8 * time.Millisecond, core.StatusPending},
		"no time to ask":          {1000, 80 * time.Millisecond, core.StatusPending},
		"no time to hear":         {1000, 12 * time.Millisecond, core.StatusPending},
		"no time to forget":       {600, 10 * time.Millisecond, core.StatusDelivered},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, config(batch(10_000, 100*time.Millisecond, 100*time.Millisecond), waits, func(c *core.Config) {
				c.Sources[0].RespondTimeout = time.Second
			}), func(r *rig) {
				r.shared.fail = func() error {
					<-time.After(tt.call)
					return nil
				}
				begin := time.Now()
				receipt := r.post(slices.Repeat([]string{`{"k":"a"}`}, tt.events)...)
				require.LessOrEqual(t, time.Since(begin), 1250*time.Millisecond+2*tt.call)
				require.Equal(t, tt.want, receipt.Status)
				require.Equal(t, tt.events, receipt.Accepted)
				r.at(time.Minute)
				require.Equal(t, tt.events, itemsOf(r.sends()))
			})
		})
	}
}

// What is known to be a dead letter is, whatever becomes of the others.
func TestADeadLetterBesideWhatIsHeld(t *testing.T) {
	run(t, config(at1, waits, func(c *core.Config) { c.Buffers[0].DeliverAt = "{{ .json.at }}" }), func(r *rig) {
		got, took := r.answered(`{"at":"2099-01-01T00:00:00Z"}`, `{"at":"garbage"}`)
		require.Equal(t, core.StatusDeadLettered, got)
		require.Zero(t, took)
	})
}

// Who takes events in hears when they are durable, and may wait for nothing.
func TestNobodyHasToWait(t *testing.T) {
	run(t, config(waits), func(r *rig) {
		for _, may := range []bool{false, true} {
			asked := 0
			receipt, err := r.ingester.Ingest(context.Background(), "in", []core.Event{{Body: []byte(`{"k":"a"}`)}}, func() bool {
				require.NotEmpty(t, r.left(), "it is stored")
				asked++
				return may
			})
			require.NoError(t, err)
			require.Equal(t, 1, asked)
			require.Equal(t, may, receipt.Status == core.StatusDelivered)
			require.False(t, r.word(receipt.IDs[0]))
		}
		r.at(time.Minute)
		require.Equal(t, 2, itemsOf(r.sends()))
	})
}

func TestTheOutcomeOfAPartialSuccess(t *testing.T) {
	run(t, config(batch(3, time.Second, time.Second), waits, quick), func(r *rig) {
		r.replies(func(_ string, b *core.Batch) core.Response {
			if len(b.Items) == 3 {
				return core.Response{Status: 200, Failed: core.Bits(nil).With(1)}
			}
			<-time.After(2 * time.Second)
			return core.Response{Status: 200}
		})
		got, took := r.answered(item1, item2, item3)
		require.Equal(t, core.StatusDelivered, got)
		require.GreaterOrEqual(t, took, 2*time.Second)

		r.replies(func(string, *core.Batch) core.Response {
			return core.Response{Status: 200, Failed: core.Bits(nil).With(1), Refused: core.Bits(nil).With(1)}
		})
		got, _ = r.answered(item1, item2, item3)
		require.Equal(t, core.StatusDeadLettered, got)
	})
}

func TestOnlySourcesThatWaitCostTheCoordinatorAnything(t *testing.T) {
	run(t, config(at1), func(r *rig) {
		r.answers(map[string]int{"out": 400})
		r.put("a")
		r.at(time.Second)
		require.Len(t, r.deadLetters(), 1)
		require.Zero(t, r.asked.Load())
	})
}

func TestACallerThatGoesAway(t *testing.T) {
	run(t, config(waits), func(r *rig) {
		ctx, end := context.WithCancel(context.Background())
		time.AfterFunc(time.Second, end)
		receipt, err := r.ingester.Ingest(ctx, "in", []core.Event{{ID: "x", Body: []byte(`{"k":"a"}`)}})
		require.NoError(t, err)
		require.Equal(t, core.StatusPending, receipt.Status)
		require.False(t, r.word("x"))
		r.at(time.Minute)
		require.Len(t, r.sends(), 1)
	})
}

// outcome is what one of several that wait for an event has heard.
type outcome struct {
	status core.Status
	err    error
}

// wait sends an event of an id in the background.
func (r *rig) wait(ctx context.Context, id string) <-chan outcome {
	return r.waitFor(ctx, id, `{"k":"a"}`)
}

func (r *rig) waitFor(ctx context.Context, id, body string) <-chan outcome {
	heard := make(chan outcome, 1)
	go func() {
		receipt, err := r.ingester.Ingest(ctx, "in", []core.Event{{ID: id, Body: []byte(body)}})
		heard <- outcome{receipt.Status, err}
	}()
	synctest.Wait()
	return heard
}

func TestTwoThatWaitForOneEvent(t *testing.T) {
	run(t, config(at1, waits), func(r *rig) {
		r.sendsTake(3 * time.Second)
		r.answers(map[string]int{"out": 400})
		ctx, leave := context.WithCancel(context.Background())
		first := r.wait(ctx, "x")
		r.at(time.Second)
		second := r.wait(context.Background(), "x")
		leave() // its sender gave up, and has sent it again
		require.Equal(t, core.StatusPending, (<-first).status)
		require.True(t, r.word("x"), "one waits still")
		require.Equal(t, core.StatusDeadLettered, (<-second).status)
		require.False(t, r.word("x"))
	})
}

func TestTheLaterOfTwoThatWaitGoesFirst(t *testing.T) {
	run(t, config(at1, waits), func(r *rig) {
		r.sendsTake(3 * time.Second)
		r.answers(map[string]int{"out": 400})
		first := r.wait(context.Background(), "x")
		r.at(time.Second)
		ctx, leave := context.WithCancel(context.Background())
		second := r.wait(ctx, "x")
		leave()
		require.Equal(t, core.StatusPending, (<-second).status)
		require.Equal(t, core.StatusDeadLettered, (<-first).status, "it waits for its own")
		require.False(t, r.word("x"))
	})
}

// Two events of one id are two: what becomes of one says nothing of the other.
func TestTwoEventsOfOneID(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		apart     time.Duration
		good, bad core.Status
	}{
		"a millisecond apart":     {time.Millisecond, core.StatusDelivered, core.StatusDeadLettered},
		"in the same millisecond": {0, core.StatusPending, core.StatusPending},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, config(at1, waits), func(r *rig) {
				r.sendsTake(3 * time.Second)
				r.replies(func(_ string, b *core.Batch) core.Response {
					if b.Group == "bad" {
						return core.Response{Status: 400}
					}
					<-time.After(time.Second) // it is the later one
					return core.Response{Status: 200}
				})
				bad := r.waitFor(context.Background(), "x", `{"k":"bad"}`)
				r.at(tt.apart)
				good := r.waitFor(context.Background(), "x", `{"k":"good"}`)
				require.Equal(t, tt.bad, (<-bad).status)
				require.Equal(t, tt.good, (<-good).status)
				require.False(t, r.word("x"))
			})
		})
	}
}

func TestAnIDTwiceInOneRequest(t *testing.T) {
	run(t, config(at1, waits), func(r *rig) {
		r.answers(map[string]int{"out": 400})
		require.Equal(t, core.StatusDeadLettered, r.ids("x", "x").Status)
		r.answers(nil)
		require.Equal(t, core.StatusDelivered, r.ids("x", "x").Status)
		require.False(t, r.word("x"))
	})
}

// A row names no event, so that nobody could leave word for those in it.
func TestWhatLeavesInARowIsNotSaidToBeDelivered(t *testing.T) {
	run(t, config(waits, buf(func(b *core.Buffer) {
		b.Window = &core.WindowConfig{Every: time.Second, MaxAhead: time.Hour}
		b.Fold = []core.FoldColumn{{Name: "n", Expr: "count"}}
	})), func(r *rig) {
		r.answers(map[string]int{"out": 400})
		got, took := r.answered(`{"k":"a"}`)
		require.Equal(t, core.StatusPending, got)
		require.Zero(t, took)
		r.at(time.Minute)
		require.Len(t, r.deadLetters(), 1)
	})
}

func TestWordOfOneThatDiedWaiting(t *testing.T) {
	c := config(at1, waits)
	run(t, c, func(r *rig) {
		r.answers(map[string]int{"out": 400})
		ids := r.shared
		down := false
		ids.fail = func() error {
			if down {
				return core.Errorf(core.Unavailable, "down")
			}
			return nil
		}
		r.broken.Store(true)
		r.sendsTake(time.Second)
		first := r.wait(context.Background(), "x")
		r.at(1500 * time.Millisecond) // its dead letter has left word
		down = true                   // so the word stays
		<-first
		down = false
		r.answers(nil)
		r.sendsTake(0)
		require.Equal(t, core.StatusDelivered, (<-r.wait(context.Background(), "y")).status)
		r.at(20 * time.Second)
		require.Equal(t, core.StatusDelivered, (<-r.wait(context.Background(), "x")).status, "it was another's")
		require.False(t, r.word("x"))
	})
}

func TestACoordinatorThatIsDownRefusesThoseWhoWait(t *testing.T) {
	run(t, config(at1, waits), func(r *rig) {
		calls := 0
		r.broken.Store(true)
		r.shared.fail = func() error {
			if calls++; calls == 2 {
				return core.Errorf(core.Unavailable, "down")
			}
			return nil
		}
		_, err := r.ingester.Ingest(context.Background(), "in", []core.Event{{ID: "x", Body: []byte("{}")}, {ID: "y", Body: []byte("{}")}})
		require.Equal(t, core.Unavailable, core.CodeOf(err))
		require.False(t, r.word("x"), "nor is a record left")
		r.at(time.Minute)
		require.Empty(t, r.sends(), "nothing is stored")
	})
}

func TestAStoreThatIsDownWhileSomebodyWaits(t *testing.T) {
	run(t, config(waits, batch(50, time.Second, time.Second)), func(r *rig) {
		r.broken.Store(true)
		heard := r.wait(context.Background(), "x")
		require.NoError(t, r.store.Close())
		r.at(5 * time.Second)
		require.Empty(t, heard)
		require.Equal(t, core.StatusPending, (<-heard).status, "accepted it was")
		r.store = r.store.Reopen()
	})
}

func TestADeadLetterWithoutWordIsNotSettled(t *testing.T) {
	run(t, config(at1, waits), func(r *rig) {
		r.broken.Store(true)
		calls := 0
		r.shared.fail = func() error {
			if calls++; calls == 2 { // the word of the dead letter
				return core.Errorf(core.Unavailable, "down")
			}
			return nil
		}
		r.answers(map[string]int{"out": 400})
		got, _ := r.answered(`{"k":"a"}`)
		require.Equal(t, core.StatusDeadLettered, got, "it is never said to be delivered")
		require.Len(t, r.deadLetters(), 1)
		require.Empty(t, r.left())
	})
}

// What could not be put as a dead letter and is delivered later was never one, at
// whichever step the former failed.
func TestNoWordOfWhatIsNoDeadLetter(t *testing.T) {
	t.Parallel()
	down := core.Errorf(core.Unavailable, "down")
	for name, tt := range map[string]struct {
		failPut func() error
		failAsk int // which call of the coordinator: the first is before the event is stored
	}{
		"it can't be put":        {failPut: func() error { return down }},
		"who waits is not known": {failAsk: 2},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, config(at1, waits, out(func(d *core.Destination) { d.Retry.MaxAttempts = 1 })), func(r *rig) {
				r.broken.Store(true)
				r.failPut = tt.failPut
				asks := 0
				r.shared.fail = func() error {
					asks++
					return errorIf(tt.failAsk == asks, down)
				}
				r.replies(attempt(2, 200, 500))
				got, _ := r.answered(`{"k":"a"}`)
				require.Equal(t, core.StatusDelivered, got)
				require.Len(t, r.sends(), 2)
				require.Empty(t, r.deadLetters())
				require.Empty(t, r.left())
			})
		})
	}
}

// A dead letter of which no word could be left waits for the next attempt.
func TestADeadLetterWhoseWordComesLater(t *testing.T) {
	run(t, config(at1, waits), func(r *rig) {
		r.broken.Store(true)
		calls := 0
		r.shared.fail = func() error {
			calls++
			return errorIf(calls == 3, core.Errorf(core.Unavailable, "down")) // it is put already
		}
		r.answers(map[string]int{"out": 400})
		got, _ := r.answered(`{"k":"a"}`)
		require.Equal(t, core.StatusDeadLettered, got)
		require.Len(t, r.deadLetters(), 1, "it is put twice by the same name")
		require.Empty(t, r.left())
	})
}

func errorIf(failed bool, err error) error {
	if failed {
		return err
	}
	return nil
}
