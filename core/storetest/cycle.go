package storetest

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

var seedFlag = flag.Uint64("storetest.seed", 0, "seed of the deliverers' choices; 0: a random one, which is logged")

var cycleTests = []test{
	{"cycles of claim, ack, release, takeover and shrinking settle every item once", cycleUnordered},
	{"the same in ordered groups, in order", cycleOrdered},
}

func cycleUnordered(t *testing.T, p *probe) {
	policy := calm()
	policy.Concurrency = 3
	cycle(t, p, policy)
}

func cycleOrdered(t *testing.T, p *probe) {
	policy := calm()
	policy.Ordered = true
	c := cycle(t, p, policy)
	for ref, order := range c.order {
		next := map[string]int{}
		for _, id := range order {
			var writer string
			var n int
			_, err := fmt.Sscanf(id, "%s %d", &writer, &n)
			require.NoError(t, err)
			require.Equal(t, next[writer], n, "%v: %s settled before the one ahead of it", ref, id)
			next[writer]++
		}
	}
}

// cycles is a run of deliverers that fail in every way, on a clock that each
// of their steps moves on.
type cycles struct {
	s      core.Store
	policy *core.Policy
	refs   []core.Ref
	now    atomic.Int64

	settling sync.Mutex

	mu      sync.Mutex
	settled map[string]int        // by event
	order   map[core.Ref][]string // settled events, first to last
}

func cycle(t *testing.T, p *probe, policy *core.Policy) *cycles {
	const workers, steps, events = 6, 60, 40
	policy.Lease = 2 * time.Second
	c := &cycles{s: p.s, policy: policy, settled: map[string]int{}, order: map[core.Ref][]string{}}
	c.now.Store(int64(start))
	for i := range 3 {
		c.refs = append(c.refs, core.Ref{Buffer: "b", Key: fmt.Sprint(i)})
	}
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-storetest.seed=%d", seed)
	var wg sync.WaitGroup
	for w := range workers {
		rnd := rand.New(rand.NewPCG(seed, uint64(w)))
		wg.Go(func() {
			for i := range events {
				if err := c.append(w, i); err != nil {
					t.Errorf("append: %v", err)
					return
				}
			}
		})
		wg.Go(func() {
			for range steps {
				if err := c.step(rnd, c.refs[rnd.IntN(len(c.refs))], rnd.IntN(ends)); err != nil {
					t.Errorf("step: %v", err)
					return
				}
			}
		})
	}
	wg.Wait()
	c.finish(t, p)
	require.Len(t, c.settled, workers*events*len(c.refs))
	for id, n := range c.settled {
		require.Equal(t, 1, n, "event %s", id)
	}
	return c
}

func (c *cycles) tick(d time.Duration) core.Millis {
	return core.Millis(c.now.Add(d.Milliseconds()))
}

// append gives every group one event.
func (c *cycles) append(w, i int) error {
	now := c.tick(time.Millisecond)
	var parts []core.Part
	for _, ref := range c.refs {
		parts = append(parts, core.Part{Ref: ref, Life: fmt.Sprintf("life%sx%dx%d", ref.Key, w, i), Policy: c.policy,
			Events: []core.Event{event(fmt.Sprintf("%sw%d %d", ref.Key, w, i), now, i)}})
	}
	_, err := c.s.Append(context.Background(), now, parts)
	return err
}

// The ways in which a delivery ends.
const (
	acked = iota
	released
	shrunk
	died      // nobody settles it, and another takes it over
	overtaken // it settles after its lease has passed, perhaps too late
	advanced  // it settles rows, and dies

	ends
)

