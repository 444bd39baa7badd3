package dynamo_test

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/infra/awstest"
)

// TestRoom lets 32 writers at a group of ten, while claims make room.
func TestRoom(t *testing.T) {
	const limit, writers, tries = 10, 32, 4
	r, ref, p := setup(t), keyed("k"), policy(capped(limit))
	var stored, refused atomic.Int64
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := range tries {
				_, err := r.Append(r.ctx, r.clock.Now(), parts(ref, p, fmt.Sprintf("%d/%d", w, i)))
				switch core.CodeOf(err) {
				case core.Full:
					refused.Add(1)
				default:
					if err != nil {
						t.Error(err)
					}
					stored.Add(1)
				}
			}
		})
	}
	stop := make(chan struct{})
	var claimed int
	var watch sync.WaitGroup
	watch.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			g, err := r.Group(r.ctx, ref)
			if err != nil || g.Pending() > limit {
				t.Errorf("%d pending: %v", g.Pending(), err)
				return
			}
			if g.Pending() == 0 || claimed >= 30 {
				continue
			}
			page, err := r.Items(r.ctx, ref, &g, core.Span{From: g.Head + 1, To: g.Tail, MaxItems: 3})
			if err != nil || len(page.Items) == 0 {
				continue
			}
			held, err := claim(r.ctx, r, ref, &g, &page, p, r.clock.Now())
			if err != nil {
				continue
			}
			claimed += len(page.Items)
			if _, err := r.Update(r.ctx, ref, nil, func(g *core.Group) error { return g.Ack(held.ID, held.Lease, p, r.clock.Now()) }); err != nil {
				t.Error(err)
			}
		}
	})
	all.Wait()
	close(stop)
	watch.Wait()
	g := r.group(ref)
	require.Equal(t, stored.Load(), int64(g.Tail))
	require.Equal(t, int64(writers*tries), stored.Load()+refused.Load())
	require.Equal(t, g.Head+limit, g.Ceiling)
	left := int(limit - g.Pending())
	for _, n := range numbered("z", left) {
		r.put(ref, p, n)
	}
	_, err := r.Append(r.ctx, r.clock.Now(), parts(ref, p, "full"))
	require.Equal(t, core.Full, core.CodeOf(err))
	require.Len(t, r.drain(ref, p), limit)
}

// TestRoomOfAnotherPolicy changes the limit under a group.
func TestRoomOfAnotherPolicy(t *testing.T) {
	r, ref := setup(t), keyed("k")
	fits := func(p *core.Policy, n int) int {
		for i := range n {
			_, err := r.Append(r.ctx, r.clock.Now(), parts(ref, p, fmt.Sprintf("%d-%d", p.CapItems, i)))
			if err != nil {
				require.Equal(t, core.Full, core.CodeOf(err), "%v", err)
				require.Positive(t, core.RetryAfterOf(err))
				return i
			}
		}
		return n
	}
	require.Equal(t, 4, fits(policy(capped(4)), 10))
	require.Equal(t, 3, fits(policy(capped(7)), 10), "raised")
	require.Equal(t, 0, fits(policy(capped(3)), 10), "lowered below what waits")
	require.Equal(t, 5, fits(policy(), 5), "none")
	require.Zero(t, r.group(ref).Ceiling)
	require.Equal(t, 2, fits(policy(capped(14)), 10), "one again")
	r.claim(ref, 10, policy(capped(6)))
	require.Equal(t, 2, fits(policy(capped(6)), 10), "lowered, and a claim has made room")
	require.Equal(t, uint64(6), r.group(ref).Ceiling-r.group(ref).Head)
	require.Len(t, r.drain(ref, policy(capped(6))), 16)
	require.Equal(t, 6, fits(policy(capped(6)), 10))
}

