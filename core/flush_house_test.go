package core_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

// house is a configuration of three buffers on one source.
func house() *core.Config {
	c := docked()
	for _, name := range []string{"a", "z"} {
		b := c.Buffers[0]
		b.Name = name
		c.Buffers = append(c.Buffers, b)
	}
	return c
}

// Buffers are flushed in the order of the configuration, one after the other,
// and one that fails keeps none back.
func TestFlushOfAHouse(t *testing.T) {
	t.Parallel()
	d := newDock(t)
	p := d.process(house())
	p.keys("k", "k", "k")
	d.answer = func(b *core.Batch) core.Response {
		d.pass(s)
		if b.Buffer == "b" {
			return core.Response{Status: 503}
		}
		return core.Response{Status: 200}
	}
	r, err := p.flusher.Flush(context.Background(), core.FlushOptions{Only: []string{"x", "z", "b", "y", "x", "a", "z"}})
	require.NoError(t, err)
	require.False(t, r.OK())
	require.EqualError(t, r.Err(), `the flush failed for b: group "k": status 503`)
	require.Equal(t, core.Unavailable, core.CodeOf(r.Err()))
	require.Equal(t, []string{"x", "y"}, r.Unmatched)
	require.Equal(t, 5*s, r.Took)
	require.ErrorContains(t, r.Buffers[0].Err, "503")
	r.Buffers[0].Err = nil
	require.Equal(t, []core.BufferFlush{{Buffer: "b", Rows: 2}, {Buffer: "a", Rows: 3}, {Buffer: "z", Rows: 3}}, r.Buffers)
	var order []string
	for _, b := range d.taken() {
		order = append(order, b.Buffer)
	}
	require.Equal(t, []string{"b", "a", "a", "z", "z"}, order)
}

func TestFlushNamesEveryBufferThatFailed(t *testing.T) {
	t.Parallel()
	r := core.FlushReport{Buffers: []core.BufferFlush{
		{Buffer: "a", Err: core.Errorf(core.Unavailable, "the turn is lost")}, {Buffer: "b"}, {Buffer: "c", Err: fmt.Errorf("plain")},
		{Buffer: "d", AckErr: broken(), RecoverErr: broken(), ReleaseErr: broken()},
	}}
	require.EqualError(t, r.Err(), "the flush failed for a: the turn is lost; c: plain")
}

func TestFlushOfNoBuffer(t *testing.T) {
	t.Parallel()
	d := newDock(t)
	_, err := d.process(docked()).flusher.FlushBuffer(context.Background(), "nosuch", core.FlushOptions{})
	require.Equal(t, core.NotFound, core.CodeOf(err))
	require.EqualError(t, err, `there is no buffer "nosuch"`)

	_, err = d.process(docked()).flusher.FlushBuffer(context.Background(), "b~held", core.FlushOptions{})
	require.Equal(t, core.NotFound, core.CodeOf(err), "what is held of another is no buffer")
	_, err = d.process(docked()).flusher.Flush(context.Background(), core.FlushOptions{Only: []string{"b~held"}, Strict: true})
	require.Equal(t, core.Invalid, core.CodeOf(err))

	c := docked()
	c.Buffers = nil
	p := d.process(c)
	_, err = p.flusher.Flush(context.Background(), core.FlushOptions{Only: []string{"b"}, Strict: true})
	require.EqualError(t, err, `only names "b", which is no buffer; there is none`)
	r, err := p.flusher.Flush(context.Background(), core.FlushOptions{Strict: true})
	require.NoError(t, err, "without only, strict has nothing to check")
	require.True(t, r.OK())
	require.Empty(t, r.Buffers)
	require.Empty(t, p.flusher.Scheduled())
}

func TestFlushSchedule(t *testing.T) {
	t.Parallel()
	c := house()
	c.Buffers[1].FlushEvery = 0
	c.Buffers[2].FlushEvery = time.Hour
	require.Equal(t, []core.Schedule{{Buffer: "b", Every: time.Minute}, {Buffer: "z", Every: time.Hour}},
		newDock(t).process(c).flusher.Scheduled())
}

func TestFlushOfGroups(t *testing.T) {
	t.Parallel()
	d := newDock(t)
	p := d.process(docked(func(b *core.Buffer) { b.Shards = 4 }))
	for range 10 {
		p.keys("k", "k", "l", "l", "m")
	}
	r := p.flush(core.FlushOptions{Groups: []string{"l", "k", "nosuch", "l"}})
	require.Equal(t, core.BufferFlush{Buffer: "b", Rows: 40}, r)
	require.Equal(t, []string{"m"}, d.busyGroups(), "of the others every shard")
	require.Equal(t, core.BufferFlush{Buffer: "b"}, p.flush(core.FlushOptions{Force: true, Groups: []string{}}))
}

