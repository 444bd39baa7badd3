package core_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

// copied adds a shadow of the buffer, with a destination of its own.
func copied(change ...func(*core.Buffer)) func(*core.Config) {
	return func(c *core.Config) {
		with("copies")(c)
		beside("copy", append([]func(*core.Buffer){func(b *core.Buffer) {
			b.To, b.Shadow, b.Sample, b.Size = "copies", true, 1, core.ShadowSize
		}}, change...)...)(c)
	}
}

// of is the ids of what a buffer has sent.
func (r *rig) of(buffer string) []string {
	var ids []string
	for _, s := range r.sends() {
		for i := range s.Items {
			if s.Buffer == buffer {
				ids = append(ids, s.Items[i].ID)
			}
		}
	}
	return ids
}

func TestAShadowGetsACopy(t *testing.T) {
	run(t, config(at1, copied()), func(r *rig) {
		receipt := r.post(`{"k":"a"}`, `{"k":"b"}`)
		require.Equal(t, 2, receipt.Accepted)
		r.at(time.Second)
		require.ElementsMatch(t, receipt.IDs, r.of("b"))
		require.ElementsMatch(t, receipt.IDs, r.of("copy"))
		for _, s := range r.sends() {
			require.Equal(t, s.Buffer == "copy", s.Shadow, "the copy is marked, and nothing else")
		}
		require.Equal(t, 2, r.told.of("shadow delivered"))
		require.Equal(t, 2, r.told.of("accepted"), "counted once")
	})
}

func TestASampleIsChosenByID(t *testing.T) {
	const n = 10_000
	for _, share := range []float64{0.05, 0.5, 1} {
		catalog, err := core.NewCatalog(config(copied(func(b *core.Buffer) { b.Sample = share })), nil)
		require.NoError(t, err)
		s, again := catalog.Buffer("copy"), catalog.Buffer("copy")
		got, tens := 0, map[int]bool{}
		for i := range n {
			id := fmt.Sprintf("order-%08d", i)
			require.Equal(t, s.Sampled(id), again.Sampled(id))
			if s.Sampled(id) {
				got++
				tens[i/10] = true
			}
		}
		require.InDelta(t, share*n, got, 150, "of %g", share)
		if share == 0.05 {
			require.Greater(t, len(tens), 350, "neighbours are not chosen together")
		}
		require.True(t, catalog.Buffer("b").Sampled("any"))
	}
}

func TestARetryAndARequestSentAgainGetTheSameSample(t *testing.T) {
	run(t, config(batch(50, time.Second, time.Second), copied(func(b *core.Buffer) { b.Sample = 0.5 })), func(r *rig) {
		events := make([]core.Event, 20)
		for range 2 {
			for i := range events {
				events[i] = core.Event{ID: fmt.Sprint("e", i), Body: []byte(`{"k":"a"}`)}
			}
			_, err := r.ingester.Ingest(context.Background(), "in", events)
			require.NoError(t, err)
		}
		r.at(time.Minute)
		times := map[string]int{}
		for _, id := range r.of("copy") {
			times[id]++
		}
		require.NotEmpty(t, times)
		require.Less(t, len(times), 20)
		for id, n := range times {
			require.Equal(t, 2, n, "%s", id)
		}
	})
}

func TestAShadowsFailuresChangeNothing(t *testing.T) {
	t.Parallel()
	for name, status := range map[string]int{"refused": 400, "exhausted": 500} {
		t.Run(name, func(t *testing.T) {
			run(t, config(at1, copied(), quick), func(r *rig) {
				for i := range r.catalog.Config().Destinations {
					r.catalog.Config().Destinations[i].Retry.MaxAttempts = 3
				}
				r.answers(map[string]int{"copies": status})
				r.put("a")
				r.at(time.Minute)
				require.Len(t, r.of("b"), 1)
				require.Len(t, r.of("copy"), map[int]int{400: 1, 500: 3}[status], "it retries as its settings say")
				require.Equal(t, 1, r.told.of("shadow failed"))
				require.Zero(t, r.told.of("shadow delivered"))
				require.Empty(t, r.deadLetters())
				require.Empty(t, r.left())
			})
		})
	}
}

func TestAShadowsPartialFailures(t *testing.T) {
	run(t, config(batch(3, time.Second, time.Second), copied()), func(r *rig) {
		r.replies(func(to string, b *core.Batch) core.Response {
			if to == "copies" && len(b.Items) == 3 {
				return core.Response{Status: 200, Failed: core.Bits(nil).With(1).With(2), Refused: core.Bits(nil).With(1)}
			}
			return core.Response{Status: 200}
		})
		three(r)
		r.at(time.Minute)
		require.Equal(t, 1, r.told.of("shadow failed"))
		require.Empty(t, r.deadLetters())
		require.Empty(t, r.left())
		require.Equal(t, 2, r.told.of("shadow delivered"))
	})
}

func TestAFullShadowDropsItsCopies(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*core.Buffer){
		"size": func(*core.Buffer) {}, "group": func(b *core.Buffer) { b.Overflow.MaxItems = 1 },
		"doubles": func(b *core.Buffer) { b.Dedupe = time.Hour },
	} {
		t.Run(name, func(t *testing.T) {
			run(t, config(at1, copied(change), func(c *core.Config) {
				c.Destinations[1].Retry.Initial, c.Destinations[1].Retry.Max = time.Hour, time.Hour
			}), func(r *rig) {
				r.answers(map[string]int{"copies": 500})
				for i := range 300 {
					require.Equal(t, 1, r.post(fmt.Sprintf(`{"k":"%d"}`, i)).Accepted)
				}
				r.at(time.Second)
				require.Len(t, r.of("b"), 300, "nothing waits")
				require.Equal(t, 300-int(core.ShadowSize), r.told.of("shadow dropped"))
				r.answers(nil)
				var many []string
				for i := range 1000 { // more than a shadow ever holds
					many = append(many, fmt.Sprintf(`{"k":"many","i":%d}`, i))
				}
				require.Equal(t, 1000, r.post(many...).Accepted)
				r.at(2 * time.Second)
				require.Len(t, r.of("b"), 1300)
			})
		})
	}
}

