package dynamo_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/infra/awstest"
	"sluice/infra/dynamo"
)

// paged is a client whose index pages hold two entries, and whose batches
// answer for three keys at a time.
type paged struct{ dynamo.API }

func (p paged) Query(ctx context.Context, in *dynamodb.QueryInput, o ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	few := *in
	if few.Limit == nil {
		few.Limit = aws.Int32(2)
	}
	return p.API.Query(ctx, &few, o...)
}

func (p paged) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput, o ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	few := dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{}}
	left := map[string]types.KeysAndAttributes{}
	for table, ask := range in.RequestItems {
		now, later := ask, ask
		now.Keys, later.Keys = ask.Keys[:min(3, len(ask.Keys))], ask.Keys[min(3, len(ask.Keys)):]
		few.RequestItems[table] = now
		if len(later.Keys) > 0 {
			left[table] = later
		}
	}
	out, err := p.API.BatchGetItem(ctx, &few, o...)
	if err == nil {
		out.UnprocessedKeys = left
	}
	return out, err
}

// TestListsOverPages lists many groups of two buffers, in small pages.
func TestListsOverPages(t *testing.T) {
	r, p := setup(t), policy()
	const n = 120
	var want []string
	for i := range n {
		key := fmt.Sprintf("k%03d", i)
		if i == 77 {
			key = "long" + strings.Repeat("/", 600)
		}
		ref := keyed(key)
		r.put(ref, p, "a", "b")
		want = append(want, key)
		if i%3 == 0 { // it is in both indexes
			r.claim(ref, 1, p)
		}
		if i%10 == 0 {
			r.put(core.Ref{Buffer: "b2", Key: key}, p, "c")
		}
	}
	slices.Sort(want)
	s := r.open(paged{r.raw})

	due := map[core.Ref]int{}
	for h, err := range s.Due(r.ctx, r.clock.Now().Add(time.Hour)) {
		require.NoError(t, err)
		due[h.Ref]++
	}
	require.Len(t, due, n+n/10)
	require.Equal(t, 2, due[keyed("k003")])
	require.Equal(t, 1, due[keyed("k004")])

	var got []string
	for after := (*string)(nil); ; {
		page, err := s.Groups(r.ctx, "b", after, 50)
		require.NoError(t, err)
		if len(page) == 0 {
			break
		}
		for i := range page {
			got = append(got, page[i].Ref.Key)
		}
		after = &got[len(got)-1]
	}
	require.Equal(t, want, got)

	stats, err := s.Stats(r.ctx)
	require.NoError(t, err)
	require.Equal(t, []core.BufferStats{
		{Buffer: "b", Groups: n, Pending: 2*n - n/3, Claimed: n / 3, Bytes: stats[0].Bytes, Oldest: begin},
		{Buffer: "b2", Groups: n / 10, Pending: n / 10, Bytes: stats[1].Bytes, Oldest: begin},
	}, stats)
	require.NoError(t, s.Maintain(r.ctx, []string{"b"}))
}

// TestBatchThatGivesNothing lets the table answer for none of the groups.
func TestBatchThatGivesNothing(t *testing.T) {
	r, p := setup(t), policy()
	r.put(keyed("k"), p, "x")
	tries := 0
	r.faults.After(func(_ context.Context, c awstest.Call, out any, _ error) {
		if batch, ok := out.(*dynamodb.BatchGetItemOutput); ok {
			tries++
			batch.Responses, batch.UnprocessedKeys = nil, c.Input.(*dynamodb.BatchGetItemInput).RequestItems
		}
	})
	_, err := r.Groups(r.ctx, "b", nil, 10)
	require.Equal(t, core.Unavailable, core.CodeOf(err))
	require.Equal(t, 5, tries)
}

