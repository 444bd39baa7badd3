package dynamo_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"sluice/core"
)

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

// TestShed leaves a copy out when its buffer is full, as far as that is known.
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
	require.Equal(t, core.Appended{Shed: true}, send("x3", "x4"), "by this process's own count")
	require.Equal(t, uint64(3), send("x5").First)
	require.NoError(t, r.Maintain(r.ctx, []string{"copy"}))
	r.Store = r.open(r.client)
	require.Equal(t, core.Appended{Shed: true}, send("x6"), "by what was counted")

	held, _ := r.claim(copied, 3, p)
	r.ack(copied, held, p)
	require.NoError(t, r.Maintain(r.ctx, []string{"copy"}))
	a, err := r.Append(r.ctx, r.clock.Now(), request("x3", "x6", "x5"))
	require.NoError(t, err)
	require.Equal(t, core.Appended{Doubles: []int{0, 1, 2}}, a[0])
	require.Equal(t, []int{2}, a[1].Doubles, "what was shed is free")
	require.Equal(t, []string{"x3", "x6"}, r.drain(copied, p))
}
