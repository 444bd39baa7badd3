package core_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

// quick makes retries follow at once, or nearly so.
func quick(c *core.Config) {
	for i := range c.Destinations {
		c.Destinations[i].Retry.Initial = time.Millisecond
	}
}

func TestAFallbackFollowsAPermanentAnswer(t *testing.T) {
	run(t, config(at1, fallback(3)), func(r *rig) {
		r.answers(map[string]int{"out": 400})
		r.put("a")
		r.at(time.Second)
		require.Equal(t, lines(`0.000 out #1 {"k":"a"}`, `0.000 second #1 {"k":"a"}`), r.trail())
		sent := r.sends()
		require.Equal(t, sent[0].ID, sent[1].ID, "it is the same batch")
		require.Empty(t, r.deadLetters())
		require.Empty(t, r.left())
	})
}

func TestAttemptsBeginAnewAtAFallback(t *testing.T) {
	run(t, config(at1, fallback(2), quick, with("third", func(d *core.Destination) { d.Retry.MaxAttempts = 1 }), out(func(d *core.Destination) {
		d.Fallbacks = []string{"second", "third"}
	})), func(r *rig) {
		r.answers(map[string]int{"out": 500, "second": 500, "third": 500})
		r.put("a")
		r.at(time.Second)
		var to []string
		for _, s := range r.sends() {
			to = append(to, s.destination)
		}
		require.Equal(t, []string{"out", "out", "second", "second", "third"}, to)
		require.Equal(t, []int{1, 2, 1, 2, 1}, numbers(r))
		letters := r.deadLetters()
		require.Len(t, letters, 1, "the last one's failure is that of all")
		require.Equal(t, "out", letters[0].Destination, "a replay begins where it began")
		require.Equal(t, core.DeadExhausted, letters[0].Reason)
		require.LessOrEqual(t, letters[0].FirstErrorAt, letters[0].LastErrorAt)
		require.Empty(t, r.left())
	})
}

func numbers(r *rig) []int {
	var n []int
	for _, s := range r.sends() {
		n = append(n, s.Attempt)
	}
	return n
}

func TestTheFirstErrorOfADeadLetterIsTheFirstDestinations(t *testing.T) {
	run(t, config(at1, fallback(1)), func(r *rig) {
		r.sendsTake(time.Second)
		r.answers(map[string]int{"out": 400, "second": 400})
		r.put("a")
		r.at(5 * time.Second)
		letter := r.deadLetters()[0]
		require.Equal(t, time.Second, letter.LastErrorAt.Sub(letter.FirstErrorAt))
	})
}

func TestAFallbackHasALeaseOfItsOwn(t *testing.T) {
	run(t, config(at1, fallback(1), out(func(d *core.Destination) { d.Timeout = 15 * time.Second })), func(r *rig) {
		r.sendsTake(14 * time.Second)
		r.answers(map[string]int{"out": 500})
		r.put("a")
		r.at(20 * time.Second)
		g := r.only("b")
		require.Len(t, g.Claims, 1)
		require.Equal(t, core.At(r.begin.Add(44*time.Second)), g.Claims[0].Due, "30 s from the second send on")
		require.Equal(t, 1, g.Claims[0].Hop)
		r.at(time.Minute)
		require.Len(t, r.sends(), 2)
		require.Empty(t, r.left())
	})
}

// only is the one group that a buffer has.
func (r *rig) only(buffer string) core.Group {
	groups, err := r.store.Groups(context.Background(), buffer, nil, 10)
	require.NoError(r.t, err)
	require.Len(r.t, groups, 1)
	return groups[0].Group
}

