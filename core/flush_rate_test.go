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

// rationed is docked, one send at a time to a destination with a rate limit.
func rationed(requests int, per time.Duration, change ...func(*core.Buffer)) *core.Config {
	c := docked(change...)
	c.Destinations[0].Concurrency = 1
	c.Destinations[0].RateLimit = &core.RateConfig{Requests: requests, Per: per}
	return c
}

// ticking makes the dock's processes wait, and notes when each send began.
func (d *dock) ticking() *[]time.Duration {
	begin, at := d.clock(), new([]time.Duration)
	d.sleep = func(_ context.Context, by time.Duration) error {
		d.pass(by)
		return nil
	}
	d.answer = func(*core.Batch) core.Response {
		*at = append(*at, d.clock().Sub(begin))
		return core.Response{Status: 200}
	}
	return at
}

func twoDigits(n int) (keys []string) {
	for i := range n {
		keys = append(keys, fmt.Sprintf("%02d", i))
	}
	return keys
}

// sentOnce requires that every event was sent once, by a first attempt.
func sentOnce(t *testing.T, sent []core.Batch, n int) {
	t.Helper()
	var seen []string
	for _, b := range sent {
		require.Equal(t, 1, b.Attempt)
		for i := range b.Items {
			seen = append(seen, b.Items[i].ID)
		}
	}
	slices.Sort(seen)
	require.Len(t, slices.Compact(seen), n)
	require.Len(t, seen, n)
}

func TestAFlushWaitsForTokens(t *testing.T) {
	t.Parallel()
	for _, o := range []core.FlushOptions{{}, {Force: true}, {Final: true}, {Final: true, Force: true}} {
		t.Run(fmt.Sprintf("%+v", o), func(t *testing.T) {
			t.Parallel()
			d := newDock(t)
			at := d.ticking()
			p := d.process(rationed(5, time.Second))
			p.keys(twoDigits(20)...)
			r := p.flush(o)
			require.Equal(t, core.BufferFlush{Buffer: "b", Rows: 20}, r, "it recovers none of its own claims")
			sentOnce(t, d.taken(), 20)
			for i, got := range *at {
				require.Equal(t, time.Duration(max(0, i-4))*200*time.Millisecond, got)
			}
			require.Empty(t, d.busyGroups())
			require.Equal(t, core.Turn{Last: noon}, d.turn())
		})
	}
}

// A wait may take longer than the lease of the turn.
func TestAFlushKeepsItsTurnWhileItWaits(t *testing.T) {
	t.Parallel()
	d := newDock(t)
	at := d.ticking()
	p := d.process(rationed(1, 10*time.Minute))
	p.keys("a", "b", "c")
	pass := d.sleep
	d.sleep = func(ctx context.Context, by time.Duration) error {
		require.Greater(t, d.turn().Until, d.clock())
		return pass(ctx, by)
	}
	require.Equal(t, 3, p.flush(core.FlushOptions{}).Rows)
	require.Equal(t, []time.Duration{0, 10 * time.Minute, 20 * time.Minute}, *at)
	sentOnce(t, d.taken(), 3)
}

func TestAFlushWhoseTurnIsTakenWhileItWaits(t *testing.T) {
	t.Parallel()
	d := newDock(t)
	d.ticking()
	p := d.process(rationed(1, 10*time.Minute))
	p.keys("a", "b")
	d.sleep = func(context.Context, time.Duration) error {
		d.pass(5 * time.Minute)
		_, err := d.process(docked()).flusher.FlushBuffer(context.Background(), "b", core.FlushOptions{Groups: []string{"nobody"}})
		return err
	}
	r := p.flush(core.FlushOptions{})
	require.Error(t, r.Err)
	require.Contains(t, core.DetailOf(r.Err), "has passed to another process")
	require.Equal(t, []string{"b"}, d.busyGroups())
}

// What waited for tokens before a flush came, keeps them, and is waited for.
func TestAFlushWaitsForTheTokensOfOthers(t *testing.T) {
	t.Parallel()
	for _, o := range []core.FlushOptions{{}, {Final: true, Force: true}} {
		d := newDock(t)
		at := d.ticking()
		c := rationed(1, time.Minute, func(b *core.Buffer) { b.FlushEvery, b.Batch.MaxItems = 0, 1 })
		p := d.process(c)
		p.keys("a", "b", "c", "a", "a")
		p.work()
		require.Len(t, *at, 1)
		d.pass(time.Second)
		r := p.flush(o)
		require.NoError(t, r.Err)
		require.Equal(t, &core.Released{Claims: 4, Rows: 4}, r.Recovered)
		require.Equal(t, []time.Duration{0, time.Minute, 2 * time.Minute, 3 * time.Minute, 4 * time.Minute}, *at)
		sentOnce(t, d.taken(), 5)
		require.Empty(t, d.busyGroups())
	}
}

