package dynamo_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/infra/awstest"
)

const (
	dedupeWindow = 10 * time.Minute
	// markLease is longer than a marker of a request that has died makes others wait.
	markLease = time.Minute
)

// once is a part whose doubles are left out.
func once(ref core.Ref, p *core.Policy, names ...string) []core.Part {
	ps := parts(ref, p, names...)
	ps[0].Dedupe = dedupeWindow
	return ps
}

// retried sends a request until it is accepted, as its client does, and returns
// the answer, and how often it was told to wait.
func (r *rig) retried(ps []core.Part) (a []core.Appended, waits int) {
	r.t.Helper()
	for range 100 {
		a, err := r.Append(r.ctx, r.clock.Now(), ps)
		if err == nil {
			return a, waits
		}
		require.Contains(r.t, []core.Code{core.Conflict, core.Unavailable}, core.CodeOf(err), "%v", err)
		require.Equal(r.t, time.Second, core.RetryAfterOf(err))
		waits++
		r.clock.pass(time.Second)
	}
	r.t.Fatal("it is never accepted")
	return nil, 0
}

// keys returns the places in the table that begin with a prefix.
func (r *rig) keys(prefix string) []string {
	r.t.Helper()
	var keys []string
	for _, item := range r.items() {
		if pk := pkOf(item); strings.HasPrefix(pk, prefix) {
			keys = append(keys, pk)
		}
	}
	return keys
}

func TestDedupe(t *testing.T) {
	bothWays(t, func(t *testing.T, r *rig) {
		ref, p := keyed("k"), policy()
		a := r.putAll(once(ref, p, "x1", "x2"))
		require.Equal(t, uint64(1), a.First)
		require.Empty(t, a.Doubles)
		r.clock.pass(time.Second)
		other := &rig{t: t, ctx: r.ctx, clock: r.clock, table: r.table}
		other.Store = other.open(r.raw)
		for _, s := range []*rig{r, other} {
			a = s.putAll(once(ref, p, "x2", "x1"))
			require.Equal(t, core.Appended{Doubles: []int{0, 1}}, a)
			require.Equal(t, uint64(2), r.group(ref).Tail, "nothing is numbered")
		}
		a = r.putAll(once(ref, p, "x1", "x3", "x3", "x2", "x4"))
		require.Equal(t, []int{0, 2, 3}, a.Doubles)
		require.Equal(t, uint64(3), a.First)
		require.Equal(t, []int{0}, r.putAll(once(keyed("another"), p, "x4", "x5")).Doubles, "in another group")
		require.Empty(t, r.putAll(once(core.Ref{Buffer: "c"}, p, "x1")).Doubles, "in another buffer")
		require.Empty(t, r.putAll(parts(ref, p, "x1")).Doubles, "where nobody asks")

		r.clock.pass(dedupeWindow - time.Second)
		require.Equal(t, []int{1}, r.putAll(once(ref, p, "x1", "x3")).Doubles, "a window is over")
		require.Equal(t, []int{0, 1}, r.putAll(once(ref, p, "x1", "x3")).Doubles)
		require.Equal(t, []string{"x1", "x2", "x3", "x4", "x1", "x1"}, r.drain(ref, p))
	})
}

// TestDedupeOfAnyID has ids that are long, empty, or no text.
func TestDedupeOfAnyID(t *testing.T) {
	r, ref, p := setup(t), keyed("k"), policy()
	ids := []string{"", "a/b", "=", strings.Repeat("x", 600), strings.Repeat("x", 601), "\xff", "\xfe", "ä"}
	require.Empty(t, r.putAll(once(ref, p, ids...)).Doubles)
	require.Len(t, r.putAll(once(ref, p, ids...)).Doubles, len(ids))
	require.Len(t, r.keys("d/b/"), len(ids))
	for _, item := range r.items() {
		if pk := pkOf(item); strings.HasPrefix(pk, "d/") || strings.HasPrefix(pk, "t/") {
			require.Greater(t, r.expires(keyAt(pk)), fmt.Sprint(int64(begin.Add(dedupeWindow))/1000))
			require.Less(t, r.expires(keyAt(pk)), fmt.Sprint(int64(begin.Add(dedupeWindow+markLease))/1000))
		}
	}
}

