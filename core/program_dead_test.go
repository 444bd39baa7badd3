package core_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

// puts counts how often each item was put as a dead letter.
func (d *dock) puts() map[string]int {
	times := make(map[string]int)
	d.beforePut = func(letters []core.DeadLetter) error {
		for i := range letters {
			times[string(letters[i].Item.Body)]++
		}
		return nil
	}
	return times
}

// failing is docked, with a destination whose programs fail on some events, and
// so many attempts a second apart.
func failing(attempts int, change ...func(*core.Buffer)) *core.Config {
	c := docked(append([]func(*core.Buffer){func(b *core.Buffer) { b.FlushEvery, b.Batch.MaxItems = 0, 3 }}, change...)...)
	c.Destinations[0].Transform = `fail "i":2`
	c.Destinations[0].Retry = core.RetryPolicy{MaxAttempts: attempts, Initial: time.Second, Max: time.Second}
	return c
}

// Where putting a letter is a message, one that is put at each of twenty attempts
// would be twenty.
func TestWhatAProgramFailsOnIsADeadLetterOnce(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answer func(*core.Batch) core.Response
		want   map[string]int
	}{
		"never taken": {func(*core.Batch) core.Response { return core.Response{Status: 503} }, map[string]int{item1: 1, item2: 1, item3: 1}},
		"taken at last": {func(b *core.Batch) core.Response {
			if b.Attempt < 15 {
				return core.Response{Status: 503}
			}
			return core.Response{Status: 200}
		}, map[string]int{item2: 1}},
		"cut off": {func(b *core.Batch) core.Response {
			return core.Response{Err: core.Errorf(core.Canceled, "stopped")}
		}, map[string]int{item1: 1, item2: 1, item3: 1}},
		"in parts": {func(b *core.Batch) core.Response {
			if len(b.Items) > 1 {
				return core.Response{Status: 200, Failed: core.Bits(nil).With(0)}
			}
			return core.Response{Status: 503}
		}, map[string]int{item1: 1, item2: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDock(t)
			p := d.process(failing(20))
			times := d.puts()
			d.answer = tt.answer
			p.put(item1, item2, item3)
			for range 30 {
				p.work()
				d.pass(time.Second)
			}
			require.Empty(t, d.busyGroups())
			require.Equal(t, tt.want, times)
		})
	}
}

func TestWhatAProgramFailsOnIsADeadLetterOnceThoughTheSendIsPutOff(t *testing.T) {
	t.Parallel()
	d := newDock(t)
	p := d.process(failing(20))
	times := d.puts()
	p.put(item1, item2, item3)
	ctx, stop := context.WithCancel(context.Background())
	d.answer = func(*core.Batch) core.Response {
		stop()
		return core.Response{Err: core.Errorf(core.Canceled, "stopped")}
	}
	_, err := p.deliverer.Deliver(ctx, core.Delivery{Ref: ref("a"), Destination: "out"})
	require.NoError(t, err)
	d.answer = nil
	p.work()
	require.Empty(t, d.busyGroups())
	require.Equal(t, []string{item1, item3}, bodies(d.taken()[1].Items))
	require.Equal(t, map[string]int{item2: 1}, times)
}

// What fails before a send is made uses up none of the destination's attempts,
// be it the only one.
func TestAnErrorOfOurOwnIsNoAttempt(t *testing.T) {
	t.Parallel()
	for name, breaks := range map[string]func(d *dock, fail func() error){
		"a dead letter that can't be put": func(d *dock, fail func() error) {
			d.beforePut = func([]core.DeadLetter) error { return fail() }
		},
		"a word that can't be left": func(d *dock, fail func() error) { d.turns.fail = fail },
		"a lease that can't be renewed": func(d *dock, fail func() error) {
			late := false
			d.beforePut = func([]core.DeadLetter) error {
				d.pass(20 * time.Second)
				late = true
				return nil
			}
			d.write = func(core.Ref) error {
				if !late {
					return nil
				}
				late = false
				return fail()
			}
		},
	} {
		for hops := range 2 {
			t.Run(fmt.Sprintf("%s, %d fallbacks", name, hops), func(t *testing.T) {
				t.Parallel()
				d := newDock(t)
				c := failing(1)
				c.Sources[0].AckDelivered, c.Sources[0].RespondTimeout = true, time.Second
				if hops == 1 {
					with("second")(c)
					c.Destinations[0].Fallbacks = []string{"second"}
				}
				p := d.process(c)
				p.put(item1, item2, item3)
				left := 3
				breaks(d, func() error {
					if left--; left >= 0 {
						return core.Errorf(core.Unavailable, "down")
					}
					return nil
				})
				for range 5 {
					p.work()
					d.pass(time.Second)
				}
				sent := d.taken()
				require.Len(t, sent, 1)
				require.Equal(t, []string{"out"}, d.to)
				require.Equal(t, 1, sent[0].Attempt)
				require.Equal(t, []string{item1, item3}, bodies(sent[0].Items))
				letters, _, err := d.memory.DeadLetters().List(context.Background(), core.DeadLetterFilter{}, "", 10)
				require.NoError(t, err)
				require.Len(t, letters, 1)
				require.Equal(t, item2, string(letters[0].Item.Body))
				require.Empty(t, d.busyGroups())
			})
		}
	}
}

