package dynamo_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/infra/awstest"
)

// fencing is a plan by which a reader comes between a writer's numbering and
// the first of its puts, or each of them: it finds a hole that is old.
func (r *rig) fencing(ref core.Ref, times int) awstest.Plan {
	reader := r.open(r.raw)
	return func(ctx context.Context, c awstest.Call) awstest.Fault {
		if c.Op == "PutItem" && c.Nth <= times {
			r.clock.pass(time.Minute)
			g, err := reader.Group(ctx, ref)
			require.NoError(r.t, err)
			_, err = reader.Items(ctx, ref, &g, core.Span{From: g.Head + 1, To: g.Tail})
			require.NoError(r.t, err)
		}
		return awstest.None
	}
}

// TestFencedWriter lets writers wake up when their places are given away.
func TestFencedWriter(t *testing.T) {
	for _, times := range []int{1, 2, 4, 5} {
		t.Run(fmt.Sprintf("%d times", times), func(t *testing.T) {
			r, ref, p := setup(t), keyed("k"), policy()
			r.put(ref, p, "x1")
			r.faults.Set(r.fencing(ref, times))
			a, err := r.Append(r.ctx, r.clock.Now(), parts(ref, p, "x2", "x3"))
			r.faults.Set(nil)
			if times == 5 {
				require.Equal(t, core.Unavailable, core.CodeOf(err))
				require.Equal(t, []string{"x1"}, r.drain(ref, p))
				return
			}
			require.NoError(t, err)
			require.Equal(t, uint64(2+2*times), a[0].First)
			require.True(t, a[0].Armed, "nobody knows who has armed the check")
			require.False(t, a[0].Split, "all of it has moved")
			require.Equal(t, []string{"x1", "x2", "x3"}, r.drain(ref, p))
			require.Empty(t, r.lost())
		})
	}
}

// TestFencedInTheMiddle fences the second of three segments, before it or
// after it would have been put.
func TestFencedInTheMiddle(t *testing.T) {
	for _, nth := range []int{2, 3} {
		t.Run(fmt.Sprintf("before put %d", nth), func(t *testing.T) {
			r, ref, p := setup(t), keyed("k"), policy()
			reader := r.open(r.raw)
			r.faults.Set(func(ctx context.Context, c awstest.Call) awstest.Fault {
				if c.Op == "PutItem" && c.Nth == nth {
					r.clock.pass(time.Minute)
					g, err := reader.Group(ctx, ref)
					require.NoError(t, err)
					page, err := reader.Items(ctx, ref, &g, core.Span{From: 1, To: g.Tail})
					require.NoError(t, err)
					require.Len(t, page.Items, nth-1)
				}
				return awstest.None
			})
			ps := parts(ref, p, "x")
			ps[0].Events = []core.Event{big("x1", 300_000), big("x2", 300_000), big("x3", 300_000)}
			a := r.putAll(ps)
			r.faults.Set(nil)
			require.True(t, a.Split, "the first keep their numbers")
			require.Equal(t, uint64(4), a.First)
			g := r.group(ref)
			require.Equal(t, uint64(3+4-nth), g.Tail, "only what was fenced is numbered again")
			require.Equal(t, []string{"x1", "x2", "x3"}, r.drain(ref, p))
		})
	}
}

// TestFencedAndFull fences a writer whose group has no room for new numbers:
// what it has put already is kept, so it is not refused as a whole.
func TestFencedAndFull(t *testing.T) {
	r, ref, p := setup(t), keyed("k"), policy(capped(2))
	fence := r.fencing(ref, 2)
	r.faults.Set(func(ctx context.Context, c awstest.Call) awstest.Fault {
		if c.Op == "PutItem" && c.Nth == 2 {
			return fence(ctx, c)
		}
		return awstest.None
	})
	ps := parts(ref, p, "x")
	ps[0].Events = []core.Event{big("x1", 300_000), big("x2", 300_000)}
	_, err := r.Append(r.ctx, r.clock.Now(), ps)
	require.Equal(t, core.Unavailable, core.CodeOf(err), "%v", err)
	require.Positive(t, core.RetryAfterOf(err))
	r.faults.Set(nil)
	require.Equal(t, []string{"x1"}, r.drain(ref, p))
}

