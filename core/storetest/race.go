package storetest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

var raceTests = []test{
	{"32 writers of one group lose, double and misplace nothing", raceWriters},
	{"one of 8 claimers wins each claim", raceClaims},
	{"one of 8 wins each takeover and each settling", raceSettling},
	{"claimers beside writers take every item once", raceDrain},
}

const writers, claimers = 32, 8

// write appends requests of one to three events of writer w to a group, and
// returns the number that each event was answered to have. Each request has
// another part, for a group of the writer's own.
func write(t *testing.T, s core.Store, ref core.Ref, w, requests int) map[string]uint64 {
	numbers := map[string]uint64{}
	own, policy := core.Ref{Buffer: ref.Buffer, Key: fmt.Sprintf("of writer %d", w)}, calm()
	for r := range requests {
		shared := core.Part{Ref: ref, Life: fmt.Sprintf("life%d", w), Policy: policy}
		for i := range r%3 + 1 {
			shared.Events = append(shared.Events, event(fmt.Sprintf("%d-%d-%d", w, r, i), start, 10*i))
		}
		a, err := s.Append(context.Background(), start, []core.Part{part(own, policy, start, r, 1, 1), shared})
		if err != nil {
			t.Errorf("append of writer %d: %v", w, err)
			return numbers
		}
		for i, e := range shared.Events {
			numbers[e.ID] = a[1].First + uint64(i)
		}
	}
	return numbers
}

func raceWriters(t *testing.T, p *probe) {
	const requests = 20
	ref := core.Ref{Buffer: "b", Key: "shared"}
	var answered [writers]map[string]uint64
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() { answered[w] = write(t, p.s, ref, w, requests) })
	}
	wg.Wait()

	check := func() {
		g := p.group(ref)
		stored := map[string]uint64{}
		for _, item := range p.all(ref, 1, g.Tail, 300) {
			require.NotContains(t, stored, item.ID, "stored twice")
			stored[item.ID] = item.Seq
		}
		want := map[string]uint64{}
		for w := range writers {
			var mine []uint64
			for r := range requests {
				for i := range r%3 + 1 {
					id := fmt.Sprintf("%d-%d-%d", w, r, i)
					want[id] = answered[w][id]
					mine = append(mine, stored[id])
				}
			}
			require.True(t, slices.IsSorted(mine), "writer %d's order: %v", w, mine)
			own := p.group(core.Ref{Buffer: "b", Key: fmt.Sprintf("of writer %d", w)})
			require.Equal(t, uint64(requests), own.Pending())
		}
		require.Equal(t, want, stored, "each event under the number it was answered to have")
	}
	check()
	p.reopen()
	check()
}

// race runs fn in n goroutines at once and returns their errors.
func race(n int, fn func(i int) error) []error {
	errs := make([]error, n)
	gate := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-gate
			errs[i] = fn(i)
		})
	}
	close(gate)
	wg.Wait()
	return errs
}

// winner is the only one without an error; the others' must be conflicts.
func winner(t *testing.T, errs []error, what string) int {
	t.Helper()
	won := -1
	for i, err := range errs {
		if err == nil {
			require.Equal(t, -1, won, "%s: two winners", what)
			won = i
			continue
		}
		require.Equal(t, core.Conflict, core.CodeOf(err), "%s: %v", what, err)
	}
	require.NotEqual(t, -1, won, "%s: no winner: %v", what, errs)
	return won
}

func raceClaims(t *testing.T, p *probe) {
	ref, policy := core.Ref{Buffer: "b", Key: "k"}, calm()
	p.append(start, part(ref, policy, start, 1, 50, 10))
	for round := range 10 {
		what := fmt.Sprintf("round %d", round)
		next, _, err := taking(p.s, ref, 5)
		require.NoError(t, err)
		claims := make([]core.Claim, claimers)
		won := winner(t, race(claimers, func(i int) error {
			_, err := p.s.Update(context.Background(), ref, nil, func(g *core.Group) (err error) {
				claims[i], err = g.Claim(next, policy, start)
				return err
			})
			return err
		}), what)
		g := p.group(ref)
		same(t, []core.Claim{claims[won]}, g.Claims, what)
		p.ack(ref, claims[won], policy, start)
	}
	require.True(t, p.empty(ref))
}

func raceSettling(t *testing.T, p *probe) {
	ref, policy := core.Ref{Buffer: "b", Key: "k"}, calm()
	p.append(start, part(ref, policy, start, 1, 5, 10))
	held := p.claim(ref, 5, policy, start)
	now := start
	for round := range 5 {
		now = now.Add(policy.Lease)
		claims := make([]core.Claim, claimers)
		won := winner(t, race(claimers, func(i int) error {
			_, err := p.s.Update(context.Background(), ref, nil, func(g *core.Group) (err error) {
				claims[i], err = g.Recover(held.ID, policy, now)
				return err
			})
			return err
		}), fmt.Sprintf("takeover %d", round))
		late := race(2, func(int) error {
			_, err := p.s.Update(context.Background(), ref, nil, func(g *core.Group) error {
				return g.Ack(held.ID, held.Lease, policy, now)
			})
			return err
		})
		for _, err := range late {
			require.Equal(t, core.Conflict, core.CodeOf(err), "settling after the takeover: %v", err)
		}
		held = claims[won]
	}
	winner(t, race(claimers, func(int) error {
		_, err := p.s.Update(context.Background(), ref, nil, func(g *core.Group) error {
			return g.Ack(held.ID, held.Lease, policy, now)
		})
		return err
	}), "ack")
	require.True(t, p.empty(ref))
}

func raceDrain(t *testing.T, p *probe) {
	const requests = 10
	ref, policy := core.Ref{Buffer: "b", Key: "shared"}, calm()
	var wg sync.WaitGroup
	written := make(chan struct{})
	for w := range writers {
		wg.Go(func() { write(t, p.s, ref, w, requests) })
	}
	var drains sync.WaitGroup
	var mu sync.Mutex
	taken := map[string]int{}
	for range claimers {
		drains.Go(func() {
			for !t.Failed() {
				items, err := drain(p.s, ref, policy)
				if err != nil {
					t.Errorf("drain: %v", err)
					return
				}
				mu.Lock()
				for _, item := range items {
					taken[item.ID]++
				}
				mu.Unlock()
				if len(items) > 0 {
					continue
				}
				select {
				case <-written:
					g, err := p.s.Group(context.Background(), ref)
					if err != nil || g.Pending() == 0 {
						return
					}
				default:
				}
			}
		})
	}
	wg.Wait()
	close(written)
	drains.Wait()
	total := 0
	for r := range requests {
		total += writers * (r%3 + 1)
	}
	require.Len(t, taken, total)
	for id, n := range taken {
		require.Equal(t, 1, n, "event %s", id)
	}
	require.True(t, p.empty(ref))
}

// drain claims up to five items, reads them and acks. No items: there are
// none now, or another was faster.
func drain(s core.Store, ref core.Ref, policy *core.Policy) ([]core.Item, error) {
	ctx := context.Background()
	next, life, err := taking(s, ref, 5)
	if err != nil || next.To < next.From {
		return nil, err
	}
	c, g, err := openClaim(s, ref, next, life, policy, start)
	if core.CodeOf(err) == core.Conflict || err == nil && next.Items == 0 {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	page, err := s.Items(ctx, ref, &g, core.Span{From: c.From, To: c.To})
	if err != nil {
		return nil, err
	}
	_, err = s.Update(ctx, ref, nil, func(g *core.Group) error { return g.Ack(c.ID, c.Lease, policy, start) })
	return page.Items, err
}
