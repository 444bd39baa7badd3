package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

func TestFilters(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		filter string
		keeps  bool
	}{{"true", true}, {"set 0", true}, {`set ""`, true}, {"set {}", true}, {"has false", false}, {"null", false}, {"nothing", false}} {
		t.Run(tt.filter, func(t *testing.T) {
			run(t, config(at1, buf(func(b *core.Buffer) { b.Filter = tt.filter })), func(r *rig) {
				receipt := r.post(`{"k":"a"}`)
				r.at(time.Second)
				require.Equal(t, tt.keeps, len(r.sends()) == 1)
				require.Equal(t, tt.keeps, receipt.Accepted == 1)
				require.Equal(t, !tt.keeps, receipt.Filtered == 1)
				require.Equal(t, !tt.keeps, r.told.of("filtered") == 1)
				require.Len(t, receipt.IDs, 1)
			})
		})
	}
}

func TestATransformComesBeforeGroupsAndSizes(t *testing.T) {
	run(t, config(at1, buf(func(b *core.Buffer) {
		b.Filter, b.Transform, b.Overflow.MaxBytes = "has big", `set {"k":"small"}`, core.KiB
		b.Batch.MaxBytes = core.KiB
	})), func(r *rig) {
		body := `{"k":"big` + string(make([]byte, 2*core.KiB)) + `"}`
		e := []core.Event{{ContentType: "text/plain", Body: []byte(body)}}
		_, err := r.ingester.Ingest(context.Background(), "in", e)
		require.NoError(t, err, "the size is that of what is stored")
		require.Equal(t, body, string(e[0].Body), "the event itself stays as it is")
		r.at(time.Second)
		sent := r.sends()
		require.Len(t, sent, 1)
		require.Equal(t, "small", sent[0].Group)
		it := sent[0].Items[0]
		require.Equal(t, `{"k":"small"}`, string(it.Body))
		require.Equal(t, "application/json", it.ContentType)
		require.True(t, it.JSON)
	})
}

func TestATransformKeepsAJSONType(t *testing.T) {
	run(t, config(at1, buf(func(b *core.Buffer) { b.Transform = `set {"k":"x"}` })), func(r *rig) {
		_, err := r.ingester.Ingest(context.Background(), "in", []core.Event{{ContentType: "application/vnd.x+json", Body: []byte(`{}`)}})
		require.NoError(t, err)
		r.at(time.Second)
		require.Equal(t, "application/vnd.x+json", r.sends()[0].Items[0].ContentType)
	})
}

func TestAFailingProgramRefusesTheRequest(t *testing.T) {
	t.Parallel()
	for _, change := range []func(*core.Buffer){
		func(b *core.Buffer) { b.Filter = "fail bad" }, func(b *core.Buffer) { b.Transform = "fail bad" },
	} {
		t.Run("", func(t *testing.T) {
			run(t, config(at1, buf(change)), func(r *rig) {
				_, err := r.tryPost(`{"k":"a"}`, `{"k":"bad"}`, `{"k":"c"}`)
				require.Equal(t, core.Invalid, core.CodeOf(err))
				e, ok := err.(*core.EventError) //nolint:errorlint // it is returned as it is
				require.True(t, ok)
				require.Equal(t, 1, e.Index)
				require.Contains(t, err.Error(), "buffer b")
				require.Contains(t, err.Error(), "it has bad")
				r.at(time.Minute)
				require.Empty(t, r.sends(), "nothing of it is stored")
				require.Equal(t, 3, r.told.of("refused"))
			})
		})
	}
}

// A program that ran out of time says nothing about the event.
func TestASlowProgramAsksForAnotherTry(t *testing.T) {
	run(t, config(at1, buf(func(b *core.Buffer) { b.Filter = "slow bad" })), func(r *rig) {
		_, err := r.tryPost(`{"k":"a"}`, `{"k":"bad"}`)
		require.Equal(t, core.Unavailable, core.CodeOf(err))
		r.at(time.Minute)
		require.Empty(t, r.sends(), "nothing of it is stored")
	})
}

