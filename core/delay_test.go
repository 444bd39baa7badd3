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

func after(d time.Duration) func(*core.Config) {
	return buf(func(b *core.Buffer) { b.DeliverAfter = d })
}

func sendAt(c *core.Config) { c.Buffers[0].DeliverAt = "{{ .json.at }}" }

// due is an event of a key that is due so long after the rig's begin.
func (r *rig) due(key string, after time.Duration) string {
	return fmt.Sprintf(`{"k":%q,"at":%q}`, key, r.begin.Add(after).UTC().Format(time.RFC3339Nano))
}

func TestDeliverAfter(t *testing.T) {
	run(t, config(at1, after(time.Hour)), func(r *rig) {
		r.at(100 * time.Millisecond)
		require.Equal(t, 1, r.post(`{"k":"a"}`).Accepted)
		require.Equal(t, []string{`b~held/"2000-01-01T01:00:00.000Z/2000-01-01T01:00:00.500Z"`}, r.left())
		r.at(2 * time.Hour)
		sent := r.sends()
		require.Len(t, sent, 1)
		require.Equal(t, "b", sent[0].Buffer)
		require.Equal(t, "a", sent[0].Group)
		require.Equal(t, core.ReasonItems, sent[0].Reason)
		require.Equal(t, time.Hour+500*time.Millisecond, sent[0].at)
		require.Equal(t, core.At(r.begin.Add(100*time.Millisecond)), sent[0].Items[0].ReceivedAt, "it is the event that it was")
		require.Empty(t, r.left())
		require.Equal(t, 1, r.told.of("accepted"))
	})
}

func TestDeliverAt(t *testing.T) {
	run(t, config(at1, sendAt), func(r *rig) {
		r.at(10 * time.Second)
		receipt := r.post(
			r.due("later", time.Minute), r.due("exactly", 20*time.Second), r.due("past", -time.Hour), r.due("now", 10*time.Second),
			`{"k":"none"}`, `{"k":"empty","at":" "}`, `{"k":"zone","at":"2000-01-01T01:01:00+01:00"}`, `{"k":"last","at":"9999-12-31T23:59:59.999Z"}`,
			`{"k":"garbage","at":"tomorrow"}`, `{"k":"number","at":946684800}`)
		require.Equal(t, 10, receipt.Accepted, "they are durable, each in its way")
		r.at(time.Hour)
		at := map[string]time.Duration{}
		for _, s := range r.sends() {
			at[s.Group] = s.at
		}
		require.Equal(t, map[string]time.Duration{
			"later": time.Minute, "zone": time.Minute, "exactly": 20 * time.Second,
			"past": 10 * time.Second, "now": 10 * time.Second, "none": 10 * time.Second, "empty": 10 * time.Second,
		}, at)
		require.Equal(t, []string{`b~held/"9999-12-31T23:59:58.500Z/9999-12-31T23:59:59.000Z"`}, r.left())
		letters := r.deadLetters()
		require.Len(t, letters, 2)
		require.Equal(t, core.DeadPermanent, letters[0].Reason)
		require.Contains(t, letters[0].LastError, `"tomorrow"; it must be RFC 3339`)
		require.Zero(t, letters[0].Attempts)
		require.Equal(t, 2, r.told.of("dead permanent"))

		r.answers(nil)
		report, err := r.replayer.Replay(context.Background(), core.ReplayRequest{})
		require.NoError(t, err)
		require.Equal(t, 2, report.Replayed, "a replay is not held")
	})
}