func TestAPartialSuccessGoesOnToAFallback(t *testing.T) {
	t.Parallel()
	for name, refused := range map[string]bool{"refused": true, "exhausted": false} {
		t.Run(name, func(t *testing.T) {
			run(t, config(batch(3, 5*time.Second, 15*time.Second), fallback(1)), func(r *rig) {
				r.replies(func(to string, _ *core.Batch) core.Response {
					if to != "out" {
						return core.Response{Status: 200}
					}
					a := core.Response{Status: 200, Failed: core.Bits(nil).With(0).With(2)}
					if refused {
						a.Refused = core.Bits(nil).With(2)
					}
					return a
				})
				three(r)
				r.at(time.Second)
				require.Equal(t, lines("0.000 out #1 "+item1+" "+item2+" "+item3, "0.000 second #1 "+item1+" "+item3), r.trail())
				require.NotEqual(t, r.sends()[0].ID, r.sends()[1].ID, "another batch has another id")
				require.Empty(t, r.deadLetters())
				require.Empty(t, r.left())
			})
		})
	}
}

// What may yet be taken stays with the destination while it has attempts, whatever
// becomes of its neighbours.
func TestARefusalLeadsNoOtherToAFallback(t *testing.T) {
	t.Parallel()
	one, two, all := core.Bits{1}, core.Bits{3}, core.Bits{7} // so many of the first
	for name, tt := range map[string]struct {
		failed []core.Bits // at the destination, one attempt after the other
		sent   []int       // so many of the first each time, the last time to the fallback
		same   bool        // the second send is of the same batch
	}{
		"until it is taken":                  {[]core.Bits{two, two, one}, []int{3, 2, 2, 1}, false},
		"until the attempts are over":        {[]core.Bits{two, two, two, two}, []int{3, 2, 2, 2, 2}, false},
		"of a batch of which none was taken": {[]core.Bits{all, one}, []int{3, 3, 1}, true},
	} {
		for order, change := range map[string]func(*core.Config){"plain": func(*core.Config) {}, "ordered": ordered} {
			t.Run(name+", "+order, func(t *testing.T) {
				run(t, config(batch(3, 5*time.Second, 15*time.Second), fallback(4), quick, change), func(r *rig) {
					r.replies(func(to string, b *core.Batch) core.Response {
						if to == "second" {
							return core.Response{Status: 200}
						}
						return core.Response{Status: 200, Failed: tt.failed[b.Attempt-1], Refused: one}
					})
					three(r)
					r.at(time.Second)
					var got, want []string
					for _, s := range r.sends() {
						got = append(got, fmt.Sprintf("%s #%d %s", s.destination, s.Attempt, strings.Join(bodies(s.Items), " ")))
					}
					for i, n := range tt.sent {
						if order == "ordered" {
							n = 3 // what stands behind the first goes with it
						}
						what := strings.Join([]string{item1, item2, item3}[:n], " ")
						want = append(want, fmt.Sprintf("out #%d %s", i+1, what))
						if i == len(tt.sent)-1 {
							want[i] = "second #1 " + what
						}
					}
					require.Equal(t, want, got)
					require.Equal(t, tt.same, r.sends()[0].ID == r.sends()[1].ID)
					require.Empty(t, r.deadLetters())
					require.Empty(t, r.left())
				})
			})
		}
	}
}

func TestAPartialSuccessOfTheLastFallback(t *testing.T) {
	run(t, config(batch(3, 5*time.Second, 15*time.Second), fallback(1)), func(r *rig) {
		r.replies(func(to string, _ *core.Batch) core.Response {
			if to == "out" {
				return core.Response{Status: 503}
			}
			return core.Response{Status: 200, Failed: core.Bits(nil).With(1)}
		})
		three(r)
		r.at(time.Second)
		require.Equal(t, []string{item2}, lettersOf(r))
		require.Empty(t, r.left())
	})
}

func TestAnOrderedGroupWaitsForItsFallback(t *testing.T) {
	run(t, config(at1, ordered, fallback(2), out(func(d *core.Destination) { d.Retry.Initial = 10 * time.Second })), func(r *rig) {
		r.replies(func(to string, b *core.Batch) core.Response {
			if first := string(b.Items[0].Body) == item1; first && (to == "out" || b.Attempt == 1) {
				return core.Response{Status: 500}
			}
			return core.Response{Status: 200}
		})
		three(r)
		r.post(`{"k":"other"}`)
		r.at(time.Minute)
		var of []string
		for _, s := range r.sends() {
			if s.Group == "a" {
				of = append(of, s.destination+" "+string(s.Items[0].Body))
			} else {
				require.Zero(t, s.at, "other groups do not wait")
			}
		}
		require.Equal(t, []string{"out " + item1, "out " + item1, "second " + item1, "second " + item1, "out " + item2, "out " + item3}, of)
	})
}