func TestAFlushOfManyBatchesWaitsForTokens(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*core.Buffer){
		"of a group":          func(*core.Buffer) {},
		"of an ordered group": func(b *core.Buffer) { b.Ordered = true },
		"of a window":         windowed,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDock(t)
			at := d.ticking()
			p := d.process(rationed(2, time.Second, change))
			p.keys(slices.Repeat([]string{"k"}, 23)...)
			begin := d.clock()
			d.pass(2 * time.Minute)
			r := p.flush(core.FlushOptions{})
			require.NoError(t, r.Err)
			require.Equal(t, 23, r.Rows)
			require.Equal(t, 2*time.Minute+5*time.Second, d.clock().Sub(begin))
			require.Len(t, *at, 12)
			sentOnce(t, d.taken(), 23)
		})
	}
}

// The rows of a folded window are batches of one claim, each with a token.
func TestAFlushOfRowsWaitsForTokens(t *testing.T) {
	t.Parallel()
	d := newDock(t)
	at := d.ticking()
	p := d.process(rationed(1, time.Second, windowed, func(b *core.Buffer) {
		b.Fold = []core.FoldColumn{{Name: "n", Expr: "count"}}
	}))
	p.keys(twoDigits(9)...)
	d.pass(2 * time.Minute)
	r := p.flush(core.FlushOptions{})
	require.NoError(t, r.Err)
	require.Equal(t, 9, r.Rows)
	require.Equal(t, 1, r.Buckets)
	require.Len(t, *at, 5)
	require.Equal(t, 4*time.Second, (*at)[4]-(*at)[0])
	require.Empty(t, d.busyGroups())
}

// A batch that was not full is still the last new one.
func TestAFlushThatWaitsDoesNotChase(t *testing.T) {
	t.Parallel()
	d := newDock(t)
	at := d.ticking()
	p := d.process(rationed(1, time.Second))
	p.keys("k", "k", "k")
	tick := d.answer
	d.answer = func(b *core.Batch) core.Response {
		if len(*at) < 10 {
			p.keys("k")
		}
		return tick(b)
	}
	r := p.flush(core.FlushOptions{})
	require.NoError(t, r.Err)
	require.Equal(t, 5, r.Rows, "2, the 2 that there are then, and 1")
	require.Equal(t, []string{"k"}, d.busyGroups())
}

// A flush that has not the time for a token says so, at once.
func TestAFlushWithoutTheTimeForATokenSaysSo(t *testing.T) {
	t.Parallel()
	d := newDock(t)
	d.now.Store(time.Now().Add(time.Hour).UnixMilli()) // so that the deadline does not come by itself
	begin := d.clock()
	d.ticking()
	p := d.process(rationed(2, time.Minute))
	p.keys(twoDigits(8)...)
	ctx, cancel := context.WithDeadline(context.Background(), begin.Add(100*s).Time())
	defer cancel()
	r := p.flushWithin(ctx, core.FlushOptions{})
	require.EqualError(t, r.Err, "the time was over before all was shipped, as the rate limit of destination out lets no more through; flush again")
	require.Equal(t, &core.Shipped{Rows: 4}, r.Written)
	require.Equal(t, 60*s, d.clock().Sub(begin))
	require.Equal(t, core.Turn{}, d.turn(), "it has not had its turn")
	require.Equal(t, 4, p.flush(core.FlushOptions{}).Rows)
	sentOnce(t, d.taken(), 8)
}

func TestAFlushWaitsForTheTokensOfAFallback(t *testing.T) {
	t.Parallel()
	d := newDock(t)
	at := d.ticking()
	c := rationed(1, time.Minute)
	second := c.Destinations[0]
	second.Name = "second"
	c.Destinations[0].RateLimit, c.Destinations[0].Fallbacks = nil, []string{"second"}
	c.Destinations = append(c.Destinations, second)
	p := d.process(c)
	tick := d.answer
	d.answer = func(b *core.Batch) core.Response {
		if r := tick(b); d.to[len(d.to)-1] == "second" {
			return r
		}
		return core.Response{Status: 400}
	}
	p.keys("a", "b", "c")
	require.Error(t, p.flush(core.FlushOptions{}).Err, "a send has failed")
	require.Empty(t, d.busyGroups())
	require.Equal(t, []string{"out", "second", "out", "out", "second", "second"}, d.to)
	require.Equal(t, []time.Duration{0, 0, 0, 0, time.Minute, 2 * time.Minute}, *at)
}