// TestYoungHole shows that what a writer may still fill ends a page, soon.
func TestYoungHole(t *testing.T) {
	for _, c := range []struct {
		name        string
		ahead, back int // items before and behind the hole
		clock       time.Duration
		young       bool
		want        int
	}{
		{name: "at the tail", ahead: 2, young: true, want: 2},
		{name: "in the middle", ahead: 2, back: 2, young: true, want: 2},
		{name: "at the head", back: 2, young: true, want: 0},
		{name: "alone", young: true, want: 0},
		{name: "a moment before it is old", ahead: 1, back: 1, clock: 2*time.Second - time.Millisecond, young: true, want: 1},
		{name: "old", ahead: 1, back: 1, clock: 2 * time.Second, want: 2},
		{name: "the clock is a little behind", ahead: 1, back: 1, clock: -time.Second, young: true, want: 1},
		{name: "the clock was set back", ahead: 1, back: 1, clock: -time.Hour, want: 2},
		{name: "the clock is far ahead", ahead: 1, back: 1, clock: 24 * time.Hour, want: 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, ref, p := setup(t), keyed("k"), policy()
			if c.ahead > 0 {
				r.put(ref, p, numbered("a", c.ahead)...)
			}
			r.hole(ref, p, 3)
			if c.back > 0 {
				r.put(ref, p, numbered("b", c.back)...)
			}
			made := r.clock.Now()
			r.clock.pass(c.clock)
			r.meter.Reset()
			page, g := r.pending(ref, 0)
			require.Len(t, page.Items, c.want)
			if !c.young {
				require.Zero(t, page.RetryAt)
				require.Equal(t, g.Tail, page.End)
				return
			}
			require.Equal(t, made.Add(2*time.Second), page.RetryAt)
			require.Equal(t, uint64(c.ahead), page.End)
			require.LessOrEqual(t, r.meter.Usage().Requests, 11)
			require.Zero(t, r.meter.Of("PutItem").Requests, "a young hole is not fenced")
			require.Empty(t, r.lost())
		})
	}
}

// TestFullPageNeedsNoMore shows that a page does not wait for what it would not take.
func TestFullPageNeedsNoMore(t *testing.T) {
	r, ref, p := setup(t), keyed("k"), policy()
	r.put(ref, p, "x1", "x2")
	r.hole(ref, p, 2)
	r.meter.Reset()
	page, _ := r.pending(ref, 2)
	require.Equal(t, []string{"x1", "x2"}, names(page.Items))
	require.Zero(t, page.RetryAt)
	require.Equal(t, 1, r.meter.Of("Query").Requests)
}

