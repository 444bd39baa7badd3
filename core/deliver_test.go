package core_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

// attempts sets how often and how soon the first destination is tried. With
// full jitter the waits lie between zero and these bounds.
func attempts(n int, initial, limit time.Duration) func(*core.Config) {
	return func(c *core.Config) {
		r := &c.Destinations[0].Retry
		r.MaxAttempts, r.Initial, r.Max = n, initial, limit
	}
}

// fails answers with a status until so many sends have been made.
func fails(status, times int) func(string, *core.Batch) core.Response {
	return func(string, *core.Batch) core.Response {
		if times--; times >= 0 {
			return core.Response{Status: status}
		}
		return core.Response{Status: 200}
	}
}

func TestRetryKeepsTheBatch(t *testing.T) {
	run(t, config(), func(r *rig) {
		r.answer = fails(503, 2)
		r.post(numbered("k", 0, 3)...)
		r.at(time.Hour)
		sends := r.sends()
		require.Len(t, sends, 3)
		for i, b := range sends {
			require.Equal(t, sends[0].ID, b.ID)
			require.Equal(t, sends[0].Items, b.Items)
			require.Equal(t, sends[0].Reason, b.Reason)
			require.Equal(t, i+1, b.Attempt)
		}
		require.Empty(t, r.deadLetters())
	})
}

func TestMaxAttemptsCountsEverySend(t *testing.T) {
	run(t, config(attempts(3, s, 15*time.Minute)), func(r *rig) {
		r.answer = fails(500, 1000)
		r.post(numbered("k", 0, 2)...)
		r.at(24 * time.Hour)
		require.Len(t, r.sends(), 3)
		letters := r.deadLetters()
		require.Len(t, letters, 2)
		first := r.sends()[0]
		for i, l := range letters {
			require.Equal(t, fmt.Sprintf("%s/%d", first.ID, i+1), l.ID)
			require.Equal(t, core.DeadExhausted, l.Reason)
			require.Equal(t, 500, l.Status)
			require.Equal(t, 3, l.Attempts)
			require.Equal(t, core.At(r.begin.Add(first.at)), l.FirstErrorAt)
			require.Equal(t, core.At(r.begin.Add(r.sends()[2].at)), l.LastErrorAt)
			require.Equal(t, first.Items[i].Body, l.Item.Body)
		}
	})
}

func TestPermanentFailureIsTriedOnce(t *testing.T) {
	run(t, config(), func(r *rig) {
		r.answer = func(string, *core.Batch) core.Response {
			return core.Response{Status: 400, Answer: "no such customer"}
		}
		r.post(numbered("k", 0, 3)...)
		r.at(24 * time.Hour)
		require.Len(t, r.sends(), 1)
		letters := r.deadLetters()
		require.Len(t, letters, 3)
		require.Equal(t, core.DeadPermanent, letters[0].Reason)
		require.Equal(t, 400, letters[0].Status)
		require.Equal(t, "no such customer", letters[0].Answer)
		require.Equal(t, "status 400", letters[0].LastError)
	})
}

func TestRetryAfter(t *testing.T) {
	for _, tc := range []struct {
		name  string
		asked time.Duration
		want  time.Duration
	}{
		{"is waited for", 3 * s, 3 * s},
		{"is capped", 365 * 24 * time.Hour, 15 * time.Minute},
	} {
		t.Run(tc.name, func(t *testing.T) {
			run(t, config(batch(1, 5*s, 15*s)), func(r *rig) {
				first := true
				r.answer = func(string, *core.Batch) core.Response {
					if first {
						first = false
						return core.Response{Status: 429, RetryAfter: tc.asked}
					}
					return core.Response{Status: 200}
				}
				r.put("k")
				r.at(time.Hour)
				require.Len(t, r.sends(), 2)
				require.Equal(t, tc.want, r.sends()[1].at)
			})
		})
	}
}

// Three batches of an ordered group, of which the first fails twice.
func TestOrderedGroupWaitsForItsRetry(t *testing.T) {
	run(t, config(batch(2, 5*s, 15*s), ordered), func(r *rig) {
		r.answer = func(_ string, b *core.Batch) core.Response {
			if b.Group == "k" && b.Items[0].Seq == 1 && b.Attempt < 3 {
				return core.Response{Status: 503, RetryAfter: 10 * s}
			}
			return core.Response{Status: 200}
		}
		r.post(numbered("k", 0, 6)...)
		r.at(1 * s)
		r.post(numbered("other", 0, 2)...)
		r.at(time.Hour)
		require.Equal(t, "0.000 k 2 items #1\n1.000 other 2 items #1\n10.000 k 2 items #2\n20.000 k 2 items #3\n"+
			"20.000 k 2 items #1\n20.000 k 2 items #1", r.summary())
	})
}