func TestDeliverAtIsStrict(t *testing.T) {
	t.Parallel()
	for text, right := range map[string]bool{
		"2000-01-01T00:01:00Z":            true,
		"2000-01-01T00:01:00.5Z":          true,
		"2000-01-01T00:01:00.123456789Z":  true,
		"1999-12-31T23:01:00-01:00":       true,
		"2000-02-29T23:59:59Z":            true,
		" 2000-01-01T00:01:00Z\n":         true,
		"2000-01-01T0:01:00Z":             false, // time.Parse takes it
		"2000-01-01T00:01:00,5Z":          false, // and this
		"2000-01-01T00:01:00+25:00":       false,
		"2000-01-01T00:01:00+24:00":       false,
		"2000-01-01T00:01:00+00:60":       false,
		"2000-01-01t00:01:00Z":            false,
		"2000-01-01T00:01:00z":            false,
		"2000-01-01 00:01:00Z":            false,
		"2000-01-01T00:01:00":             false,
		"2000-01-01T00:01Z":               false,
		"2000-01-01T00:01:00.Z":           false,
		"2000-01-01T00:01:00+0100":        false,
		"2000-01-01T24:00:00Z":            false,
		"2001-02-29T00:00:00Z":            false,
		"2016-12-31T23:59:60Z":            false, // a leap second
		"10000-01-01T00:00:00Z":           false,
		"2000-01-01":                      false,
		"946684860":                       false,
		"Sat, 01 Jan 2000 00:01:00 +0000": false,
	} {
		t.Run(text, func(t *testing.T) {
			run(t, config(at1, sendAt), func(r *rig) {
				r.post(fmt.Sprintf(`{"k":"a","at":%q}`, text))
				require.Equal(t, right, len(r.deadLetters()) == 0)
				require.Equal(t, right, len(r.left()) == 1)
			})
		})
	}
}

func TestAnEmptyTimeFollowsDeliverAfter(t *testing.T) {
	run(t, config(at1, sendAt, after(time.Minute)), func(r *rig) {
		r.post(`{"k":"a"}`, r.due("b", 10*time.Second))
		r.at(time.Hour)
		require.Equal(t, "10.000 b 1 items #1\n60.000 a 1 items #1", r.summary())
	})
}

// case 16 of what users of such systems report.
func TestAHeldItemJoinsItsGroupAndHoldsNothingBack(t *testing.T) {
	run(t, config(batch(50, 2*time.Second, 15*time.Second), sendAt), func(r *rig) {
		r.post(r.due("k", 5*time.Second))
		r.post(`{"k":"k","i":1}`)
		r.at(4 * time.Second)
		require.Equal(t, "2.000 k 1 idle #1", r.summary())
		r.post(`{"k":"k","i":2}`)
		r.at(time.Minute)
		require.Equal(t, "2.000 k 1 idle #1\n7.000 k 2 idle #1", r.summary())
		require.Empty(t, r.left())
	})
}

func TestAnOrderedBufferHoldsWhatIsBehind(t *testing.T) {
	run(t, config(at1, ordered, sendAt), func(r *rig) {
		r.post(`{"k":"a","i":0}`)
		r.post(r.due("a", 10*time.Second))
		r.post(`{"k":"a","i":2}`, r.due("a", 5*time.Second), r.due("a", 20*time.Second), `{"k":"a","i":5}`)
		r.at(time.Millisecond)
		r.post(`{"k":"other"}`)
		r.at(time.Minute)
		require.Equal(t, strings.Join([]string{
			"0.000 a 1 items #1", "0.001 other 1 items #1", "10.000 a 1 items #1", "10.000 a 1 items #1", "10.000 a 1 items #1",
			"20.000 a 1 items #1", "20.000 a 1 items #1",
		}, "\n"), r.summary())
		require.Empty(t, r.left())
	})
}

func TestAnOrderedBatchEndsBeforeWhatIsHeld(t *testing.T) {
	run(t, config(batch(10, time.Second, 5*time.Second), ordered, sendAt), func(r *rig) {
		r.post(`{"k":"a"}`, `{"k":"a"}`, r.due("a", 10*time.Second), `{"k":"a"}`)
		r.at(time.Minute)
		require.Equal(t, "1.000 a 2 idle #1\n10.000 a 2 wait #1", r.summary())
	})
}

func TestLatenessCountsFromWhenAnItemIsDue(t *testing.T) {
	t.Parallel()
	p := &core.Policy{MaxItems: 10, MaxBytes: 1000, IdleTimeout: time.Second, MaxWait: 2 * time.Second}
	g := core.Group{Life: "l", Tail: 1, TailBytes: 1, FirstAt: noon, LastAt: noon, CheckAt: noon, Hold: noon.Add(time.Hour)}
	v := core.Evaluate(&g, p, noon.Add(time.Minute))
	require.False(t, v.Due)
	require.Equal(t, noon.Add(time.Hour), v.Next)
	v = core.Evaluate(&g, p, noon.Add(2*time.Hour))
	require.True(t, v.Due)
	require.Equal(t, noon.Add(time.Hour), v.Deadline)
}