// A row is no member of its claim, which goes on with the next rows.
func TestARowThatAProgramFailsOnIsADeadLetterOnce(t *testing.T) {
	t.Parallel()
	d := newDock(t)
	c := failing(20, windowed, func(b *core.Buffer) { b.Fold = []core.FoldColumn{{Name: "n", Expr: "count"}} })
	c.Destinations[0].Transform = `fail "key":"bad"`
	p := d.process(c)
	times := d.puts()
	for _, k := range []string{"bad", "b", "c", "d"} {
		p.put(fmt.Sprintf(`{"k":%q,"ts":"2023-11-14T22:01:00Z"}`, k))
	}
	d.answer = func(b *core.Batch) core.Response {
		if b.Attempt < 10 {
			return core.Response{Status: 503}
		}
		return core.Response{Status: 200}
	}
	for range 30 {
		p.work()
		d.pass(time.Second)
	}
	require.Empty(t, d.busyGroups())
	require.Len(t, times, 1)
	for _, n := range times {
		require.Equal(t, 1, n)
	}
}

// While no word can be left of dead letters, none is put, however often it is tried.
func TestDeadLettersOfWhichNoWordCanBeLeft(t *testing.T) {
	t.Parallel()
	d := newDock(t)
	c := failing(20)
	c.Sources[0].AckDelivered, c.Sources[0].RespondTimeout = true, time.Second
	p := d.process(c)
	times := d.puts()
	p.put(item1, item2, item3)
	d.turns.fail = broken
	for range 10 {
		p.work()
		d.pass(time.Second)
	}
	require.Empty(t, times)
	d.turns.fail = nil
	for range 3 {
		p.work()
		d.pass(time.Second)
	}
	require.Equal(t, map[string]int{item2: 1}, times)
	require.Empty(t, d.busyGroups())
}

// What ran out of time is tried again; when its attempts are over, the others
// leave without it.
func TestADestinationsSlowProgramIsTriedAgain(t *testing.T) {
	t.Parallel()
	d := newDock(t)
	c := failing(3)
	c.Destinations[0].Transform = `slow "i":2`
	p := d.process(c)
	times := d.puts()
	p.put(item1, item2, item3)
	for range 2 {
		p.work()
		require.Empty(t, d.taken())
		require.Empty(t, times)
		d.pass(time.Second)
	}
	p.work()
	require.Equal(t, []string{item1, item3}, bodies(d.taken()[0].Items))
	letters, _, err := d.memory.DeadLetters().List(context.Background(), core.DeadLetterFilter{}, "", 10)
	require.NoError(t, err)
	require.Len(t, letters, 1)
	require.Equal(t, core.DeadExhausted, letters[0].Reason)
	require.Contains(t, letters[0].LastError, "could not be run")
	require.Empty(t, d.busyGroups())
}

func TestAFlushReportsWhatAProgramFailsOn(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		transform string
		failed    string
		written   *core.Shipped
	}{
		"one of three":       {`fail "i":2`, `has "i":2`, &core.Shipped{Rows: 2}},
		"all":                {`fail k`, "has k", nil},
		"dropped on purpose": {`cut "i":2`, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDock(t)
			c := failing(3)
			c.Destinations[0].Transform = tt.transform
			p := d.process(c)
			p.put(item1, item2, item3)
			r := p.flush(core.FlushOptions{Force: true})
			require.Equal(t, 3, r.Rows)
			require.Equal(t, tt.written, r.Written)
			if tt.failed == "" {
				require.NoError(t, r.Err)
				return
			}
			require.ErrorContains(t, r.Err, tt.failed)
		})
	}
}

func TestSlowProgramsKeepTheLease(t *testing.T) {
	run(t, config(batch(5, time.Second, time.Second), out(func(d *core.Destination) { d.Transform = "nap 9s" })), func(r *rig) {
		bodies := make([]string, 5)
		for i := range bodies {
			bodies[i] = fmt.Sprintf(`{"k":"a","i":%d}`, i)
		}
		r.sendsTake(14 * time.Second)
		r.post(bodies...)
		for at := 5 * time.Second; at < 2*time.Minute; at += 5 * time.Second {
			r.at(at)
			_, err := r.sweeper.Sweep(context.Background())
			require.NoError(t, err)
		}
		require.Equal(t, []time.Duration{45 * time.Second}, r.times(), "no other takes it over")
		require.Empty(t, r.left())
	})
}

func TestWordOfDeadLettersIsLeftSideBySide(t *testing.T) {
	const n = 200
	c := config(batch(n, time.Second, time.Second), func(c *core.Config) {
		c.Sources[0].AckDelivered, c.Sources[0].RespondTimeout = true, 3*time.Second
	})
	run(t, c, func(r *rig) {
		r.replies(func(string, *core.Batch) core.Response {
			r.shared.fail = func() error { <-time.After(time.Second / 10); return nil }
			return core.Response{Status: 400}
		})
		bodies := slices.Repeat([]string{`{"k":"a"}`}, n)
		r.post(bodies...)
		r.at(10 * time.Second)
		letters := r.deadLetters()
		require.Len(t, letters, n)
		require.Empty(t, r.left())
		require.Equal(t, n, r.told.of("dead permanent"))
	})
}