// Without ordering a batch that waits for its retry does not hold up the next.
func TestUnorderedGroupGoesOn(t *testing.T) {
	run(t, config(batch(2, 5*s, 15*s)), func(r *rig) {
		r.answer = func(_ string, b *core.Batch) core.Response {
			if b.Items[0].Seq == 1 && b.Attempt < 2 {
				return core.Response{Status: 503, RetryAfter: 10 * s}
			}
			return core.Response{Status: 200}
		}
		r.post(numbered("k", 0, 4)...)
		r.at(time.Hour)
		require.Equal(t, "0.000 k 2 items #1\n0.000 k 2 items #1\n10.000 k 2 items #2", r.summary())
	})
}

func TestConcurrencyOfAGroup(t *testing.T) {
	for _, tc := range []struct {
		name        string
		concurrency int
		ordered     bool
		want        int
	}{
		{"one by default", 1, false, 1},
		{"three", 3, false, 3},
		{"at most what a record holds", 8, false, 8},
		{"one when ordered", 8, true, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := config(batch(2, 5*s, 15*s))
			c.Buffers[0].Concurrency, c.Buffers[0].Ordered = tc.concurrency, tc.ordered
			run(t, c, func(r *rig) {
				r.sendsTake(1 * s)
				r.post(numbered("k", 0, 40)...)
				r.at(time.Minute)
				require.Len(t, delivered(r), 40)
				require.Equal(t, tc.want, r.most())
			})
		})
	}
}

func TestPartialSuccess(t *testing.T) {
	failing := func(positions ...int) func(string, *core.Batch) core.Response {
		return func(_ string, b *core.Batch) core.Response {
			r := core.Response{Status: 200}
			if b.Attempt == 1 {
				for _, p := range positions {
					r.Failed = r.Failed.With(p)
				}
			}
			return r
		}
	}
	t.Run("resends the failed ones as a batch of their own", func(t *testing.T) {
		run(t, config(batch(5, 5*s, 15*s)), func(r *rig) {
			r.answer = failing(1, 3)
			r.post(numbered("k", 0, 5)...)
			r.at(time.Hour)
			sends := r.sends()
			require.Len(t, sends, 2)
			require.Equal(t, sends[0].ID+".2", sends[1].ID)
			require.Equal(t, 2, sends[1].Attempt)
			require.Equal(t, []string{`{"k":"k","n":1}`, `{"k":"k","n":3}`}, bodies(sends[1].Items))
		})
	})
	t.Run("of an ordered group resends from the first failed one on", func(t *testing.T) {
		run(t, config(batch(5, 5*s, 15*s), ordered), func(r *rig) {
			r.answer = failing(1)
			r.post(numbered("k", 0, 5)...)
			r.at(time.Hour)
			require.Len(t, r.sends(), 2)
			require.Equal(t, numbered("k", 1, 4), bodies(r.sends()[1].Items))
		})
	})
	t.Run("of none is a failure of the batch as it is", func(t *testing.T) {
		run(t, config(batch(2, 5*s, 15*s)), func(r *rig) {
			r.answer = failing(0, 1)
			r.post(numbered("k", 0, 2)...)
			r.at(time.Hour)
			require.Len(t, r.sends(), 2)
			require.Equal(t, r.sends()[0].ID, r.sends()[1].ID)
		})
	})
	t.Run("at the last attempt buries the failed ones alone", func(t *testing.T) {
		run(t, config(batch(3, 5*s, 15*s), attempts(1, s, s)), func(r *rig) {
			r.answer = failing(2)
			r.post(numbered("k", 0, 3)...)
			r.at(time.Hour)
			require.Len(t, r.sends(), 1)
			require.Len(t, r.deadLetters(), 1)
			require.Equal(t, `{"k":"k","n":2}`, string(r.deadLetters()[0].Item.Body))
		})
	})
}