// TestDoubleInAnotherPart has one id for two groups of a buffer, and for another buffer.
func TestDoubleInAnotherPart(t *testing.T) {
	r, p := setup(t), policy()
	ps := append(once(keyed("a"), p, "x", "y"), once(keyed("b"), p, "x")...)
	ps = append(append(ps, once(core.Ref{Buffer: "c"}, p, "x")...), parts(keyed("a"), p, "x")...)
	a, err := r.Append(r.ctx, r.clock.Now(), ps)
	require.NoError(t, err)
	require.Empty(t, a[0].Doubles)
	require.Equal(t, core.Appended{Doubles: []int{0}}, a[1])
	require.NotZero(t, a[2].First)
	require.NotZero(t, a[3].First)
	require.Equal(t, []string{"x", "y", "x"}, r.drain(keyed("a"), p))
	require.Empty(t, r.drain(keyed("b"), p))
}

// TestDoubleOfOneClaimed posts an event again a second after the first, which
// has been claimed meanwhile: there is one copy in all.
func TestDoubleOfOneClaimed(t *testing.T) {
	b := newBill(t, func(b *core.Buffer) { b.Dedupe, b.Batch.MaxItems = dedupeWindow, 1 })
	post := func() core.Receipt {
		receipt, err := b.ingester.Ingest(b.ctx, "in", []core.Event{{ID: "x", ContentType: "application/json", Body: []byte(`{"k":"k"}`)}})
		require.NoError(t, err)
		return receipt
	}
	require.Equal(t, 1, post().Accepted)
	require.Len(t, b.handed, 1)
	b.work()
	b.clock.pass(time.Second)
	again := post()
	require.Zero(t, again.Accepted)
	require.Equal(t, 1, again.Duplicates)
	require.Empty(t, b.handed)
	require.Equal(t, []int{1}, b.sent)
	require.Empty(t, b.drain(keyed("k"), policy()))
}

// TestDoubleOfOneUnderWay sends an id while another request stores it.
func TestDoubleOfOneUnderWay(t *testing.T) {
	bothWays(t, func(t *testing.T, r *rig) {
		ref, p := keyed("k"), policy()
		second := r.open(r.raw)
		r.faults.Set(func(ctx context.Context, c awstest.Call) awstest.Fault {
			if c.Total == 1 { // not marked yet
				_, err := second.Append(ctx, r.clock.Now(), once(ref, p, "y", "x"))
				require.NoError(t, err)
			}
			return awstest.None
		})
		require.Equal(t, []int{0}, r.putAll(once(ref, p, "x")).Doubles)

		r.faults.Set(func(ctx context.Context, c awstest.Call) awstest.Fault {
			if c.Op == "UpdateItem" || c.Op == "PutItem" && c.Nth > 1 { // marked, and no ticket yet
				_, err := second.Append(ctx, r.clock.Now(), once(ref, p, "w", "z"))
				require.Equal(t, core.Conflict, core.CodeOf(err), "%s: %v", c.Op, err)
				require.Equal(t, time.Second, core.RetryAfterOf(err))
			}
			return awstest.None
		})
		require.Empty(t, r.putAll(once(ref, p, "z")).Doubles)
		r.faults.Set(nil)
		a, err := second.Append(r.ctx, r.clock.Now(), once(ref, p, "w", "z"))
		require.NoError(t, err)
		require.Equal(t, []int{1}, a[0].Doubles)
		require.Equal(t, []string{"y", "x", "z", "w"}, r.drain(ref, p))
	})
}

// TestDedupeWithAnswersLost makes each call of an append fail once, and has the
// client send the request again until it is accepted: there is one copy of each
// event, and the batch is scheduled.
func TestDedupeWithAnswersLost(t *testing.T) {
	r, p := setup(t), policy()
	for _, fault := range []awstest.Fault{awstest.Lost, awstest.Unsent, awstest.Throttle} {
		for n, more := 1, true; more; n++ {
			name := fmt.Sprintf("%d-%d", fault, n)
			ref := core.Ref{Buffer: name, Key: name}
			r.faults.Set(awstest.Nth("", n, fault))
			_, waits := r.retried(once(ref, p, "x1", "x2"))
			require.LessOrEqual(t, waits, 1, "fault %d of call %d: the client is told to wait", fault, n)
			more = r.faults.Calls() >= n
			r.faults.Set(nil)
			if more {
				a, waits := r.retried(once(ref, p, "x1", "x2")) // the answer to the client is lost, too
				require.Zero(t, waits)
				require.Equal(t, []int{0, 1}, a[0].Doubles)
			}
			require.NotZero(t, r.group(ref).CheckAt)
			require.Equal(t, []string{"x1", "x2"}, r.drain(ref, p), "fault %d of call %d", fault, n)
		}
	}
}

