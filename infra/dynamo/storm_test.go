package dynamo_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/infra/awstest"
)

var stormSeed = flag.Uint64("dynamo.seed", 0, "seed of the random faults; 0: a new one")

// TestStorm lets 32 writers and 8 claimers loose on one group, under random
// faults. Every item is claimed once, and each writer's in order.
func TestStorm(t *testing.T) {
	const writers, claimers, requests = 32, 8, 4
	r, ref := setup(t, awstest.Attempts(3)), keyed("k")
	p := policy(func(p *core.Policy) { p.Lease = 1000 * retention })
	seed := *stormSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-dynamo.seed=%d", seed)
	var mu sync.Mutex
	rnd := rand.New(rand.NewPCG(seed, 1))
	r.faults.Set(func(context.Context, awstest.Call) awstest.Fault {
		mu.Lock()
		defer mu.Unlock()
		r.clock.now.Add(rnd.Int64N(20))
		switch n := rnd.IntN(100); {
		case n < 3:
			return awstest.Unsent
		case n < 6:
			return awstest.Lost
		case n < 9:
			return awstest.Throttle
		}
		return awstest.None
	})

	acked := make([][]string, writers)
	var writing atomic.Int64
	writing.Store(writers)
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			defer writing.Add(-1)
			for i := range requests {
				put := []string{fmt.Sprintf("%d/%d/a", w, i), fmt.Sprintf("%d/%d/b", w, i)}
				if _, err := r.Append(r.ctx, r.clock.Now(), parts(ref, p, put...)); err == nil {
					acked[w] = append(acked[w], put...)
				}
			}
		})
	}
	var gotMu sync.Mutex
	type batch struct {
		from  uint64
		items []string
	}
	var got []batch
	for range claimers {
		all.Go(func() {
			for {
				r.clock.now.Add(50)
				last := writing.Load() == 0
				g, err := r.Group(r.ctx, ref)
				if err == nil && last && (g.Pending() == 0 || len(g.Claims) == core.MaxClaims) {
					return // nothing is left, or claims that nobody knows of are in the way
				}
				if err != nil || g.Pending() == 0 {
					continue
				}
				page, err := r.Items(r.ctx, ref, &g, core.Span{From: g.Head + 1, To: g.Tail, MaxItems: 7})
				if err != nil || page.End == g.Head {
					continue
				}
				held, err := claim(r.ctx, r, ref, &g, &page, p, r.clock.Now())
				if err != nil || len(page.Items) == 0 {
					continue
				}
				gotMu.Lock()
				got = append(got, batch{held.From, names(page.Items)})
				gotMu.Unlock()
				for { // until it is settled: then its answer may have been lost before
					_, err := r.Update(r.ctx, ref, nil, func(g *core.Group) error { return g.Ack(held.ID, held.Lease, p, r.clock.Now()) })
					if err == nil || core.CodeOf(err) == core.Conflict {
						break
					}
				}
			}
		})
	}
	all.Wait()
	r.faults.Set(nil)
	slices.SortFunc(got, func(a, b batch) int { return int(a.from) - int(b.from) })
	var order []string
	for _, b := range got {
		order = append(order, b.items...)
	}
	// claims whose answers were lost are taken over, and may lie before others
	var late []string
	for _, c := range r.group(ref).Claims {
		late = append(late, r.members(ref, c)...)
	}
	rest := r.drainAfter(ref, p)
	seen := map[string]int{}
	for _, n := range slices.Concat(order, rest) {
		require.Zero(t, seen[n], "%s was claimed twice", n)
		seen[n]++
	}
	for w := range acked {
		last := -1
		for _, n := range acked[w] {
			require.Equal(t, 1, seen[n], "%s is lost", n)
			if slices.Contains(late, n) {
				continue
			}
			at := slices.Index(slices.Concat(order, rest), n)
			require.Greater(t, at, last, "%s was overtaken", n)
			last = at
		}
	}
	require.Empty(t, r.lost())
	t.Logf("%d batches, %d items, %d behind", len(got), len(seen), len(rest))
}

// drainAfter is drain where leases last for very long.
func (r *rig) drainAfter(ref core.Ref, p *core.Policy) []string {
	r.t.Helper()
	_, err := r.Update(r.ctx, ref, nil, func(g *core.Group) error {
		g.Abandon()
		g.Rev++
		return nil
	})
	require.NoError(r.t, err)
	return r.drain(ref, p)
}

// TestWindowStorm closes a window under many writers and random faults. What
// was numbered is in the one claim, once; what was refused is not.
func TestWindowStorm(t *testing.T) {
	const writers, requests = 16, 6
	r, ref, p := setup(t, awstest.Attempts(3)), keyed("k"), policy(window)
	seed := *stormSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-dynamo.seed=%d", seed)
	var mu sync.Mutex
	rnd := rand.New(rand.NewPCG(seed, 1))
	r.faults.Set(func(context.Context, awstest.Call) awstest.Fault {
		mu.Lock()
		defer mu.Unlock()
		r.clock.now.Add(rnd.Int64N(20))
		return [...]awstest.Fault{awstest.Unsent, awstest.Lost, awstest.Throttle, awstest.None}[min(3, rnd.IntN(40))]
	})
	var stored, moved [writers][]string
	started := make(chan struct{}, writers)
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := range requests {
				name := fmt.Sprintf("%d/%d", w, i)
				a, err := r.Append(r.ctx, r.clock.Now(), parts(ref, p, name))
				switch {
				case err == nil && a[0].Closed:
					moved[w] = append(moved[w], name)
				case err == nil:
					stored[w] = append(stored[w], name)
				}
				if i == 2 {
					started <- struct{}{}
				}
			}
		})
	}
	for range writers / 2 {
		<-started
	}
	closer := &rig{t: t, ctx: r.ctx, clock: r.clock, table: r.table}
	closer.Store = closer.open(r.raw)
	closer.shut(ref, p)
	r.clock.pass(time.Hour)
	_, got := closer.whole(ref, p, 5)
	all.Wait()
	seen := map[string]int{}
	for _, name := range got {
		seen[name]++
	}
	for w := range writers {
		for _, name := range stored[w] {
			require.Equal(t, 1, seen[name], name)
		}
		for _, name := range moved[w] {
			require.Zero(t, seen[name], name)
		}
	}
	g := r.group(ref)
	require.Zero(t, g.Pending(), "the window takes no more")
	t.Logf("%d items in the window, %d numbers", len(got), g.Tail)
}