// TestHoles puts holes anywhere and reads in pages of every kind.
func TestHoles(t *testing.T) {
	for _, c := range []struct {
		name  string
		sizes []int // of requests; below zero: of dead ones
		page  int
	}{
		{"at the head", []int{-3, 2}, 0},
		{"at the tail", []int{2, -3}, 0},
		{"several", []int{-1, 1, -2, 2, -3, 3, -1}, 2},
		{"across a bucket's edge", []int{250, -20, 3}, 100},
		{"from an edge to an edge", []int{255, -256, 2}, 255},
		{"of 1,500 numbers", []int{2, -1500, 2}, 0},
		{"alone", []int{-5}, 0},
		{"a segment over two edges", []int{200, 700, -2, 1}, 300},
		{"10,000 items", []int{1000, 1000, 1000, 1000, 999, -1, 1000, 1000, 1000, 1000, 1000, 1000}, 10_000},
		{"a segment of 1,000", []int{1000, -1, 1000}, 999},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, ref, p := setup(t), keyed("k"), policy()
			var want []string
			for i, n := range c.sizes {
				if n < 0 {
					r.hole(ref, p, -n)
					continue
				}
				put := numbered(fmt.Sprintf("x%d.", i), n)
				r.put(ref, p, put...)
				want = append(want, put...)
			}
			r.clock.pass(time.Minute)
			var got []string
			for !r.empty(ref) {
				page, g := r.pending(ref, c.page)
				require.Greater(t, page.End, g.Head)
				held, err := claim(r.ctx, r.Store, ref, &g, &page, p, r.clock.Now())
				require.NoError(t, err)
				got = append(got, names(page.Items)...)
				if len(page.Items) == 0 {
					continue
				}
				require.Equal(t, names(page.Items), r.members(ref, held), "a claim's members stay the same")
				r.ack(ref, held, p)
			}
			require.Equal(t, want, got)
			require.Empty(t, r.lost())
			g := r.group(ref)
			require.Equal(t, g.TailBytes, g.HeadBytes)
		})
	}
}

func (r *rig) empty(ref core.Ref) bool {
	g := r.group(ref)
	return g.Empty()
}

// TestHoleBehindOldItems shows that a writer is waited for, and kept from
// writing late, also where what lies before it is older than half the
// retention: there, others were only slow.
func TestHoleBehindOldItems(t *testing.T) {
	r, ref, p := setup(t), keyed("k"), policy()
	r.put(ref, p, "x1")
	r.clock.pass(retention/2 + time.Hour)

	reader := r.open(r.raw)
	r.faults.Set(func(ctx context.Context, c awstest.Call) awstest.Fault {
		if c.Op != "PutItem" || c.Nth > 1 {
			return awstest.None
		}
		g, err := reader.Group(ctx, ref)
		require.NoError(t, err)
		page, err := reader.Items(ctx, ref, &g, core.Span{From: 1, To: g.Tail})
		require.NoError(t, err)
		require.Equal(t, uint64(1), page.End, "the writer is at work")
		require.NotZero(t, page.RetryAt)
		held, err := claim(ctx, reader, ref, &g, &page, p, r.clock.Now())
		require.NoError(t, err)
		require.Equal(t, uint64(1), held.To)
		return awstest.None
	})
	a, err := r.Append(r.ctx, r.clock.Now(), parts(ref, p, "x2"))
	require.NoError(t, err)
	require.Equal(t, uint64(2), a[0].First)
	r.faults.Set(nil)
	require.Equal(t, []string{"x1", "x2"}, r.drain(ref, p))
	require.Empty(t, r.lost())
}