// TestDedupeAfterCrash kills a process anywhere in an append, and has its client
// send the request again, to another: nothing is lost, and only a process that
// dies between the last segment and the ticket leaves a second copy.
func TestDedupeAfterCrash(t *testing.T) {
	p, twice := policy(), 0
	r := setup(t)
	for _, fault := range []awstest.Fault{awstest.Unsent, awstest.Lost} {
		for n, died := 1, true; died; n++ {
			name := fmt.Sprintf("%d-%d", fault, n)
			ref := core.Ref{Buffer: name, Key: name}
			r.faults.Set(awstest.Crash(n, fault))
			tickets := len(r.keys("t/"))
			_, err := r.Append(r.ctx, r.clock.Now(), once(ref, p, "x1", "x2"))
			died = r.faults.Calls() >= n
			put, noted := len(r.keys("s/life"+name)) > 0, len(r.keys("t/")) > tickets
			r.faults.Set(nil)
			a, waits := r.retried(once(ref, p, "x2", "x1"))
			require.LessOrEqual(t, waits, int(markLease/time.Second))
			got := r.drain(ref, p)
			slices.Sort(got)
			if put && !noted {
				require.Len(t, got, 4)
				twice++
				got = slices.Compact(got)
			}
			require.Equal(t, []string{"x1", "x2"}, got, "fault %d of call %d", fault, n)
			if !died {
				require.NoError(t, err)
				require.Equal(t, []int{0, 1}, a[0].Doubles)
			}
		}
	}
	require.Equal(t, 2, twice)
}

// TestRefusedIsFree refuses a request that has marked its ids: they are free at once.
func TestRefusedIsFree(t *testing.T) {
	r, a, b, p := setup(t), keyed("a"), keyed("b"), policy(capped(1))
	r.put(b, p, "full")
	request := append(once(a, p, "x"), once(b, p, "y")...)
	for range 2 {
		_, err := r.Append(r.ctx, r.clock.Now(), request)
		require.Equal(t, core.Full, core.CodeOf(err), "%v", err)
	}
	require.Equal(t, []string{"full"}, r.drain(b, p))
	got, err := r.Append(r.ctx, r.clock.Now(), request)
	require.NoError(t, err)
	require.NotZero(t, got[0].First)
	require.NotZero(t, got[1].First)
	require.Equal(t, []string{"x"}, r.drain(a, p))
	require.Equal(t, []string{"y"}, r.drain(b, p))
}

// TestPartlyStoredIsKnown fails to write one of two groups: the other is not
// written again.
func TestPartlyStoredIsKnown(t *testing.T) {
	r, a, b, p := setup(t), keyed("a"), keyed("b"), policy()
	request := append(once(a, p, "x1", "x2"), once(b, p, "y")...)
	r.faults.Set(func(_ context.Context, c awstest.Call) awstest.Fault {
		if key, ok := putAt(c); ok && strings.HasPrefix(key, "s/lifeb") {
			return awstest.Throttle
		}
		return awstest.None
	})
	_, err := r.Append(r.ctx, r.clock.Now(), request)
	require.Equal(t, core.Unavailable, core.CodeOf(err), "%v", err)
	r.faults.Set(nil)
	got, waits := r.retried(request)
	require.Zero(t, waits)
	require.Equal(t, []int{0, 1}, got[0].Doubles)
	require.Empty(t, got[1].Doubles)
	require.Equal(t, []string{"x1", "x2"}, r.drain(a, p))
	require.Equal(t, []string{"y"}, r.drain(b, p))
}

