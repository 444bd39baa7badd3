package dynamo_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/infra/awstest"
)

// TestProlong shows that what is read past half its life is kept for longer.
func TestProlong(t *testing.T) {
	r, ref, p := setup(t), keyed("k"), policy()
	r.put(ref, p, "x1")
	r.hole(ref, p, 1)
	r.put(ref, p, "x2")
	life := r.group(ref).Life
	r.clock.pass(time.Minute)
	r.pending(ref, 0)
	keys := []uint64{1, 2, 3}
	before := map[uint64]string{}
	for _, k := range keys {
		before[k] = r.expires(segment(life, k))
	}
	r.meter.Reset()
	r.pending(ref, 0)
	require.Zero(t, r.meter.Of("UpdateItem").Requests, "nothing is old")

	r.clock.pass(retention/2 + time.Hour)
	r.pending(ref, 0)
	for _, k := range keys {
		require.Greater(t, r.expires(segment(life, k)), before[k], "segment %d", k)
	}
	r.meter.Reset()
	r.pending(ref, 0)
	require.Zero(t, r.meter.Of("UpdateItem").Requests, "once is enough")
	require.Empty(t, r.lost())

	r.expire(segment(life, 1)) // the table was faster
	r.clock.pass(retention)
	require.Equal(t, []string{"x2"}, r.drain(ref, p))
}

// TestKeep shows that maintenance keeps what nobody delivers, be it pending,
// claimed, or behind a claim.
func TestKeep(t *testing.T) {
	r, p := setup(t), policy()
	r.clock.now.Store(int64(core.At(time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC))))
	pending, claimed, both := keyed("pending"), keyed("claimed"), keyed("both")
	long := append(numbered("x", 1200), "y")
	for _, ref := range []core.Ref{pending, claimed, both} {
		r.put(ref, p, "a", "b")
		r.hole(ref, p, 2)
		r.put(ref, p, "c")
	}
	for i := range 3 {
		r.put(pending, p, long[i*400:(i+1)*400]...)
	}
	r.clock.pass(time.Minute)
	r.claim(claimed, 10, p)
	r.claim(both, 1, p)

	for range 3 * 7 * 24 { // hours
		r.clock.pass(time.Hour - time.Duration(r.clock.Now().Time().Minute())*time.Minute)
		if r.clock.Now()/3_600_000%4 == 3 {
			continue // a run that fails now and then does not matter
		}
		_, err := r.Update(r.ctx, pending, nil, func(g *core.Group) error { // as a sweep does every minute
			g.Nudge(r.clock.Now().Add(time.Minute))
			return nil
		})
		require.NoError(t, err)
		require.NoError(t, r.Maintain(r.ctx, nil))
		for _, ref := range []core.Ref{pending, claimed, both} {
			life := r.group(ref).Life
			for _, first := range []uint64{1, 5} {
				left := core.Millis(atoi(t, r.expires(segment(life, first)))*1000) - r.clock.Now()
				require.Greater(t, left, core.Millis(24*time.Hour/time.Millisecond), "%s: segment %d", ref.Key, first)
			}
		}
	}
	require.Equal(t, slices.Concat([]string{"a", "b", "c"}, long[:1200]), r.drain(pending, p))
	require.Equal(t, []string{"a", "b", "c"}, r.drain(claimed, p))
	require.Equal(t, []string{"a", "b", "c"}, r.drain(both, p))
	require.Equal(t, []string{"3-4"}, r.lost(), "what a dead writer has left looks lost, after so long")
}

// TestKeepCostsLittle shows that maintenance looks at no items in other minutes,
// and at none that are delivered in time.
func TestKeepCostsLittle(t *testing.T) {
	r, p := setup(t), policy()
	for i := range 5 {
		r.put(keyed(fmt.Sprint(i)), p, "x")
	}
	r.meter.Reset()
	require.NoError(t, r.Maintain(r.ctx, nil))
	require.Zero(t, r.meter.Usage().Requests)
	const look = 21 * 3_600_000 // an eighth of a week
	r.clock.now.Store((int64(begin)/look + 1) * look)
	require.NoError(t, r.Maintain(r.ctx, nil))
	require.Equal(t, 32+1, r.meter.Usage().Requests, "the indexes, and the records all at once")
}