func TestAHundredThousandHeldItemsOverARestart(t *testing.T) {
	const n, posts = 100_000, 100
	c := config(batch(1000, 100*time.Millisecond, 100*time.Millisecond), sendAt, buf(func(b *core.Buffer) { b.GroupBy = "" }))
	run(t, c, func(r *rig) {
		for i := range posts {
			bodies := make([]string, n/posts)
			for j := range bodies {
				bodies[j] = r.due("", 10*time.Second+time.Duration(i*len(bodies)+j)*600*time.Microsecond)
			}
			r.post(bodies...)
		}
		r.at(5 * time.Second)
		require.Empty(t, r.sends())
		r.crash(c)
		r.at(30 * time.Second)
		r.crash(c) // half of them have left
		r.at(2 * time.Minute)
		seen := make(map[string]bool, n)
		for _, s := range r.sends() {
			for i := range s.Items {
				it := &s.Items[i]
				seen[it.ID] = true
				body := string(it.Body)
				at, err := time.Parse(time.RFC3339, body[len(`{"k":"","at":"`):len(body)-2])
				require.NoError(t, err)
				late := s.at - at.Sub(r.begin)
				if late < 0 || late > time.Second {
					t.Fatalf("an item is %s late", late)
				}
			}
		}
		require.Len(t, seen, n)
		require.Empty(t, r.left())
	})
}

func TestHeldItemsHoldNoWorkerAndNothingElse(t *testing.T) {
	run(t, config(at1, sendAt), func(r *rig) {
		var held []string
		for i := range 1000 {
			held = append(held, r.due(fmt.Sprint(i), time.Hour))
		}
		r.post(held...)
		r.put("a")
		r.at(time.Second)
		require.Equal(t, "0.000 a 1 items #1", r.summary())
		require.Equal(t, []string{`b~held/"2000-01-01T00:59:59.500Z/2000-01-01T01:00:00.000Z"`}, r.left(), "one deadline for all")
		r.at(2 * time.Hour)
		require.Len(t, r.sends(), 1001)
	})
}

func TestAFallbackIsNotHeld(t *testing.T) {
	run(t, config(at1, fallback(1), after(time.Minute)), func(r *rig) {
		r.answers(map[string]int{"out": 400})
		r.put("a")
		r.at(time.Hour)
		require.Equal(t, "60.000 out #1 {\"k\":\"a\"}\n60.000 second #1 {\"k\":\"a\"}", r.trail())
	})
}

func TestAFlushShipsNothingThatIsHeld(t *testing.T) {
	t.Parallel()
	for name, isOrdered := range map[string]bool{"plain": false, "ordered": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDock(t)
			p := d.process(docked(func(b *core.Buffer) { b.DeliverAfter, b.Ordered = time.Hour, isOrdered }))
			p.keys("a", "b")
			for _, o := range []core.FlushOptions{{}, {Force: true}, {Final: true}, {Final: true, Groups: []string{"a"}}} {
				d.pass(time.Minute)
				require.NoError(t, p.flush(o).Err)
				report, err := p.flusher.Flush(context.Background(), o)
				require.NoError(t, err)
				require.True(t, report.OK())
				require.NoError(t, p.deliverHanded())
			}
			require.Empty(t, d.taken())
			d.pass(time.Hour)
			p.work()
			p.flush(core.FlushOptions{Final: true})
			require.Len(t, d.taken(), 2)
			require.Empty(t, d.busyGroups())
		})
	}
}

func TestWhatIsHeldLeavesUnderOtherSettings(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*core.Config){
		"no delay":   func(c *core.Config) { c.Buffers[0].DeliverAt = "" },
		"ordered":    ordered,
		"later ones": func(c *core.Config) { c.Buffers[0].DeliverAt, c.Buffers[0].DeliverAfter = "", time.Hour },
		"flushes":    func(c *core.Config) { c.Buffers[0].FlushEvery = time.Minute },
		"windows": func(c *core.Config) {
			c.Buffers[0].DeliverAt = ""
			c.Buffers[0].Window = &core.WindowConfig{Every: time.Second, MaxAhead: time.Hour}
		},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, config(at1, sendAt), func(r *rig) {
				r.post(r.due("a", 10*time.Second), r.due("b", 20*time.Second))
				r.at(5 * time.Second)
				r.reconfigure(config(at1, sendAt, change))
				r.at(25 * time.Second)
				if name == "flushes" {
					require.Equal(t, []string{`b/"a"`, `b/"b"`}, r.left())
					return
				}
				sent := r.sends()
				require.Len(t, sent, 2)
				require.Equal(t, 10*time.Second, sent[0].at.Truncate(5*time.Second))
				require.Equal(t, 20*time.Second, sent[1].at.Truncate(5*time.Second))
				require.Empty(t, r.left())
			})
		})
	}
}