// TestLoss deletes segments as the table does with those that nobody prolongs.
func TestLoss(t *testing.T) {
	for _, c := range []struct {
		name    string
		claim   int
		gone    []uint64 // first numbers of the segments that are deleted
		after   time.Duration
		behind  bool // something arrives late
		want    []string
		reports []string
	}{
		{"pending, at the head", 0, []uint64{1}, retention/2 + time.Hour, false, []string{"x3", "x4", "x5", "x6"}, []string{"1-2"}},
		{"pending, in the middle", 0, []uint64{3}, retention/2 + time.Hour, false, []string{"x1", "x2", "x5", "x6"}, []string{"3-4"}},
		{"pending, at the tail", 0, []uint64{5}, retention/2 + time.Hour, false, []string{"x1", "x2", "x3", "x4"}, []string{"5-6"}},
		{"pending, all", 0, []uint64{1, 3, 5}, retention/2 + time.Hour, false, nil, []string{"1-6"}},
		{"pending, before something fresh", 0, []uint64{3, 5}, retention/2 + time.Hour, true, []string{"x1", "x2", "y"}, []string{"3-6"}},
		{"pending, young: a hole", 0, []uint64{3}, time.Hour, false, []string{"x1", "x2", "x5", "x6"}, nil},
		{"claimed", 4, []uint64{3}, time.Hour, false, []string{"x1", "x2", "x5", "x6"}, []string{"3-4"}},
		{"claimed, all", 6, []uint64{1, 3, 5}, time.Hour, false, nil, []string{"1-6"}},
		{"claimed, and something fresh behind", 6, []uint64{5}, time.Hour, true, []string{"x1", "x2", "x3", "x4", "y"}, []string{"5-6"}},
		{"cut by a claim", 3, []uint64{3}, time.Hour, false, []string{"x1", "x2", "x5", "x6"}, []string{"3-3", "4-4"}},
		{"cut by a claim, and something fresh behind", 5, []uint64{5}, time.Hour, true, []string{"x1", "x2", "x3", "x4", "y"}, []string{"5-5", "6-6"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, ref, p := setup(t), keyed("k"), policy()
			for i := range 3 {
				r.put(ref, p, fmt.Sprintf("x%d", 2*i+1), fmt.Sprintf("x%d", 2*i+2))
			}
			if c.claim > 0 {
				r.claim(ref, c.claim, p)
			}
			r.clock.pass(c.after)
			if c.behind {
				r.put(ref, p, "y")
			}
			life := r.group(ref).Life
			for _, first := range c.gone {
				r.expire(segment(life, first))
			}
			require.Equal(t, c.want, r.drain(ref, p))
			require.ElementsMatch(t, c.reports, r.lost())
		})
	}
}

// TestLossBesideAWriter shows that a lost segment does not hide a writer that
// is at work behind it.
func TestLossBesideAWriter(t *testing.T) {
	r, ref, p := setup(t), keyed("k"), policy()
	r.put(ref, p, "x1", "x2", "x3")
	r.claim(ref, 2, p)
	r.clock.pass(time.Hour)
	r.expire(segment(r.group(ref).Life, 1))

	reader := r.open(r.raw)
	r.faults.Set(func(ctx context.Context, c awstest.Call) awstest.Fault {
		if c.Op == "PutItem" && c.Nth == 1 {
			g, err := reader.Group(ctx, ref)
			require.NoError(t, err)
			page, err := reader.Items(ctx, ref, &g, core.Span{From: 3, To: g.Tail})
			require.NoError(t, err)
			require.Less(t, page.End, uint64(4))
			page, err = reader.Items(ctx, ref, &g, core.Span{From: 1, To: 2})
			require.NoError(t, err)
			require.Equal(t, uint64(2), page.End)
		}
		return awstest.None
	})
	r.put(ref, p, "y")
	r.faults.Set(nil)
	require.Equal(t, []string{"y"}, r.drain(ref, p))
	require.Contains(t, r.lost(), "1-2")
	require.Contains(t, r.lost(), "3-3")
}

// TestPagesAreRead counts queries.
func TestPagesAreRead(t *testing.T) {
	r, ref, p := setup(t), keyed("k"), policy()
	for i := range 300 {
		r.put(ref, p, fmt.Sprint(i))
	}
	r.meter.Reset()
	page, _ := r.pending(ref, 300)
	require.Len(t, page.Items, 300)
	require.Equal(t, 2, r.meter.Of("Query").Requests, "one for each bucket")

	heavy := keyed("heavy")
	for i := range 12 {
		ps := parts(heavy, p, "x")
		ps[0].Events = []core.Event{big(fmt.Sprint(i), 350<<10)}
		r.putAll(ps)
	}
	r.meter.Reset()
	g := r.group(heavy)
	page, err := r.Items(r.ctx, heavy, &g, core.Span{From: 1, To: g.Tail, MaxItems: 10_000, MaxBytes: core.MiB})
	require.NoError(t, err)
	require.Len(t, page.Items, 2)
	require.LessOrEqual(t, r.meter.Of("Query").Requests, 2, "no more is read than fits")
}