// In an ordered group nothing passes a batch that waits for its retry.
func TestFlushKeepsTheOrder(t *testing.T) {
	t.Parallel()
	d := newDock(t)
	p := d.process(docked(func(b *core.Buffer) { b.Ordered = true }))
	p.put(`{"k":"k","n":1}`, `{"k":"k","n":2}`, `{"k":"k","n":3}`)
	d.answer = refusing(500)
	require.Error(t, p.flush(core.FlushOptions{}).Err)
	first := d.taken()
	require.Len(t, first, 1)
	d.answer = nil
	require.Equal(t, core.BufferFlush{Buffer: "b"}, p.flush(core.FlushOptions{}), "its retry is not due")
	r := p.flush(core.FlushOptions{Force: true})
	require.Equal(t, core.BufferFlush{Buffer: "b", Rows: 3, Recovered: &core.Released{Claims: 1, Rows: 2}}, r)
	sent := d.taken()
	require.Equal(t, first[0].ID, sent[0].ID)
	require.Equal(t, []string{`{"k":"k","n":3}`}, bodies(sent[1].Items))
}

// A release whose lease has passed on changes nothing, and is told.
func TestFlushReleaseOfALostLease(t *testing.T) {
	t.Parallel()
	d := newDock(t)
	p, q := d.process(docked()), d.process(docked())
	p.keys("a")
	d.answer = func(*core.Batch) core.Response {
		d.answer = nil
		d.pass(31 * s)
		q.flush(core.FlushOptions{Force: true})
		return core.Response{Status: 500}
	}
	r := p.flush(core.FlushOptions{})
	require.ErrorContains(t, r.Err, "status 500")
	require.Equal(t, core.Conflict, core.CodeOf(r.ReleaseErr))
	require.Empty(t, d.busyGroups(), "the other has settled it")
}

// What a fold takes long to read stays its own.
func TestFoldKeepsItsClaimWhileItReads(t *testing.T) {
	t.Parallel()
	d := newDock(t)
	folds := docked(windowed, func(b *core.Buffer) { b.Fold = []core.FoldColumn{{Name: "n", Expr: "count"}} })
	p, q := d.process(folds), d.process(folds)
	for range 5 {
		events := make([]string, 1000)
		for i := range events {
			events[i] = `{"ts":"2023-11-14T22:01:00Z"}`
		}
		p.put(events...)
	}
	d.answer = refusing(500)
	require.Error(t, p.flush(core.FlushOptions{}).Err)
	d.answer = nil
	first := d.taken()
	reads := 0
	d.read = func() error {
		if reads++; reads < 10 {
			d.pass(9 * s)
			other := q.flush(core.FlushOptions{Force: true})
			if other.Rows != 0 || other.RecoverErr != nil {
				return core.Errorf(core.Internal, "another has taken it: %+v", other)
			}
		}
		return nil
	}
	r := p.flush(core.FlushOptions{Force: true})
	require.Equal(t, core.BufferFlush{Buffer: "b", Buckets: 1, Rows: 1, Recovered: &core.Released{Claims: 1, Rows: 1}}, r)
	require.Equal(t, 5, reads)
	sent := d.taken()
	require.Len(t, sent, 1)
	require.Equal(t, first[0].ID, sent[0].ID)
	require.Equal(t, 2, sent[0].Attempt)
	require.Contains(t, string(sent[0].Items[0].Body), `"n":5000}`)
}

// Flushes, deliverers and senders at the same time send every event once.
func TestFlushersAndDeliverersRace(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		config *core.Config
	}{
		{"groups", docked(func(b *core.Buffer) { b.FlushEvery, b.Concurrency = 0, 3 })},
		{"windows", docked(windowed, func(b *core.Buffer) { b.Concurrency = 3 })},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			d := newDock(t)
			p := d.process(tc.config)
			var racing sync.WaitGroup
			for w := range 4 {
				racing.Go(func() {
					for i := range 60 {
						ts := noon.Add(-time.Duration(i%7) * time.Minute)
						if err := p.tryPut(fmt.Sprintf(`{"k":"%d","ts":%d,"n":"%d/%d"}`, i%3, ts, w, i)); err != nil {
							t.Error(err)
						}
					}
				})
				racing.Go(func() {
					for range 20 {
						p.flush(core.FlushOptions{Force: w%2 == 0, Final: w > 1})
					}
				})
				racing.Go(func() {
					for range 20 {
						if err := p.deliverAll(); err != nil {
							t.Error(err)
						}
					}
				})
			}
			racing.Wait()
			d.pass(time.Hour)
			p.flush(core.FlushOptions{Force: true})
			times := map[string]int{}
			for _, b := range d.taken() {
				for _, body := range bodies(b.Items) {
					times[body]++
				}
			}
			require.Len(t, times, 240)
			for body, n := range times {
				require.Equal(t, 1, n, body)
			}
		})
	}
}