// A dead endpoint with 1,000 groups costs no goroutine a group, and the
// groups of another destination nothing at all.
func TestEndpointDownForAnHour(t *testing.T) {
	c := config(batch(50, 5*s, 15*s), attempts(20, s, 15*time.Minute))
	out := c.Destinations[0]
	out.Name = "healthy"
	c.Destinations = append(c.Destinations, out)
	c.Sources = append(c.Sources, core.Source{Name: "in2", Type: core.TypeHTTP, MaxEventBytes: core.MiB})
	b := c.Buffers[0]
	b.Name, b.From, b.To = "b2", []string{"in2"}, "healthy"
	c.Buffers = append(c.Buffers, b)
	others := runtime.NumGoroutine() // of tests that wait for their turn
	runAlone(t, c, func(r *rig) {
		const groups = 1000
		r.answer = func(d string, _ *core.Batch) core.Response {
			if d == "out" && time.Since(r.begin) < time.Hour {
				return core.Response{Err: core.Errorf(core.Unavailable, "connection refused")}
			}
			return core.Response{Status: 200}
		}
		for i := range groups {
			r.put(fmt.Sprint("k", i))
		}
		r.at(10 * time.Minute)
		for at := 11 * time.Minute; at < time.Hour; at += time.Minute {
			r.at(at)
			_, err := r.ingester.Ingest(context.Background(), "in2", []core.Event{{Body: []byte(`{"k":"k"}`)}})
			require.NoError(t, err)
			require.Less(t, runtime.NumGoroutine()-others, groups/10, "goroutines; they wait on the record")
		}
		r.at(24 * time.Hour)
		sends, late := map[string]int{}, 0
		for _, b := range r.sends() {
			if b.destination == "out" {
				sends[b.Group]++
			} else if b.at%time.Minute != 5*s {
				late++
			}
		}
		require.Zero(t, late, "healthy groups that left late")
		require.Len(t, sends, groups)
		letters := r.deadLetters()
		require.Less(t, len(letters), groups/2, "most outlive an hour")
		for _, l := range letters {
			require.Equal(t, 20, l.Attempts)
			require.Equal(t, 20, sends[l.Group], "given up before its attempts were used up")
		}
		stats, err := r.store.Stats(context.Background())
		require.NoError(t, err)
		require.Empty(t, stats, "everything was delivered, or a dead letter")
	})
}

// More groups are due than a slow destination can take: sends run in parallel
// up to its limit, and nothing is sent twice.
func TestManyKeysOneSlowDestination(t *testing.T) {
	run(t, config(batch(50, 1*s, 15*s)), func(r *rig) {
		r.sendsTake(1 * s)
		for i := range 3000 {
			r.put(fmt.Sprint("k", i))
		}
		r.at(time.Hour)
		require.Len(t, r.sends(), 3000)
		require.Equal(t, 16, r.most())
		last := r.sends()[2999]
		require.Equal(t, 1*s+(3000/16)*s, last.at)
	})
}

func TestBuffersOfOneDestinationTakeTurns(t *testing.T) {
	c := config(batch(1, 5*s, 15*s))
	b := c.Buffers[0]
	b.Name, b.From = "b2", []string{"in2"}
	c.Buffers = append(c.Buffers, b)
	c.Sources = append(c.Sources, core.Source{Name: "in2", Type: core.TypeHTTP, MaxEventBytes: core.MiB})
	run(t, c, func(r *rig) {
		r.sendsTake(1 * s)
		for i := range 1000 {
			r.put(fmt.Sprint("k", i))
		}
		r.at(ms(1500))
		_, err := r.ingester.Ingest(context.Background(), "in2", []core.Event{{Body: []byte(`{}`)}})
		require.NoError(t, err)
		r.at(time.Hour)
		for _, send := range r.sends() {
			if send.Buffer == "b2" {
				require.Equal(t, 2*s, send.at)
			}
		}
	})
}

func TestDeadLetterQueueDown(t *testing.T) {
	run(t, config(batch(1, 5*s, 15*s)), func(r *rig) {
		r.answer = fails(400, 1000)
		var down atomic.Bool
		down.Store(true)
		r.failPut = func() error {
			if down.Load() {
				return core.Errorf(core.Unavailable, "the dead-letter queue is down")
			}
			return nil
		}
		r.put("k")
		r.at(10 * s)
		require.Empty(t, r.deadLetters())
		down.Store(false)
		r.at(24 * time.Hour)
		require.Len(t, r.deadLetters(), 1, "never dropped")
	})
}