// TestRefusedIsCountedOnce refuses a request for one of its groups, and lets a
// deliverer look at what it leaves in the other: between the writer's filling
// its numbers and its noting that they are void.
func TestRefusedIsCountedOnce(t *testing.T) {
	for _, meanwhile := range []bool{false, true} {
		t.Run(fmt.Sprintf("another notes it meanwhile: %t", meanwhile), func(t *testing.T) {
			r, a, b, p := setup(t), keyed("a"), keyed("b"), policy(capped(4))
			r.put(a, p, "a1")
			r.put(b, p, numbered("b", 4)...)
			other := r.open(r.raw)
			r.faults.After(func(ctx context.Context, c awstest.Call, _ any, err error) {
				if c.Op != "PutItem" || !meanwhile {
					return
				}
				require.NoError(t, err)
				g, err := other.Group(ctx, a)
				require.NoError(t, err)
				page, err := other.Items(ctx, a, &g, core.Span{From: 1, To: g.Tail})
				require.NoError(t, err)
				void := page.End - uint64(len(page.Items))
				require.Equal(t, uint64(2), void)
				_, err = other.Update(ctx, a, &g, func(g *core.Group) error {
					g.Voided(void, 0, p, r.clock.Now())
					return nil
				})
				require.NoError(t, err)
			})
			_, err := r.Append(r.ctx, r.clock.Now(), append(parts(a, p, "a2", "a3"), parts(b, p, "b5")...))
			require.Equal(t, core.Full, core.CodeOf(err))
			r.faults.After(nil)
			g := r.group(a)
			require.Equal(t, uint64(2), g.Void)
			require.Equal(t, uint64(2+4), g.Ceiling)
			r.put(a, p, "a4", "a5", "a6")
			_, err = r.Append(r.ctx, r.clock.Now(), parts(a, p, "a7"))
			require.Equal(t, core.Full, core.CodeOf(err))
			require.Equal(t, []string{"a1", "a4", "a5", "a6"}, r.drain(a, p))
		})
	}
}

// TestRefusedTwiceInOneRequest gives up two parts of one group.
func TestRefusedTwiceInOneRequest(t *testing.T) {
	r, a, b, p := setup(t), keyed("a"), keyed("b"), policy(capped(4))
	r.put(b, p, numbered("b", 4)...)
	_, err := r.Append(r.ctx, r.clock.Now(), append(append(parts(a, p, "a1"), parts(a, p, "a2", "a3")...), parts(b, p, "b5")...))
	require.Equal(t, core.Full, core.CodeOf(err))
	require.Equal(t, uint64(3), r.group(a).Void)
	r.put(a, p, numbered("x", 4)...)
	require.Equal(t, numbered("x", 4), r.drain(a, p))
}

// TestBig stores what is large in every way that is allowed.
func TestBig(t *testing.T) {
	r, p := setup(t), policy()
	for _, c := range []struct {
		name         string
		events, size int
	}{
		{"one of 350 KiB", 1, 350 << 10},
		{"two of 350 KiB", 2, 350 << 10},
		{"100 of 100 KB", 100, 100_000},
		{"2,500 of nothing", 2500, 0},
	} {
		ref := keyed(c.name)
		ps := parts(ref, p, "x")
		ps[0].Events = nil
		want := numbered("x", c.events)
		for _, n := range want {
			e := big(n, c.size)
			e.Headers = []core.Header{{Name: "a", Value: "b"}}
			ps[0].Events = append(ps[0].Events, e)
		}
		r.putAll(ps)
		g := r.group(ref)
		page, err := r.Items(r.ctx, ref, &g, core.Span{From: 1, To: g.Tail})
		require.NoError(t, err)
		require.Equal(t, want, names(page.Items), c.name)
		require.True(t, bytes.Equal(ps[0].Events[c.events-1].Body, page.Items[c.events-1].Body), c.name)
		require.Equal(t, g.TailBytes, page.Through)
		require.Equal(t, g.TailBytes, page.Offsets[c.events-1])
	}
}

// TestCutSegments claims in steps that cut segments, and takes claims over in
// the middle of them.
func TestCutSegments(t *testing.T) {
	r, ref, p := setup(t), keyed("k"), policy(func(p *core.Policy) { p.Lease = time.Second })
	r.put(ref, p, numbered("x", 300)...)
	r.put(ref, p, numbered("y", 10)...)
	type batch struct {
		core.Claim
		items []string
	}
	var batches []batch
	for _, n := range []int{7, 100, 150, 1, 43} {
		held, got := r.claim(ref, n, p)
		require.Len(t, got, n)
		batches = append(batches, batch{held, got})
	}
	// a partial success leaves the 2nd, 50th and 99th of the second
	var failed core.Bits
	for _, i := range []int{1, 49, 98} {
		failed = failed.With(i)
	}
	_, err := r.Update(r.ctx, ref, nil, func(g *core.Group) error {
		return g.Shrink(batches[1].ID, batches[1].Lease, failed, r.clock.Now(), "no", p, r.clock.Now())
	})
	require.NoError(t, err)
	batches[1].items = []string{"x9", "x57", "x106"}
	r.clock.pass(time.Minute)
	for i, b := range batches {
		id := b.ID
		if i == 1 {
			id += ".2"
		}
		var held core.Claim
		_, err := r.Update(r.ctx, ref, nil, func(g *core.Group) (err error) {
			held, err = g.Recover(id, p, r.clock.Now())
			return err
		})
		require.NoError(t, err)
		require.Equal(t, b.items, r.members(ref, held), "batch %d", i)
	}
	page, _ := r.pending(ref, 0)
	require.Equal(t, numbered("y", 10)[1:], names(page.Items))
}