// A request of more copies than there is room for fills the shadow.
func TestAShadowTakesWhatFits(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		dedupe time.Duration
		twice  bool // is every event in the request
		groups int
	}{"a group": {0, false, 1}, "groups": {0, false, 7}, "doubles": {time.Hour, true, 1}} {
		t.Run(name, func(t *testing.T) {
			run(t, config(at1, copied(func(b *core.Buffer) { b.Dedupe = tt.dedupe })), func(r *rig) {
				r.answers(map[string]int{"copies": 503})
				var events []core.Event
				for i := range core.ShadowSize + 1 {
					e := core.Event{ID: fmt.Sprint(i), Body: fmt.Appendf(nil, `{"k":"%d"}`, int(i)%tt.groups)}
					events = append(events, e)
					if tt.twice {
						events = append(events, e)
					}
				}
				_, err := r.ingester.Ingest(context.Background(), "in", events)
				require.NoError(t, err)
				require.Equal(t, 1, r.told.of("shadow dropped"))
				r.answers(nil)
				r.at(time.Hour)
				require.Equal(t, int(core.ShadowSize), r.told.of("shadow delivered"))
				require.Len(t, r.of("b"), len(events))
			})
		})
	}
}

func TestAShadowIsNoPartOfTheAnswer(t *testing.T) {
	run(t, config(at1, copied(), buf(func(b *core.Buffer) { b.Filter = "has yes"; b.Dedupe = time.Hour })), func(r *rig) {
		send := func(id, body string) core.Receipt {
			receipt, err := r.ingester.Ingest(context.Background(), "in", []core.Event{{ID: id, Body: []byte(body)}})
			require.NoError(t, err)
			return receipt
		}
		require.Equal(t, 1, send("1", `{"k":"yes"}`).Accepted)
		require.Equal(t, 1, send("1", `{"k":"yes"}`).Duplicates, "though its copy is stored again")
		require.Equal(t, 1, send("2", `{"k":"no"}`).Filtered, "though its copy is stored")
		r.at(time.Second)
		require.Len(t, r.of("copy"), 3)
	})
}

func TestAShadowsProgramsRefuseNothing(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*core.Buffer){
		"filter":    func(b *core.Buffer) { b.Filter = "fail bad" },
		"transform": func(b *core.Buffer) { b.Transform = "fail bad" },
		"key":       func(b *core.Buffer) { b.GroupBy = "{{ .json.deep.bad }}" },
	} {
		t.Run(name, func(t *testing.T) {
			run(t, config(at1, copied(change)), func(r *rig) {
				require.Equal(t, 2, r.post(`{"k":"bad","deep":7}`, `{"k":"good"}`).Accepted)
				r.at(time.Second)
				require.Len(t, r.of("b"), 2)
				if name == "key" {
					return // a missing field is no failure
				}
				require.Len(t, r.of("copy"), 1)
				require.Equal(t, 1, r.told.of("shadow failed"))
			})
		})
	}
}

func TestAShadowsDestinationFailsOnItems(t *testing.T) {
	run(t, config(batch(3, time.Second, time.Second), copied(), func(c *core.Config) { c.Destinations[1].Transform = `fail "i":2` }), func(r *rig) {
		three(r)
		r.at(time.Minute)
		require.Equal(t, 1, r.told.of("shadow failed"))
		require.Equal(t, 2, r.told.of("shadow delivered"))
		require.Empty(t, r.deadLetters())
	})
}

func TestAShadowTakesFallbacksAndBreakers(t *testing.T) {
	run(t, config(at1, copied(), with("third"), func(c *core.Config) {
		c.Destinations[1].Fallbacks = []string{"third"}
		c.Destinations[1].Breaker = &core.BreakerConfig{Failures: 1, Cooldown: time.Minute}
		c.Destinations[1].Retry.MaxAttempts = 1
	}), func(r *rig) {
		r.answers(map[string]int{"copies": 500})
		r.put("a")
		r.at(time.Second)
		r.put("b")
		r.at(2 * time.Second)
		require.Len(t, r.of("b"), 2)
		require.Equal(t, 1, r.told.of("shadow delivered"), "by the fallback; the other waits")
	})
}

// However slow a shadow's programs are, its copies hold up a request for a
// moment, and no other buffer notices.
func TestSlowCopiesKeepNobodyWaiting(t *testing.T) {
	run(t, config(at1, copied(func(b *core.Buffer) { b.Transform = "nap 30ms" })), func(r *rig) {
		var many []string
		for i := range 1000 {
			many = append(many, fmt.Sprintf(`{"k":"%d"}`, i))
		}
		begin := time.Now()
		require.Equal(t, 1000, r.post(many...).Accepted)
		require.Equal(t, 120*time.Millisecond, time.Since(begin))
		r.at(time.Second)
		require.Len(t, r.of("b"), 1000)
		require.Len(t, r.of("copy"), 4)
		require.Equal(t, 996, r.told.of("shadow dropped"))
		require.Zero(t, r.told.of("shadow failed"))
	})
}
