package dynamo_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/infra/awstest"
)

// placeOf is the partition that a call is for.
func placeOf(c awstest.Call) string {
	switch in := c.Input.(type) {
	case *dynamodb.PutItemInput:
		return pkOf(in.Item)
	case *dynamodb.UpdateItemInput:
		return pkOf(in.Key)
	case *dynamodb.GetItemInput:
		return pkOf(in.Key)
	}
	return ""
}

// copied is a request for a group and for one of a shadow beside it.
func copied(names ...string) (kept, copies core.Ref, ps []core.Part) {
	kept, copies = keyed("k"), core.Ref{Buffer: "copy", Key: "copy"}
	ps = append(once(kept, policy(), names...), once(copies, policy(), names...)...)
	ps[1].Size, ps[1].Shed = 100, true
	return kept, copies, ps
}

// TestHoldHopAndToken keeps what a group and its claims say of them, and nothing
// where they say nothing.
func TestHoldHopAndToken(t *testing.T) {
	r, ref, p := setup(t), keyed("k"), policy()
	r.put(ref, p, "x1", "x2")
	r.claim(ref, 1, p)
	record := func() item {
		out, err := r.raw.GetItem(r.ctx, &dynamodb.GetItemInput{TableName: &r.table, Key: recordKey(ref)})
		require.NoError(t, err)
		return out.Item
	}
	before := record()
	set := func(hold core.Millis, hop int, token bool) {
		after, err := r.Update(r.ctx, ref, nil, func(g *core.Group) error {
			g.Hold, g.Claims[0].Hop, g.Claims[0].Token = hold, hop, token
			g.Rev++
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, after, r.group(ref))
		require.Equal(t, hold, after.Hold)
		require.Equal(t, hop, after.Claims[0].Hop)
		require.Equal(t, token, after.Claims[0].Token)
	}
	set(begin.Add(time.Hour), 3, true)
	require.Len(t, record(), len(before)+1)
	set(begin.Add(time.Minute), 3, false)
	set(0, 0, false)
	after := record()
	require.Equal(t, before["claims"], after["claims"])
	require.NotContains(t, after, "heldUntil")
}

// TestShed leaves copies out when its buffer is full, as far as that is known.
func TestShed(t *testing.T) {
	r, kept, copied, p := setup(t), keyed("k"), core.Ref{Buffer: "copy", Key: "copy"}, policy()
	request := func(names ...string) []core.Part {
		ps := append(once(kept, p, names...), once(copied, p, names...)...)
		ps[1].Size, ps[1].Shed = 3, true
		return ps
	}
	send := func(names ...string) core.Appended {
		a, err := r.Append(r.ctx, r.clock.Now(), request(names...))
		require.NoError(t, err)
		require.NotZero(t, a[0].First)
		return a[1]
	}
	require.Equal(t, uint64(1), send("x1", "x2").First)
	some := send("x3", "x4")
	require.True(t, some.Shed)
	require.Equal(t, uint64(3), some.First)
	require.Equal(t, 1, some.Stored)
	require.Equal(t, core.Appended{Shed: true}, send("x5"), "by this process's own count")
	require.NoError(t, r.Maintain(r.ctx, []string{"copy"}))
	r.Store = r.open(r.client)
	require.Equal(t, core.Appended{Shed: true}, send("x6"), "by what was counted")

	held, _ := r.claim(copied, 3, p)
	r.ack(copied, held, p)
	require.NoError(t, r.Maintain(r.ctx, []string{"copy"}))
	a, err := r.Append(r.ctx, r.clock.Now(), request("x3", "x6", "x5"))
	require.NoError(t, err)
	require.Equal(t, core.Appended{Doubles: []int{0, 1, 2}}, a[0])
	require.Equal(t, []int{0}, a[1].Doubles, "what was shed is free")
	require.Equal(t, []string{"x6", "x5"}, r.drain(copied, p))
}

// TestShedForFailure makes every call for a copy fail: it is made once, and what
// the request is for is stored.
func TestShedForFailure(t *testing.T) {
	for _, at := range []string{"b/copy", "d/copy/=x1", "g/copy/", "s/lifecopy"} {
		for _, fault := range []awstest.Fault{awstest.Throttle, awstest.Unsent, awstest.Lost} {
			t.Run(fmt.Sprint(at, " ", fault), func(t *testing.T) {
				r := setup(t, awstest.Attempts(3))
				kept, copies, ps := copied("x1", "x2")
				var calls atomic.Int64
				r.faults.Set(func(_ context.Context, c awstest.Call) awstest.Fault {
					if !strings.HasPrefix(placeOf(c), at) {
						return awstest.None
					}
					calls.Add(1)
					return fault
				})
				a, err := r.Append(r.ctx, r.clock.Now(), ps)
				require.NoError(t, err)
				require.Equal(t, uint64(1), a[0].First)
				require.True(t, a[1].Shed)
				require.Zero(t, a[1].First)
				require.EqualValues(t, 1, calls.Load())
				r.faults.Set(nil)
				r.clock.pass(markLease)
				a, err = r.Append(r.ctx, r.clock.Now(), ps)
				require.NoError(t, err)
				require.Equal(t, core.Appended{Doubles: []int{0, 1}}, a[0])
				require.NotZero(t, a[1].First, "what was shed is free")
				require.Equal(t, []string{"x1", "x2"}, r.drain(kept, policy()))
				want := []string{"x1", "x2"}
				if at == "s/lifecopy" && fault == awstest.Lost { // it was stored, and did not say so
					want = append(want, want...)
				}
				require.Equal(t, want, r.drain(copies, policy()))
			})
		}
	}
}

// TestShedForOneUnderWay copies an event that another request has in hand.
func TestShedForOneUnderWay(t *testing.T) {
	r := setup(t)
	kept, copies, ps := copied("x1", "x2")
	other := ps[1]
	other.Events = other.Events[1:]
	second := r.open(r.raw)
	r.faults.Set(func(ctx context.Context, c awstest.Call) awstest.Fault {
		if c.Op == "UpdateItem" { // it has marked, and no ticket yet
			a, err := second.Append(ctx, r.clock.Now(), ps)
			require.NoError(t, err)
			require.Equal(t, uint64(1), a[0].First)
			require.Equal(t, core.Appended{Shed: true}, a[1])
		}
		return awstest.None
	})
	r.putAll([]core.Part{other})
	r.faults.Set(nil)
	require.Equal(t, []string{"x1", "x2"}, r.drain(kept, policy()))
	require.Equal(t, []string{"x2"}, r.drain(copies, policy()))
}

// TestShedForFullGroup copies into a group that is full.
func TestShedForFullGroup(t *testing.T) {
	r := setup(t)
	kept, copies, ps := copied("x1", "x2")
	ps[1].Policy = policy(capped(1))
	a, err := r.Append(r.ctx, r.clock.Now(), ps)
	require.NoError(t, err)
	require.Equal(t, core.Appended{Shed: true}, a[1], "a new one")
	r.put(copies, ps[1].Policy, "full")
	_, _, ps2 := copied("x3")
	ps2[1].Policy = ps[1].Policy
	a, err = r.Append(r.ctx, r.clock.Now(), ps2)
	require.NoError(t, err)
	require.Equal(t, core.Appended{Shed: true}, a[1])
	require.Equal(t, []string{"x1", "x2", "x3"}, r.drain(kept, policy()))
	require.Equal(t, []string{"full"}, r.drain(copies, policy()))
}