func TestWhatAnOrderedBufferHeldLeavesUnderOtherSettings(t *testing.T) {
	run(t, config(at1, ordered, after(10*time.Second)), func(r *rig) {
		r.put("a")
		r.at(5 * time.Second)
		r.reconfigure(config(at1))
		r.at(25 * time.Second)
		require.Equal(t, "10.000 a 1 items #1", r.summary())
	})
}

func TestAGroupThatHoldsItemsInOrderGoesOnSo(t *testing.T) {
	run(t, config(batch(50, time.Second, time.Second), ordered, sendAt), func(r *rig) {
		r.post(r.due("a", 10*time.Second), r.due("a", 20*time.Second), `{"k":"a"}`)
		r.at(5 * time.Second)
		r.reconfigure(config(batch(50, time.Second, time.Second), sendAt))
		r.at(time.Minute)
		require.Equal(t, "10.000 a 1 wait #1\n20.000 a 2 wait #1", r.summary(), "none is early")
		require.Empty(t, r.left())
	})
}

func TestABufferThatComesBackHasWhatWasHeld(t *testing.T) {
	run(t, config(at1, after(10*time.Second)), func(r *rig) {
		r.put("a")
		r.at(time.Second)
		r.reconfigure(config(buf(func(b *core.Buffer) { b.Name = "other" })))
		r.at(time.Minute)
		require.Empty(t, r.sends())
		r.reconfigure(config(at1))
		r.at(2 * time.Minute)
		require.Equal(t, "60.000 a 1 items #1", r.summary())
	})
}

func TestAnEventThatFitsNoMoreKeepsOnlyItself(t *testing.T) {
	run(t, config(at1, after(10*time.Second)), func(r *rig) {
		long := fmt.Sprintf(`{"k":"long","x":%q}`, strings.Repeat("x", 2048))
		r.post(long, `{"k":"a"}`)
		r.at(time.Second)
		r.broken.Store(true)
		small := func(c *core.Config) {
			c.Buffers[0].Overflow.MaxBytes, c.Buffers[0].Batch.MaxBytes = core.KiB, core.KiB
		}
		r.reconfigure(config(at1, after(10*time.Second), small))
		r.at(time.Minute)
		require.Equal(t, "10.000 a 1 items #1", r.summary())
		require.Len(t, r.left(), 1)
		r.reconfigure(config(at1))
		r.at(2 * time.Minute)
		require.Len(t, r.sends(), 2)
		require.Empty(t, r.left())
		require.Empty(t, r.deadLetters())
	})
}

func TestACrashWhileHeldItemsGoOn(t *testing.T) {
	t.Parallel()
	d := newDock(t)
	c := docked(func(b *core.Buffer) { b.DeliverAfter, b.FlushEvery = time.Second, 0 })
	p := d.process(c)
	p.keys("a", "b")
	d.pass(2 * time.Second)
	writes := 0
	d.write = func(ref core.Ref) error {
		if writes++; strings.HasSuffix(ref.Buffer, "~held") && writes > 1 {
			return core.Errorf(core.Unavailable, "down") // it has moved them, and can't say so
		}
		return nil
	}
	require.Error(t, p.deliverAll())
	d.write = nil
	require.Len(t, d.busyGroups(), 2)
	two := d.process(c)
	for range 3 {
		d.pass(time.Minute) // the lease ends
		two.work()
	}
	got := map[string]int{}
	for _, b := range d.taken() {
		got[b.Group] += len(b.Items)
	}
	require.Equal(t, map[string]int{"a": 2, "b": 2}, got, "doubled, as its deliverer died in between")
	groups, err := d.memory.Groups(context.Background(), "b~held", nil, 10)
	require.NoError(t, err)
	require.Empty(t, groups)
}

func TestAMoveThatFailsIsMadeAgain(t *testing.T) {
	run(t, config(at1, after(time.Second), buf(func(b *core.Buffer) { b.Overflow.MaxItems = 1 })), func(r *rig) {
		r.post(`{"k":"a"}`)
		r.post(`{"k":"a"}`)
		r.post(`{"k":"a"}`)
		r.sendsTake(3 * time.Second)
		r.at(2 * time.Minute)
		n := 0
		for _, s := range r.sends() {
			n += len(s.Items)
		}
		require.Equal(t, 3, n, "a full group keeps them until it has room")
		require.Empty(t, r.left())
	})
}