func TestACrashBetweenHops(t *testing.T) {
	c := config(at1, fallback(1))
	run(t, c, func(r *rig) {
		r.replies(func(to string, _ *core.Batch) core.Response {
			if to == "out" {
				return core.Response{Status: 500}
			}
			<-time.After(time.Hour) // the process ends meanwhile
			return core.Response{Status: 200}
		})
		r.put("a")
		r.at(time.Second)
		r.answers(map[string]int{"out": 500})
		r.broken.Store(true)
		r.crash(c)
		r.at(2 * time.Second)
		sent := r.sends()
		require.Len(t, sent, 3)
		require.Equal(t, "second", sent[2].destination, "it goes on where it was")
		require.Equal(t, 1, sent[2].Attempt)
		require.Equal(t, sent[0].ID, sent[2].ID)
		require.Empty(t, r.left())
		r.at(2 * time.Hour)
	})
}

func TestAFoldedWindowGoesOnToAFallback(t *testing.T) {
	c := config(fallback(1), buf(func(b *core.Buffer) {
		b.Window = &core.WindowConfig{Every: time.Minute, MaxAhead: time.Hour}
		b.Fold = []core.FoldColumn{{Name: "n", Expr: "count"}}
		b.Batch.MaxItems = 2
	}))
	run(t, c, func(r *rig) {
		r.replies(func(to string, b *core.Batch) core.Response {
			if to == "out" && b.Items[0].Seq == 1 {
				return core.Response{Status: 400}
			}
			return core.Response{Status: 200}
		})
		for _, k := range []string{"a", "b", "c", "a"} {
			r.put(k)
		}
		r.at(2 * time.Minute)
		sent := r.sends()
		require.Len(t, sent, 3)
		require.Equal(t, []string{"out", "second", "out"}, []string{sent[0].destination, sent[1].destination, sent[2].destination},
			"the next rows begin at the destination again")
		require.Equal(t, sent[0].ID, sent[1].ID)
		require.Equal(t, []int{2, 2, 1}, []int{len(sent[0].Items), len(sent[1].Items), len(sent[2].Items)})
		require.Empty(t, r.left())
	})
}

func TestAFallbackThatIsNoMore(t *testing.T) {
	c := config(at1, fallback(2), out(func(d *core.Destination) { d.Retry.MaxAttempts = 1; d.Retry.Initial = time.Minute }))
	c.Destinations[1].Retry.Initial = time.Minute
	run(t, c, func(r *rig) {
		r.answers(map[string]int{"out": 500, "second": 500})
		r.put("a")
		r.at(10 * time.Millisecond)
		r.answers(nil)
		r.reconfigure(config(at1))
		r.at(5 * time.Minute)
		sent := r.sends()
		require.Equal(t, "out", sent[len(sent)-1].destination)
		require.Empty(t, r.left())
	})
}

func TestARetryMayWaitAsLongAsItsFallbackSays(t *testing.T) {
	c := config(at1, fallback(2), out(func(d *core.Destination) {
		d.Retry = core.RetryPolicy{MaxAttempts: 1, Initial: time.Second, Max: time.Second}
	}))
	c.Destinations[1].Retry.Max = time.Hour
	run(t, c, func(r *rig) {
		r.replies(func(to string, b *core.Batch) core.Response {
			if to == "second" && b.Attempt == 2 {
				return core.Response{Status: 200}
			}
			return core.Response{Status: 503, RetryAfter: 10 * time.Minute}
		})
		r.put("a")
		r.at(time.Hour)
		require.Equal(t, 10*time.Minute, r.sends()[2].at)
	})
}