// A breaker that opens while a flush waits ends it.
func TestABreakerOpensWhileAFlushWaits(t *testing.T) {
	t.Parallel()
	d := newDock(t)
	d.ticking()
	c := rationed(1, time.Minute)
	c.Destinations[0].Breaker = &core.BreakerConfig{Failures: 1, Cooldown: time.Hour}
	p := d.process(c)
	d.answer = func(*core.Batch) core.Response { return core.Response{Status: 500} }
	p.keys("a", "b", "c")
	r := p.flush(core.FlushOptions{})
	require.Error(t, r.Err)
	require.Len(t, d.taken(), 1)
	require.Less(t, d.clock().Sub(noon), time.Minute)
}

// A flush in a process that delivers, too: nothing is sent twice or early, and
// all has left when it ends.
func TestAFlushBesideDeliveries(t *testing.T) {
	c := config(batch(2, time.Second, 10*time.Second), limited(5, time.Second))
	run(t, c, func(r *rig) {
		for range 4 {
			r.burst(20)
		}
		r.at(100 * time.Millisecond)
		report, err := r.flusher(c).FlushBuffer(context.Background(), "b", core.FlushOptions{Final: true})
		require.NoError(t, err)
		require.NoError(t, report.Err)
		require.Empty(t, r.left())
		seen := 0
		for _, s := range r.sends() {
			seen += len(s.Items)
			require.Equal(t, 1, s.Attempt)
		}
		require.Equal(t, 80, seen)
		for i, at := range r.times() {
			require.GreaterOrEqual(t, at, time.Duration(max(0, i-4))*200*time.Millisecond)
		}
	})
}

// Many groups wait for few workers, the last of them the first: none loses its token.
func TestAFlushOfManyGroupsLosesNoToken(t *testing.T) {
	t.Parallel()
	d := newDock(t)
	at := d.ticking()
	p := d.process(rationed(1, time.Second, func(b *core.Buffer) { b.FlushEvery, b.Batch.MaxItems = 0, 1 }))
	for i := range 50 {
		p.keys(fmt.Sprintf("%02d", 50-i))
		p.work()
	}
	require.NoError(t, p.flush(core.FlushOptions{Final: true}).Err)
	for i, got := range *at {
		require.Equal(t, time.Duration(i)*time.Second, got)
	}
	sentOnce(t, d.taken(), 50)
}

// A hundred batches of a group are shipped to the last, though that has to wait.
func TestAFlushOfAHundredBatchesWaitsForTheLast(t *testing.T) {
	t.Parallel()
	d := newDock(t)
	d.ticking()
	p := d.process(rationed(1, time.Second))
	p.keys(slices.Repeat([]string{"k"}, 250)...)
	require.Equal(t, 200, p.flush(core.FlushOptions{Final: true}).Rows)
	sentOnce(t, d.taken(), 200)
	require.Empty(t, d.group("k").Claims)
}

// What a flush that is ended was waiting for leaves by itself, when its token
// comes.
func TestAFlushThatIsEndedWhileItWaits(t *testing.T) {
	c := config(batch(1000, 5*time.Minute, 10*time.Minute), limited(1, 10*time.Second))
	run(t, c, func(r *rig) {
		r.burst(4)
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(12*time.Second, cancel)
		report, err := r.flusher(c).FlushBuffer(context.Background(), "b", core.FlushOptions{While: ctx})
		require.NoError(t, err)
		require.ErrorContains(t, report.Err, "the rate limit of destination out")
		require.Equal(t, 12*time.Second, time.Since(r.begin))
		require.Len(t, r.sends(), 2)
		r.at(40 * time.Second)
		require.Equal(t, []time.Duration{0, 10 * time.Second, 20 * time.Second, 30 * time.Second}, r.times())
		require.Empty(t, r.left())
	})
}

// flusher flushes the rig's buffers, beside its deliveries.
func (r *rig) flusher(c *core.Config) *core.Flusher {
	catalog, err := core.NewCatalog(c, toy)
	require.NoError(r.t, err)
	return core.NewFlusher(catalog, core.Ports{
		Store: r.store, Timer: hints{r}, Queue: r.queue, DeadLetters: letterQueue{r}, Coordinator: r.shared, Sleep: sleep,
		Clock:    core.ClockFunc(func() core.Millis { return core.At(time.Now()) }),
		Rand:     fullWait{},
		Sender:   func(name string) core.Sender { return sender{r, name} },
		IDs:      core.IDsFunc(func() string { return "turn" }),
		Observer: r.told.observer(func(op string, err error) { r.t.Errorf("%s: %v", op, err) }),
	}, &core.Cadence{})
}