// stale are hints that an index still has when its groups have gone on.
func TestStaleIndex(t *testing.T) {
	r, p := setup(t), policy()
	gone, empty, other := keyed("gone"), keyed("empty"), keyed("other")
	for _, ref := range []core.Ref{gone, empty, other} {
		r.put(ref, p, "x")
	}
	var was *dynamodb.QueryOutput
	entries := map[string]*dynamodb.QueryOutput{}
	r.faults.After(func(_ context.Context, c awstest.Call, out any, _ error) {
		in, ok := c.Input.(*dynamodb.QueryInput)
		if !ok || in.IndexName == nil {
			return
		}
		shard := *in.IndexName + in.ExpressionAttributeValues[":due"].(*types.AttributeValueMemberS).Value
		if was = entries[shard]; was == nil {
			copied := *out.(*dynamodb.QueryOutput)
			entries[shard] = &copied
			return
		}
		*out.(*dynamodb.QueryOutput) = *was
	})
	listed := func() (refs []string, lives []string) {
		for h, err := range r.Due(r.ctx, r.clock.Now().Add(time.Hour)) {
			require.NoError(t, err)
			refs, lives = append(refs, h.Ref.Key), append(lives, h.Life)
		}
		return refs, lives
	}
	first, lives := listed()
	require.ElementsMatch(t, []string{"gone", "empty", "other"}, first)

	r.expire(recordKey(gone))
	held, _ := r.claim(empty, 1, p)
	r.ack(empty, held, p)
	r.expire(recordKey(other))
	ps := parts(other, p, "y")
	ps[0].Life = "another"
	r.putAll(ps)

	again, livesAgain := listed()
	require.Equal(t, first, again)
	require.Equal(t, lives, livesAgain, "the index is stale")
	groups, err := r.Groups(r.ctx, "b", nil, 10)
	require.NoError(t, err)
	require.Len(t, groups, 1)
	require.Equal(t, "another", groups[0].Life)
	stats, err := r.Stats(r.ctx)
	require.NoError(t, err)
	require.Equal(t, 1, stats[0].Groups)
	require.NoError(t, r.Maintain(r.ctx, []string{"b"}))

	errSame := core.Errorf(core.Conflict, "as it is")
	for _, ref := range []core.Ref{gone, empty} { // as a sweep looks
		g, err := r.Update(r.ctx, ref, nil, func(g *core.Group) error {
			require.True(t, g.Empty())
			return nil
		})
		require.NoError(t, err)
		require.True(t, g.Empty())
		_, err = r.Update(r.ctx, ref, nil, func(*core.Group) error { return errSame })
		require.ErrorIs(t, err, errSame)
	}
}

// TestDueEnds leaves the walk early, and uses the store meanwhile.
func TestDueEnds(t *testing.T) {
	r, p := setup(t), policy()
	for i := range 20 {
		r.put(keyed(fmt.Sprint(i)), p, "x")
	}
	n := 0
	for h, err := range r.Due(r.ctx, r.clock.Now().Add(time.Hour)) {
		require.NoError(t, err)
		require.Equal(t, []string{"x"}, r.drain(h.Ref, p))
		if n++; n == 3 {
			break
		}
	}
	require.Equal(t, 3, n)
	require.NoError(t, r.Close())
}

// TestItemsOverPages reads a log whose queries answer with two segments at a
// time.
func TestItemsOverPages(t *testing.T) {
	for _, maxItems := range []int{0, 1, 3, 7, 30} {
		t.Run(fmt.Sprint(maxItems), func(t *testing.T) {
			r, ref, p := setup(t), keyed("k"), policy()
			s := r.open(paged{r.raw})
			var want []string
			for i := range 12 {
				if i%3 == 1 {
					r.hole(ref, p, 2)
				}
				put := numbered(fmt.Sprintf("%d.", i), i%4+1)
				r.put(ref, p, put...)
				want = append(want, put...)
			}
			r.clock.pass(time.Minute)
			g := r.group(ref)
			for _, maxBytes := range []int64{0, 10} {
				var got []string
				for from := uint64(1); from <= g.Tail; {
					page, err := s.Items(r.ctx, ref, &g, core.Span{From: from, To: g.Tail, MaxItems: maxItems, MaxBytes: maxBytes})
					require.NoError(t, err)
					require.GreaterOrEqual(t, page.End, from)
					got = append(got, names(page.Items)...)
					from = page.End + 1
				}
				require.Equal(t, want, got)
			}
		})
	}
}
