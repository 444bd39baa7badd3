package dynamo_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/infra/awstest"
)

// window makes a policy that of a time window, which ships a minute after the
// fixtures' time begins and is kept for a retention and an hour.
func window(p *core.Policy) {
	p.ShipAt = begin.Add(time.Minute)
	p.KeptUntil = p.ShipAt.Add(retention + time.Hour)
}

// shut closes a group.
func (r *rig) shut(ref core.Ref, p *core.Policy) core.Group {
	r.t.Helper()
	g, err := r.Update(r.ctx, ref, nil, func(g *core.Group) error {
		g.Close(p.KeptUntil, p, r.clock.Now())
		return nil
	})
	require.NoError(r.t, err)
	require.Equal(r.t, p.KeptUntil, g.Closed)
	return g
}

// whole claims all that is pending, read in pages.
func (r *rig) whole(ref core.Ref, p *core.Policy, pageItems int) (core.Claim, []string) {
	r.t.Helper()
	g := r.group(ref)
	t := core.Taking{From: g.Head + 1, To: g.Tail, Through: g.TailBytes, Reason: core.ReasonWindow, Fold: "rows"}
	items := r.pages(ref, &g, core.Span{From: t.From, To: t.To, MaxItems: pageItems})
	t.Items = len(items)
	var c core.Claim
	_, err := r.Update(r.ctx, ref, &g, func(g *core.Group) (err error) {
		c, err = g.Claim(t, p, r.clock.Now())
		return err
	})
	require.NoError(r.t, err)
	return c, items
}

// pages reads a span page by page, as a deliverer does.
func (r *rig) pages(ref core.Ref, g *core.Group, span core.Span) []string {
	r.t.Helper()
	var all []string
	for to := span.To; span.From <= to; {
		page, err := r.Items(r.ctx, ref, g, span)
		require.NoError(r.t, err)
		require.Zero(r.t, page.RetryAt)
		require.GreaterOrEqual(r.t, page.End, span.From)
		all = append(all, names(page.Items)...)
		if span.From, span.Mark = page.End+1, page.Mark; span.Mark == 0 {
			span.Mark = span.From
		}
	}
	return all
}

// TestClosed appends to a closed group, beside others.
func TestClosed(t *testing.T) {
	bothWays(t, func(t *testing.T, r *rig) {
		for _, limit := range []int{0, 3} {
			ref, open, p := keyed(fmt.Sprint("k", limit)), keyed(fmt.Sprint("open", limit)), policy(window, capped(limit))
			require.Equal(t, p.ShipAt, r.put(ref, p, "x1", "x2").CheckAt)
			r.shut(ref, p)
			was := r.group(ref)

			r.meter.Reset()
			require.Equal(t, core.Appended{Closed: true}, r.put(ref, p, "late"))
			require.Zero(t, r.meter.Of("PutItem").Requests)
			require.Equal(t, was, r.group(ref))

			answers, err := r.Append(r.ctx, r.clock.Now(), slices.Concat(parts(open, p, "y1"), parts(ref, p, "late"), parts(open, p, "y2"), parts(ref, p, "late")))
			require.NoError(t, err)
			require.Equal(t, []uint64{1, 0, 2, 0}, []uint64{answers[0].First, answers[1].First, answers[2].First, answers[3].First})
			require.Equal(t, []bool{false, true, false, true}, []bool{answers[0].Closed, answers[1].Closed, answers[2].Closed, answers[3].Closed})
			require.Equal(t, []string{"y1", "y2"}, r.drain(open, p))
			require.Equal(t, was, r.group(ref))
			r.clock.now.Store(int64(begin))

			// its buffer has windows no more
			a := r.put(ref, policy(), "z")
			require.Equal(t, uint64(3), a.First)
			require.False(t, a.Closed)
			require.Equal(t, []string{"x1", "x2", "z"}, r.drain(ref, p))
			r.clock.now.Store(int64(begin))
		}
	})
}

// TestFullAndClosed refuses a request in one group when another is closed.
func TestFullAndClosed(t *testing.T) {
	r, ref, full, p := setup(t), keyed("k"), keyed("full"), policy(window, capped(1))
	r.put(ref, p, "x")
	r.put(full, p, "y")
	r.shut(ref, p)
	answers, err := r.Append(r.ctx, r.clock.Now(), append(parts(ref, p, "late"), parts(full, p, "y2")...))
	require.Equal(t, core.Full, core.CodeOf(err))
	require.False(t, answers[0].Armed)
	require.Equal(t, []string{"x"}, r.drain(ref, p))
	require.Equal(t, []string{"y"}, r.drain(full, p))
}