func TestUnroutedFilteredAndAccepted(t *testing.T) {
	c := config(at1, buf(func(b *core.Buffer) { b.Filter = "has x" }), beside("second", func(b *core.Buffer) { b.Filter = "has y" }),
		func(c *core.Config) {
			c.Sources = append(c.Sources, core.Source{Name: "nowhere", Type: core.TypeHTTP, MaxEventBytes: core.MiB})
		})
	run(t, c, func(r *rig) {
		receipt := r.post(`{"k":"x"}`, `{"k":"y"}`, `{"k":"xy"}`, `{"k":"z"}`)
		require.Equal(t, 3, receipt.Accepted)
		require.Equal(t, 1, receipt.Filtered)
		require.Zero(t, receipt.Unrouted)
		require.Len(t, receipt.IDs, 4)
		unrouted, err := r.ingester.Ingest(context.Background(), "nowhere", []core.Event{{Body: []byte("x")}})
		require.NoError(t, err)
		require.Equal(t, 1, unrouted.Unrouted)
		require.Zero(t, unrouted.Filtered)
		r.at(time.Second)
		got := map[string]int{}
		for _, s := range r.sends() {
			got[s.Buffer+" "+s.Group]++
		}
		require.Equal(t, map[string]int{"b x": 1, "b xy": 1, "second y": 1, "second xy": 1}, got)
	})
}

func TestABrokenProgramIsAFault(t *testing.T) {
	t.Parallel()
	c := config(out(func(d *core.Destination) { d.Filter, d.Transform = "nonsense", "true" }), buf(func(b *core.Buffer) { b.Transform = "worse" }))
	faults := c.Broken(toy)
	require.Len(t, faults, 2)
	require.Equal(t, "destinations.out.filter", faults[0].Path)
	require.Equal(t, "buffers.b.transform", faults[1].Path)
	_, err := core.NewCatalog(c, toy)
	require.Equal(t, core.Invalid, core.CodeOf(err))
	_, err = core.NewCatalog(c, nil)
	require.Equal(t, core.Unsupported, core.CodeOf(err))
}

// three is a batch of three items, of which a destination's own programs
// concern one.
func three(r *rig) { r.post(`{"k":"a","i":1}`, `{"k":"a","i":2}`, `{"k":"a","i":3}`) }

const item1, item2, item3 = `{"k":"a","i":1}`, `{"k":"a","i":2}`, `{"k":"a","i":3}`

func hopped(change func(*core.Destination), more ...func(*core.Config)) *core.Config {
	return config(append([]func(*core.Config){batch(3, 5*time.Second, 15*time.Second), out(func(d *core.Destination) {
		d.Retry.Initial, d.Retry.MaxAttempts = time.Millisecond, 2
		change(d)
	})}, more...)...)
}

func TestAHopDropsItems(t *testing.T) {
	run(t, hopped(func(d *core.Destination) { d.Filter = "has 1" }), func(r *rig) {
		three(r)
		r.at(time.Second)
		require.Equal(t, "0.000 out #1 "+item1, r.trail())
		require.Empty(t, r.deadLetters())
		require.Empty(t, r.left())
	})
}

func TestAHopThatDropsAllIsNotCalled(t *testing.T) {
	run(t, hopped(func(d *core.Destination) { d.Filter = "null" }), func(r *rig) {
		three(r)
		r.at(time.Second)
		require.Empty(t, r.sends())
		require.Empty(t, r.deadLetters())
		require.Empty(t, r.left())
	})
}