// A full group takes what it has room for, and does not let the rest wait with it.
func TestAMoveOfMoreThanFits(t *testing.T) {
	t.Parallel()
	d := newDock(t)
	p := d.process(docked(func(b *core.Buffer) {
		b.DeliverAt, b.FlushEvery, b.Overflow.MaxItems, b.Batch.MaxItems = "{{ .json.at }}", 0, 10, 10
	}))
	p.keys("a") // one is there
	due := fmt.Sprintf(`{"k":"a","at":%q}`, d.clock().Add(time.Second))
	p.put(due, due, due, due, due, due, due, due, due, due)
	d.pass(2 * time.Second)
	appends := 0
	for more := true; more; {
		groups, err := d.memory.Groups(context.Background(), "b~held", nil, 1)
		require.NoError(t, err)
		if more, err = p.deliverer.Deliver(context.Background(), core.Delivery{Ref: groups[0].Ref, Destination: "b~held"}); err != nil {
			require.NoError(t, err)
		}
		appends++
		require.Less(t, appends, 10)
	}
	stats, err := d.memory.Stats(context.Background())
	require.NoError(t, err)
	require.Equal(t, int64(10), stats[0].Pending, "nine of ten had room")
	require.Equal(t, int64(1), stats[1].Claimed)
}

func TestASizeOfHeldItems(t *testing.T) {
	run(t, config(at1, after(time.Hour), buf(func(b *core.Buffer) { b.Size = 2 })), func(r *rig) {
		r.put("a")
		r.put("b")
		_, err := r.tryPost(`{"k":"c"}`)
		require.Equal(t, core.Full, core.CodeOf(err), "what is held counts")
		_, err = r.tryPost(`{"k":"c"}`, `{"k":"d"}`, `{"k":"e"}`)
		require.Equal(t, core.TooLarge, core.CodeOf(err))
		r.at(2 * time.Hour)
		require.Len(t, r.sends(), 2)
		require.Equal(t, 1, r.post(`{"k":"c"}`).Accepted)
	})
}

func TestUnitsOfWhatWasHeld(t *testing.T) {
	run(t, config(at1, after(time.Minute), buf(func(b *core.Buffer) { b.GroupBy = "" })), func(r *rig) {
		units := []string{"", "a", "a/b", "x|y", "2000-01-01T00:00:00Z/2000-01-01T00:00:00Z"}
		for _, unit := range units {
			_, err := r.ingester.Ingest(context.Background(), "in", []core.Event{{Body: []byte("{}"), Unit: unit}})
			require.NoError(t, err)
		}
		r.at(time.Hour)
		var got []string
		for _, s := range r.sends() {
			got = append(got, s.Group)
			require.Equal(t, time.Minute, s.at)
		}
		require.ElementsMatch(t, units, got)
		require.Empty(t, r.left())
	})
}

func TestHeldNamesItsBuffer(t *testing.T) {
	t.Parallel()
	of, ok := core.Held("b~held")
	require.True(t, ok)
	require.Equal(t, "b", of)
	_, ok = core.Held("b-held")
	require.False(t, ok)
}

func TestAHeldEventThatIsSentAgain(t *testing.T) {
	run(t, config(at1, sendAt, buf(func(b *core.Buffer) { b.Dedupe = time.Hour })), func(r *rig) {
		send := func(body string) core.Receipt {
			receipt, err := r.ingester.Ingest(context.Background(), "in", []core.Event{{ID: "same", Body: []byte(body)}})
			require.NoError(t, err)
			return receipt
		}
		body := r.due("a", 10*time.Second)
		require.Equal(t, 1, send(body).Accepted)
		require.Equal(t, 1, send(body).Duplicates)
		r.at(20100 * time.Millisecond)
		require.Equal(t, 1, send(body).Duplicates, "now that it is due, too")
		require.Equal(t, 1, send(r.due("b", time.Hour)).Duplicates, "nor is it held again")
		r.post(`{"k":"other"}`)
		r.at(time.Minute)
		require.Equal(t, "10.000 a 1 items #1\n20.100 other 1 items #1", r.summary(), "what is not held goes at once")
		require.Equal(t, 3, r.told.of("duplicate"))
	})
}