// TestDedupeOfClosed closes a window under a writer that has put the first of
// two segments: what is behind can be stored elsewhere, by the same request.
func TestDedupeOfClosed(t *testing.T) {
	r, ref, next, p := setup(t), keyed("k"), keyed("next"), policy(window)
	other := &rig{t: t, ctx: r.ctx, clock: r.clock, table: r.table}
	other.Store = other.open(r.raw)
	r.putAll(once(ref, p, "d1", "d2"))
	segments := 0
	r.faults.Set(func(_ context.Context, c awstest.Call) awstest.Fault {
		if key, ok := putAt(c); ok && strings.HasPrefix(key, "s/") {
			if segments++; segments == 2 {
				r.clock.pass(2 * time.Minute)
				other.shut(ref, p)
				other.whole(ref, p, 0)
			}
		}
		return awstest.None
	})
	ps := once(ref, p, "d1", "x1", "d2", "x2")
	for _, i := range []int{1, 3} {
		ps[0].Events[i] = big(ps[0].Events[i].ID, 300_000)
	}
	require.Equal(t, core.Appended{Closed: true, Stored: 2, Doubles: []int{0}}, r.putAll(ps))
	r.faults.Set(nil)
	require.Equal(t, core.Appended{Closed: true}, r.putAll(once(ref, p, "d2", "x2")), "closed at once")
	a := r.putAll(once(next, p, "x1", "d2", "x2"))
	require.Equal(t, []int{0, 1}, a.Doubles)
	require.Equal(t, []string{"d1", "d2", "x1"}, r.drain(ref, p))
	require.Equal(t, []string{"x2"}, r.drain(next, p))
}

// TestDedupeTakenOver lets many take over what a dead process has marked: one does.
func TestDedupeTakenOver(t *testing.T) {
	const takers = 8
	r, ref, p := setup(t), keyed("k"), policy()
	r.faults.Set(awstest.Crash(2, awstest.Unsent))
	_, err := r.Append(r.ctx, r.clock.Now(), once(ref, p, "x"))
	require.Equal(t, core.Unavailable, core.CodeOf(err), "%v", err)
	r.faults.Set(nil)
	_, err = r.Append(r.ctx, r.clock.Now(), once(ref, p, "x"))
	require.Equal(t, core.Conflict, core.CodeOf(err), "%v", err)
	r.clock.pass(markLease)
	var all sync.WaitGroup
	for range takers {
		all.Go(func() {
			_, err := r.Append(r.ctx, r.clock.Now(), once(ref, p, "x"))
			if err != nil && core.CodeOf(err) != core.Conflict {
				t.Error(err)
			}
		})
	}
	all.Wait()
	require.Equal(t, []string{"x"}, r.drain(ref, p))
}

// TestDedupeAfterClockSetBack: what a clock that ran ahead has marked, and left,
// does not wait until it is so late.
func TestDedupeAfterClockSetBack(t *testing.T) {
	r, ref, p := setup(t), keyed("k"), policy()
	r.clock.pass(time.Hour)
	r.putAll(once(ref, p, "done"))
	r.faults.Set(awstest.Crash(2, awstest.Unsent))
	_, err := r.Append(r.ctx, r.clock.Now(), once(ref, p, "x"))
	require.Error(t, err)
	r.faults.Set(nil)
	r.clock.pass(-time.Minute * 5)
	require.Equal(t, []int{0}, r.putAll(once(ref, p, "done")).Doubles)
	require.Empty(t, r.putAll(once(ref, p, "x")).Doubles)
}

// TestDedupeStorm has clients send the same few ids at once, through processes
// whose calls fail: each id is stored once.
func TestDedupeStorm(t *testing.T) {
	const clients, ids = 6, 10
	r, ref, p := setup(t), keyed("k"), policy()
	r.faults.Set(func(_ context.Context, c awstest.Call) awstest.Fault {
		switch uint32(c.Total) * 2654435761 >> 28 { // no request meets the same again
		case 3:
			return awstest.Lost
		case 8:
			return awstest.Throttle
		case 13:
			return awstest.Unsent
		}
		return awstest.None
	})
	var all sync.WaitGroup
	var accepted atomic.Int64
	for client := range clients {
		all.Go(func() {
			s := r.open(r.client)
			for i := range ids {
				names := []string{fmt.Sprint("x", (i+client)%ids), fmt.Sprint("x", (i+client+1)%ids)}
				for try := 0; ; try++ {
					a, err := s.Append(r.ctx, r.clock.Now(), once(ref, p, names...))
					if err == nil {
						accepted.Add(int64(2 - len(a[0].Doubles)))
						break
					}
					if code := core.CodeOf(err); code != core.Unavailable && code != core.Conflict || try == 10_000 {
						t.Error(err)
						break
					}
				}
			}
		})
	}
	all.Wait()
	r.faults.Set(nil)
	got := r.drain(ref, p)
	require.EqualValues(t, ids, accepted.Load())
	slices.Sort(got)
	require.Equal(t, []string{"x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9"}, got)
}