// TestFencedAndClosed closes a group under a writer that has numbered, and
// fences it, before or after it has put the first of two segments.
func TestFencedAndClosed(t *testing.T) {
	for _, put := range []int{0, 1} {
		t.Run(fmt.Sprintf("%d of 2 put", put), func(t *testing.T) {
			bothWays(t, func(t *testing.T, r *rig) {
				ref, p := keyed("k"), policy(window)
				other := &rig{t: t, ctx: r.ctx, clock: r.clock, table: r.table}
				other.Store = other.open(r.raw)
				var rows []string
				r.faults.Set(func(_ context.Context, c awstest.Call) awstest.Fault {
					if c.Op == "PutItem" && c.Nth == put+1 {
						r.clock.pass(2 * time.Minute)
						other.shut(ref, p)
						if _, rows = other.whole(ref, p, 0); put == 0 {
							require.Empty(t, rows)
						}
					}
					return awstest.None
				})
				ps := parts(ref, p, "x")
				ps[0].Events = []core.Event{big("x1", 300_000), big("x2", 300_000)}
				require.Equal(t, core.Appended{Closed: true, Stored: put}, r.putAll(ps))
				r.faults.Set(nil)
				require.Equal(t, numbered("x", put), append([]string{}, rows...), "what is moved on is not here")
				require.Equal(t, numbered("x", put), append([]string{}, r.drain(ref, p)...))
			})
		})
	}
}

// TestLostNumberingAndClosed closes a group between a numbering whose answer is
// lost and the next try: it leaves a hole.
func TestLostNumberingAndClosed(t *testing.T) {
	bothWays(t, func(t *testing.T, r *rig) {
		ref, p := keyed("k"), policy(window)
		other := &rig{t: t, ctx: r.ctx, clock: r.clock, table: r.table}
		other.Store = other.open(r.raw)
		other.put(ref, p, "x1")
		r.faults.Set(func(_ context.Context, c awstest.Call) awstest.Fault {
			switch {
			case c.Op == "UpdateItem" && c.Nth == 1:
				return awstest.Lost
			case c.Op == "UpdateItem":
				other.shut(ref, p)
			}
			return awstest.None
		})
		require.Equal(t, core.Appended{Closed: true}, r.put(ref, p, "late", "later"))
		r.faults.Set(nil)
		g := r.group(ref)
		require.Equal(t, uint64(3), g.Tail)
		page, _ := r.pending(ref, 0)
		require.NotZero(t, page.RetryAt, "a writer may be at work")
		r.clock.pass(time.Minute)
		held, got := r.whole(ref, p, 0)
		require.Equal(t, []string{"x1"}, got)
		require.Equal(t, uint64(3), held.To)
		after := r.ack(ref, held, p)
		require.True(t, after.Empty())
		require.Empty(t, r.lost())
	})
}

// TestClosedIsKept shows that a drained window is remembered, for long enough,
// and seen no more.
func TestClosedIsKept(t *testing.T) {
	for name, kept := range map[string]time.Duration{"longer than the retention": retention + time.Hour, "shorter": time.Hour} {
		t.Run(name, func(t *testing.T) {
			r, ref, p := setup(t), keyed("k"), policy(window)
			p.KeptUntil = p.ShipAt.Add(kept)
			r.put(ref, p, "x1")
			r.clock.pass(time.Minute)
			r.shut(ref, p)
			require.Empty(t, r.expires(recordKey(ref)))
			held, _ := r.whole(ref, p, 0)
			r.ack(ref, held, p)
			least := max(p.KeptUntil, r.clock.Now().Add(retention+10*time.Minute))
			require.Equal(t, fmt.Sprint(int64(least)/1000+1), r.expires(recordKey(ref)))

			require.Equal(t, core.Appended{Closed: true}, r.put(ref, p, "late"))
			require.NotEmpty(t, r.expires(recordKey(ref)), "no append keeps it longer")
			for h := range r.Due(r.ctx, 1<<50) {
				t.Errorf("due: %v", h)
			}
			groups, err := r.Groups(r.ctx, "b", nil, 10)
			require.NoError(t, err)
			require.Empty(t, groups)
			stats, err := r.Stats(r.ctx)
			require.NoError(t, err)
			require.Empty(t, stats)

			r.expire(recordKey(ref)) // its time has come
			ps := parts(ref, p, "new")
			ps[0].Life = "another"
			require.Equal(t, "another", r.putAll(ps).Life)
		})
	}
}

// TestExpiredWhenClosed deletes a closed record between a refusal and the look
// at why.
func TestExpiredWhenClosed(t *testing.T) {
	r := setup(t)
	for _, limit := range []int{0, 5} {
		ref, p := keyed(fmt.Sprint(limit)), policy(window, capped(limit))
		r.put(ref, p, "x1")
		r.shut(ref, p)
		held, _ := r.whole(ref, p, 0)
		r.ack(ref, held, p)
		r.faults.Set(func(_ context.Context, c awstest.Call) awstest.Fault {
			if c.Op == "GetItem" && c.Nth == 1 {
				r.expire(recordKey(ref))
			}
			return awstest.None
		})
		ps := parts(ref, p, "x2")
		ps[0].Life = "another" + ref.Key
		require.Equal(t, ps[0].Life, r.putAll(ps).Life)
		r.faults.Set(nil)
		require.Equal(t, []string{"x2"}, r.drain(ref, p))
	}
}