func TestFullGroupAndBuffer(t *testing.T) {
	c := config(batch(50, 5*s, 15*s))
	c.Buffers[0].Overflow.MaxItems, c.Buffers[0].Size = 3, 5
	run(t, c, func(r *rig) {
		r.post(numbered("k1", 0, 3)...)
		_, err := r.tryPost(numbered("k1", 3, 1)...)
		require.Equal(t, core.Full, core.CodeOf(err))
		require.Positive(t, core.RetryAfterOf(err))
		_, err = r.tryPost(numbered("k2", 0, 4)...)
		require.Equal(t, core.TooLarge, core.CodeOf(err))
		_, err = r.tryPost(numbered("k2", 0, 3)...)
		require.Equal(t, core.Full, core.CodeOf(err), "the buffer's size")
		r.post(numbered("k2", 0, 2)...)
		r.at(time.Minute)
		require.Len(t, delivered(r), 5)
		r.post(numbered("k1", 3, 3)...)
	})
}

func TestUnknownFailuresAreRetried(t *testing.T) {
	run(t, config(batch(1, 5*s, 15*s)), func(r *rig) {
		first := true
		r.answer = func(string, *core.Batch) core.Response {
			if first {
				first = false
				return core.Response{Err: errors.New("something nobody has seen before")}
			}
			return core.Response{Status: 200}
		}
		r.put("k")
		r.at(time.Hour)
		require.Len(t, r.sends(), 2)
	})
}

// TestRefusedItems: what a destination will never take becomes dead letters at
// once, and holds nothing else up.
func TestRefusedItems(t *testing.T) {
	t.Parallel()
	bits := func(positions ...int) (b core.Bits) {
		for _, p := range positions {
			b = b.With(p)
		}
		return b
	}
	for _, tc := range []struct {
		name            string
		failed, refused core.Bits
		attempts        int
		ordered         bool
		again           []int // what is sent a second time
		letters         []string
	}{
		{"one, the rest taken", bits(1), bits(1), 20, false, nil, []string{"1 permanent"}},
		{"one, and one to be sent again", bits(1, 3), bits(1), 20, false, []int{3}, []string{"1 permanent"}},
		{"one, and all others to be sent again", bits(0, 1, 2, 3, 4), bits(2), 20, false, []int{0, 1, 3, 4}, []string{"2 permanent"}},
		{"all", bits(0, 1, 2, 3, 4), bits(0, 1, 2, 3, 4), 20, false, nil,
			[]string{"0 permanent", "1 permanent", "2 permanent", "3 permanent", "4 permanent"}},
		{"one that did not fail", bits(1), bits(2), 20, false, []int{1}, nil},
		{"one at the last attempt", bits(1, 3), bits(3), 1, false, nil, []string{"3 permanent", "1 exhausted"}},
		{"the first of an ordered group", bits(0, 1, 2, 3, 4), bits(0), 20, true, []int{1, 2, 3, 4}, []string{"0 permanent"}},
		{"one in an ordered group behind one that is sent again", bits(1, 3), bits(3), 20, true, []int{1, 2, 3, 4}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			m := newManual(t, config(batch(5, 5*s, 15*s), attempts(tc.attempts, s, s), func(c *core.Config) { c.Buffers[0].Ordered = tc.ordered }))
			m.answer = func(_ context.Context, b *core.Batch) core.Response {
				if b.Attempt == 1 {
					return core.Response{Status: 200, Failed: tc.failed, Refused: tc.refused}
				}
				return core.Response{Status: 200}
			}
			m.put("k", "k", "k", "k", "k")
			m.elapse(time.Hour)
			first := m.sent[0].Items[0].Seq
			var again []int
			for _, b := range m.sent[1:] {
				for i := range b.Items {
					again = append(again, int(b.Items[i].Seq-first))
				}
			}
			require.Equal(t, tc.again, again)
			found, _, err := m.memory.DeadLetters().List(context.Background(), core.DeadLetterFilter{}, "", 10)
			require.NoError(t, err)
			var letters []string
			for i := range found {
				letters = append(letters, fmt.Sprintf("%d %s", found[i].Item.Seq-first, found[i].Reason))
			}
			require.Equal(t, tc.letters, letters)
			require.Equal(t, len(letters), m.told)
			require.Empty(t, m.group("k"))
		})
	}
}