// step is one delivery of a group, if there is something to deliver.
func (c *cycles) step(rnd *rand.Rand, ref core.Ref, end int) error {
	if err := c.hurry(rnd, ref); err != nil {
		return err
	}
	held, items, err := c.take(ref, 1+rnd.IntN(6))
	if err != nil || len(items) == 0 {
		return err
	}
	var failed core.Bits
	left := map[uint64]bool{}
	switch end {
	case died:
		return nil
	case overtaken:
		c.tick(c.policy.Lease)
	case shrunk:
		from := rnd.IntN(len(items))
		for i, item := range items {
			fails := i == from || i > from && rnd.IntN(2) == 0
			if fails {
				failed = failed.With(int(item.Seq - held.From))
			}
			left[item.Seq] = fails || i > from && c.policy.Ordered
		}
	}
	now := c.tick(10 * time.Millisecond)
	settle := func(g *core.Group) error {
		switch end {
		case advanced:
			return g.Advance(held.ID, held.Lease, "rows", held.Sent+1, c.policy, now)
		case released:
			return g.Release(held.ID, held.Lease, now.Add(50*time.Millisecond), "no", c.policy, now)
		case shrunk:
			return g.Shrink(held.ID, held.Lease, failed, now.Add(50*time.Millisecond), "some", c.policy, now)
		}
		return g.Ack(held.ID, held.Lease, c.policy, now)
	}
	if c.policy.Ordered { // the order noted is the order settled in
		c.settling.Lock()
		defer c.settling.Unlock()
	}
	if _, err := c.s.Update(context.Background(), ref, nil, settle); err != nil {
		if core.CodeOf(err) == core.Conflict {
			return nil // overtaken
		}
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, item := range items {
		if end != released && end != advanced && !left[item.Seq] {
			c.settled[item.ID]++
			c.order[ref] = append(c.order[ref], item.ID)
		}
	}
	return nil
}

// hurry, now and then, closes a group, which goes on to take what is of no
// window, or makes a claim due that waits.
func (c *cycles) hurry(rnd *rand.Rand, ref core.Ref) error {
	what, now := rnd.IntN(10), c.tick(time.Millisecond)
	if what > 1 {
		return nil
	}
	_, err := c.s.Update(context.Background(), ref, nil, func(g *core.Group) error {
		switch {
		case what == 0 && !g.Empty():
			g.Close(now.Add(time.Minute), c.policy, now)
		case what == 1 && len(g.Claims) > 0:
			g.Hasten(g.Claims[0].ID, now)
		}
		return nil
	})
	return err
}

// take holds a claim of the group: one that wants a deliverer, or a new one.
func (c *cycles) take(ref core.Ref, n int) (core.Claim, []core.Item, error) {
	ctx, now := context.Background(), c.tick(10*time.Millisecond)
	g, err := c.s.Group(ctx, ref)
	if err != nil {
		return core.Claim{}, nil, err
	}
	var held core.Claim
	if e := g.Expired(c.policy, now); e != nil {
		g, err = c.s.Update(ctx, ref, nil, func(g *core.Group) (err error) {
			held, err = g.Recover(e.ID, c.policy, now)
			return err
		})
	} else {
		held, g, err = claim(c.s, ref, n, c.policy, now)
	}
	if err != nil {
		if core.CodeOf(err) == core.Conflict {
			err = nil
		}
		return core.Claim{}, nil, err
	}
	if held.ID == "" {
		return held, nil, nil // nothing but void numbers
	}
	page, err := c.s.Items(ctx, ref, &g, core.Span{From: held.From, To: held.To})
	if err != nil {
		return held, nil, err
	}
	var items []core.Item
	for _, item := range page.Items {
		if held.Has(item.Seq) {
			items = append(items, item)
		}
	}
	return held, items, nil
}

// finish delivers all that is left.
func (c *cycles) finish(t *testing.T, p *probe) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(1, 1))
	for _, ref := range c.refs {
		for range 10_000 {
			if p.empty(ref) {
				break
			}
			c.tick(c.policy.Lease)
			require.NoError(t, c.step(rnd, ref, acked))
		}
		require.True(t, p.empty(ref), "%v never comes to its end", ref)
	}
}