func TestWhatAHopsProgramsFailOnIsADeadLetter(t *testing.T) {
	run(t, hopped(func(d *core.Destination) { d.Transform = `fail "i":2` }), func(r *rig) {
		r.answers(map[string]int{"out": 500})
		three(r)
		r.at(time.Second)
		letters := r.deadLetters()
		require.Len(t, letters, 3, "the others when their attempts are over")
		require.Equal(t, item2, string(letters[0].Item.Body))
		require.Equal(t, core.DeadPermanent, letters[0].Reason)
		require.Contains(t, letters[0].LastError, "it has")
		require.Equal(t, 1, r.told.of("dead permanent"))
		require.Equal(t, 2, r.told.of("dead exhausted"))
		require.Empty(t, r.left())
	})
}

func TestWhatAHopDroppedIsNoDeadLetter(t *testing.T) {
	run(t, hopped(func(d *core.Destination) { d.Filter = "cut 2" }), func(r *rig) {
		r.answers(map[string]int{"out": 400})
		three(r)
		r.at(time.Second)
		require.Equal(t, []string{item1, item3}, lettersOf(r))
		require.Empty(t, r.left())
	})
}

func TestWhatAHopDroppedDoesNotReachItsFallback(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*core.Config){"plain": func(*core.Config) {}, "ordered": ordered} {
		t.Run(name, func(t *testing.T) {
			run(t, hopped(func(d *core.Destination) {
				d.Filter, d.Transform, d.Fallbacks = "cut 2", `fail "i":3`, []string{"second"}
			},
				with("second", func(d *core.Destination) { d.Filter, d.Transform = "", "" }), change), func(r *rig) {
				r.answers(map[string]int{"out": 400})
				three(r)
				r.at(time.Second)
				require.Equal(t, lines("0.000 out #1 "+item1, "0.000 second #1 "+item1), r.trail())
				require.Equal(t, []string{item3}, lettersOf(r))
				require.Empty(t, r.left())
			})
		})
	}
}

func TestPositionsOfAHopsPartialFailures(t *testing.T) {
	run(t, hopped(func(d *core.Destination) { d.Filter = "cut 1"; d.Retry.MaxAttempts = 3 }), func(r *rig) {
		r.replies(func(_ string, b *core.Batch) core.Response {
			if b.Attempt == 1 {
				return core.Response{Status: 200, Failed: core.Bits(nil).With(1)}
			}
			return core.Response{Status: 200}
		})
		three(r)
		r.at(time.Second)
		sent := r.sends()
		require.Len(t, sent, 2)
		require.Equal(t, []string{item2, item3}, bodies(sent[0].Items))
		require.Equal(t, []string{item3}, bodies(sent[1].Items))
		require.Empty(t, r.left())
	})
}

func TestAReplayIsTransformedAndNotFiltered(t *testing.T) {
	run(t, hopped(func(d *core.Destination) { d.Transform = "set 7" }), func(r *rig) {
		r.answers(map[string]int{"out": 400})
		three(r)
		r.at(time.Second)
		require.Equal(t, []string{item1, item2, item3}, lettersOf(r), "as they were")
		r.answers(nil)
		report, err := r.replayer.Replay(context.Background(), core.ReplayRequest{})
		require.NoError(t, err)
		require.Equal(t, 3, report.Replayed)
		sent := r.sends()
		require.Equal(t, []string{"7", "7", "7"}, bodies(sent[len(sent)-1].Items))
	})
}

// A request whose programs take too long is refused before its sender gives up,
// with what to do about it.
func TestARequestsProgramsMayTakeSoLong(t *testing.T) {
	run(t, config(at1, buf(func(b *core.Buffer) { b.Filter = "nap 900ms" })), func(r *rig) {
		many := make([]string, 1000)
		for i := range many {
			many[i] = `{"k":"a"}`
		}
		begin := time.Now()
		_, err := r.tryPost(many...)
		require.Equal(t, core.Unavailable, core.CodeOf(err))
		require.ErrorContains(t, err, "took longer than 10s, and were done with 11 of 1000 events; send fewer at a time")
		require.Less(t, time.Since(begin), 11*time.Second)
		require.Equal(t, 11, r.post(many[:11]...).Accepted)
		r.at(30 * time.Second)
		require.Len(t, r.sends(), 11)
	})
}