// TestClaimInRows shows what the record keeps of a claim that leaves in rows.
func TestClaimInRows(t *testing.T) {
	r, ref, p := setup(t), keyed("k"), policy(window)
	r.put(ref, p, "x1", "x2", "x3")
	r.shut(ref, p)
	held, _ := r.whole(ref, p, 2)
	require.Equal(t, "rows", r.group(ref).Claims[0].Fold)
	g, err := r.Update(r.ctx, ref, nil, func(g *core.Group) error {
		return g.Advance(held.ID, held.Lease, "other rows", 7, p, r.clock.Now())
	})
	require.NoError(t, err)
	require.Equal(t, g, r.group(ref))
	require.Equal(t, 7, g.Claims[0].Sent)
	require.Equal(t, "other rows", g.Claims[0].Fold)

	g, err = r.Update(r.ctx, ref, nil, func(g *core.Group) error {
		return g.Postpone(held.ID, g.Claims[0].Lease, r.clock.Now().Add(time.Hour), false, p, r.clock.Now())
	})
	require.NoError(t, err)
	g, err = r.Update(r.ctx, ref, &g, func(g *core.Group) error { g.Hasten(held.ID, r.clock.Now()); return nil })
	require.NoError(t, err)
	require.Equal(t, r.clock.Now(), g.Claims[0].Due)
	require.NotEmpty(t, slices.Collect(func(yield func(core.Ref) bool) {
		for h := range r.Due(r.ctx, r.clock.Now()) {
			yield(h.Ref)
		}
	}))
}

// TestLargeClaim reads a claim of 100,000 items page by page: each costs what it
// holds, wherever it begins.
func TestLargeClaim(t *testing.T) {
	const n, request = 100_000, 700 // segments that pages cut
	r, ref, p := setup(t), keyed("k"), policy(window)
	for i := 0; i < n; i += request {
		r.put(ref, p, numbered(fmt.Sprint(i, "-"), min(request, n-i))...)
	}
	r.shut(ref, p)
	for _, what := range []string{"pending", "claimed"} {
		r.meter.Reset()
		var got []string
		if what == "pending" {
			_, got = r.whole(ref, p, 1000)
		} else {
			g := r.group(ref)
			got = r.pages(ref, &g, core.Span{From: 1, To: n, MaxItems: 1000})
		}
		require.Len(t, got, n)
		require.Equal(t, "0-1", got[0])
		require.Equal(t, "700-1", got[700])
		u := r.meter.Of("Query")
		t.Logf("%s: %d queries, %.0f read units", what, u.Requests, u.Read)
		require.LessOrEqual(t, u.Requests, 100*(1000/256+3), "%s", what)
	}
}

// TestMovedOnInPart lets the rest of a request's events be moved on, of which
// the first are stored: none is lost, and none doubled.
func TestMovedOnInPart(t *testing.T) {
	b := newBill(t, minutes)
	other := &rig{t: t, ctx: b.ctx, clock: b.clock, table: b.table}
	other.Store = other.open(b.raw)
	end := begin - begin%60_000 + 60_000
	key := func(start core.Millis) core.Ref { return keyed(start.String() + "/" + start.Add(time.Minute).String()) }
	first, next := key(end-60_000), key(end)
	p := policy(func(p *core.Policy) { p.ShipAt, p.KeptUntil = end+5000, end.Add(2*retention) })
	b.faults.Set(func(_ context.Context, c awstest.Call) awstest.Fault {
		if c.Op == "PutItem" && c.Nth == 2 {
			b.clock.pass(time.Minute + 10*time.Second)
			other.shut(first, p)
			_, got := other.whole(first, p, 0)
			require.Equal(t, []string{"x1"}, got)
		}
		return awstest.None
	})
	_, err := b.ingester.Ingest(b.ctx, "in", []core.Event{big("x1", 300_000), big("x2", 300_000), big("x3", 300_000)})
	require.NoError(t, err)
	b.faults.Set(nil)
	require.Equal(t, []string{"x1"}, b.drain(first, p))
	require.Equal(t, []string{"x2", "x3"}, b.drain(next, p))
}

// TestPlainRecord shows that a group of no window is written as it was before
// there were any.
func TestPlainRecord(t *testing.T) {
	r, ref, p := setup(t), keyed("k"), policy()
	r.put(ref, p, "x1", "x2")
	r.claim(ref, 1, p)
	out, err := r.raw.GetItem(r.ctx, &dynamodb.GetItemInput{TableName: &r.table, Key: recordKey(ref)})
	require.NoError(t, err)
	require.NotContains(t, out.Item, "closed")
	held := out.Item["claims"].(*types.AttributeValueMemberL).Value[0].(*types.AttributeValueMemberM).Value
	require.NotContains(t, held, "fold")
	require.NotContains(t, held, "sent")
}