// TestExpiredRecord deletes a settled record under a writer that has numbered.
func TestExpiredRecord(t *testing.T) {
	r, ref, p := setup(t), keyed("k"), policy()
	r.put(ref, p, "x1")
	held, _ := r.claim(ref, 1, p)
	r.ack(ref, held, p)
	require.NotEmpty(t, r.expires(recordKey(ref)), "an empty group expires")
	r.put(ref, p, "x2")
	require.Empty(t, r.expires(recordKey(ref)), "one with something pending does not")
	require.Equal(t, []string{"x2"}, r.drain(ref, p))

	first := r.group(ref).Life
	reader := r.open(r.raw)
	r.faults.Set(func(ctx context.Context, c awstest.Call) awstest.Fault {
		if c.Op == "PutItem" && c.Nth == 1 { // the writer sleeps for a long time
			r.clock.pass(time.Minute)
			g, err := reader.Group(ctx, ref)
			require.NoError(t, err)
			page, err := reader.Items(ctx, ref, &g, core.Span{From: g.Head + 1, To: g.Tail})
			require.NoError(t, err)
			_, err = claim(ctx, reader, ref, &g, &page, p, r.clock.Now())
			require.NoError(t, err)
			r.expire(recordKey(ref))
		}
		return awstest.None
	})
	ps := parts(ref, p, "x3")
	ps[0].Life = "another"
	a := r.putAll(ps)
	r.faults.Set(nil)
	require.NotEqual(t, first, a.Life)
	require.Equal(t, []string{"x3"}, r.drain(ref, p))
}

// TestExpiredRecordWhileItIsCapped deletes the record between a refusal and the
// look at why.
func TestExpiredRecordWhileItIsCapped(t *testing.T) {
	r, ref := setup(t), keyed("k")
	held, _ := r.claimNew(ref, policy())
	r.ack(ref, held, policy())
	r.faults.Set(func(_ context.Context, c awstest.Call) awstest.Fault {
		if c.Op == "GetItem" && c.Nth == 1 {
			r.expire(recordKey(ref))
		}
		return awstest.None
	})
	ps := parts(ref, policy(capped(5)), "x2")
	ps[0].Life = "another"
	a, err := r.Append(r.ctx, r.clock.Now(), ps)
	require.NoError(t, err)
	require.Equal(t, "another", a[0].Life)
	r.faults.Set(nil)
	require.Equal(t, []string{"x2"}, r.drain(ref, policy(capped(5))))
}

func (r *rig) claimNew(ref core.Ref, p *core.Policy) (core.Claim, []string) {
	r.t.Helper()
	r.put(ref, p, "x1")
	return r.claim(ref, 1, p)
}

func atoi(t testing.TB, s string) int64 {
	t.Helper()
	var n int64
	_, err := fmt.Sscan(s, &n)
	require.NoError(t, err)
	return n
}

// TestLongWindows shows that what waits for its window, or for a flush, for as
// long as the settings allow is kept, and so is what waits longer.
func TestLongWindows(t *testing.T) {
	const wait, least = 49 * time.Hour, 98 * time.Hour // every, maxAhead and grace at their most; the least retention
	r := setup(t)
	r.clock.now.Store(int64(core.At(time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC))))
	r.Store = r.openFor(r.client, least)
	shipAt := r.clock.Now().Add(wait)
	windowed := policy(func(p *core.Policy) { p.ShipAt, p.KeptUntil = shipAt, shipAt.Add(least+time.Hour) })
	flushed := policy(func(p *core.Policy) { p.Rest = 48 * time.Hour })
	a, b := keyed("window"), keyed("flush")
	r.put(a, windowed, "a1", "a2")
	r.put(b, flushed, "b1", "b2")
	left := func(ref core.Ref) time.Duration {
		return core.Millis(atoi(t, r.expires(segment(r.group(ref).Life, 1))) * 1000).Sub(r.clock.Now())
	}
	for hour := range 400 { // four times the retention: nobody delivers
		r.clock.pass(time.Hour)
		if hour+1 == int(wait/time.Hour) {
			require.Greater(t, left(a), least/2, "it is in time")
		}
		if hour%5 == 4 {
			continue // a run that fails now and then does not matter
		}
		require.NoError(t, r.Maintain(r.ctx, nil))
		require.Greater(t, left(a), 12*time.Hour, "hour %d", hour)
		require.Greater(t, left(b), 12*time.Hour, "hour %d", hour)
	}
	r.shut(a, windowed)
	_, got := r.whole(a, windowed, 0)
	require.Equal(t, []string{"a1", "a2"}, got)
	require.Equal(t, []string{"b1", "b2"}, r.drain(b, flushed))
	require.Empty(t, r.lost())
}
