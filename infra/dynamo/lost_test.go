package dynamo_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/infra/awstest"
	"sluice/infra/dynamo"
)

// bothWays runs a test with failed conditions that carry the item which they
// met, as on AWS, and with such as carry none.
func bothWays(t *testing.T, test func(t *testing.T, r *rig)) {
	t.Helper()
	for _, with := range []bool{false, true} {
		t.Run(fmt.Sprintf("item carried: %t", with), func(t *testing.T) {
			r := setup(t, awstest.Attempts(3))
			c := &carrying{API: r.client}
			if with {
				r.Store = r.open(c)
			}
			test(t, r)
			require.Equal(t, with, c.carried.Load() > 0)
		})
	}
}

// TestLostAnswerOfPut shows that a writer knows its own segment.
func TestLostAnswerOfPut(t *testing.T) {
	bothWays(t, func(t *testing.T, r *rig) {
		ref, p := keyed("k"), policy()
		r.faults.Set(awstest.Nth("PutItem", 1, awstest.Lost))
		a := r.put(ref, p, "x1", "x2")
		require.Equal(t, uint64(1), a.First)
		require.Equal(t, uint64(2), r.group(ref).Tail, "it was numbered once")
		require.Equal(t, []string{"x1", "x2"}, r.drain(ref, p))
	})
}

// TestLostAnswerOfAppend shows that numbers which may have been handed out are
// a hole, that a writer who does not know what it has done arms and hands over.
func TestLostAnswerOfAppend(t *testing.T) {
	r, ref, p := setup(t), keyed("k"), policy(func(p *core.Policy) { p.MaxItems = 4 })
	r.faults.Set(awstest.Nth("UpdateItem", 1, awstest.Lost))
	a := r.put(ref, p, "x1", "x2")
	require.Equal(t, uint64(3), a.First)
	require.True(t, a.Armed, "its lost numbers opened the group")
	require.True(t, a.Reached, "its lost numbers may be those that filled it")
	r.faults.Set(nil)
	page, _ := r.pending(ref, 0)
	require.NotZero(t, page.RetryAt)
	require.Equal(t, []string{"x1", "x2"}, r.drain(ref, p))
	require.Empty(t, r.lost())
}

// TestAppendGivesUp shows what is left of an append none of whose answers came.
func TestAppendGivesUp(t *testing.T) {
	for _, fault := range []awstest.Fault{awstest.Lost, awstest.Unsent, awstest.Throttle} {
		t.Run(fmt.Sprint(fault), func(t *testing.T) {
			r, ref, p := setup(t), keyed("k"), policy()
			r.put(ref, p, "x1")
			r.faults.Set(func(_ context.Context, c awstest.Call) awstest.Fault {
				if c.Op == "UpdateItem" {
					return fault
				}
				return awstest.None
			})
			_, err := r.Append(r.ctx, r.clock.Now(), parts(ref, p, "x2"))
			require.Equal(t, core.Unavailable, core.CodeOf(err), "%v", err)
			require.Positive(t, core.RetryAfterOf(err))
			require.Equal(t, 5, r.faults.Calls(), "tries")
			r.faults.Set(nil)
			phantoms := uint64(0)
			if fault == awstest.Lost {
				phantoms = 5
			}
			require.Equal(t, 1+phantoms, r.group(ref).Tail)
			r.put(ref, p, "x3")
			require.Equal(t, []string{"x1", "x3"}, r.drain(ref, p))
		})
	}
}

// TestLostAnswerOfUpdate shows that a transition knows its own writing, unless
// another has come behind it.
func TestLostAnswerOfUpdate(t *testing.T) {
	bothWays(t, func(t *testing.T, r *rig) {
		ref, p := keyed("k"), policy()
		r.put(ref, p, "x1", "x2", "x3")
		r.faults.Set(awstest.Nth("UpdateItem", 1, awstest.Lost))
		first, got := r.claim(ref, 1, p)
		require.Equal(t, []string{"x1"}, got)
		require.Len(t, r.group(ref).Claims, 1)

		// the other comes between the answer that was lost and the second try
		r.faults.Set(func(ctx context.Context, c awstest.Call) awstest.Fault {
			switch {
			case c.Op != "UpdateItem" || c.Nth > 2:
				return awstest.None
			case c.Nth == 1:
				return awstest.Lost
			}
			_, err := r.open(r.raw).Update(ctx, ref, nil, func(g *core.Group) error {
				g.Nudge(r.clock.Now().Add(time.Hour))
				return nil
			})
			require.NoError(t, err)
			return awstest.None
		})
		_, err := r.Update(r.ctx, ref, nil, func(g *core.Group) error { return g.Ack(first.ID, first.Lease, p, r.clock.Now()) })
		require.Equal(t, core.Conflict, core.CodeOf(err), "it has been settled, by somebody")
		r.faults.Set(nil)
		require.Equal(t, []string{"x2", "x3"}, r.drain(ref, p))
	})
}

// TestLostAnswerOfEmptying loses the answer of the transition that leaves
// nothing, with an append behind it.
func TestLostAnswerOfEmptying(t *testing.T) {
	bothWays(t, func(t *testing.T, r *rig) {
		ref, p := keyed("k"), policy()
		r.put(ref, p, "x1")
		r.faults.Set(func(ctx context.Context, c awstest.Call) awstest.Fault {
			switch {
			case c.Op != "UpdateItem" || c.Nth > 2:
				return awstest.None
			case c.Nth == 1:
				return awstest.Lost
			}
			a, err := r.open(r.raw).Append(ctx, r.clock.Now(), parts(ref, p, "x2"))
			require.NoError(t, err)
			require.True(t, a[0].Armed)
			return awstest.None
		})
		held, got := r.claim(ref, 1, p)
		require.Equal(t, []string{"x1"}, got)
		r.faults.Set(nil)
		g := r.group(ref)
		require.Len(t, g.Claims, 1)
		require.Equal(t, held.ID, g.Claims[0].ID)
		require.NotZero(t, g.CheckAt)
		require.Equal(t, []string{"x1", "x2"}, r.drain(ref, p))
	})
}

// TestRaces shows that a transition that loses is made anew on what the winner
// has left.
func TestRaces(t *testing.T) {
	bothWays(t, func(t *testing.T, r *rig) {
		ref, p := keyed("k"), policy()
		r.put(ref, p, "x1")
		other := r.open(r.raw)
		r.faults.Set(func(ctx context.Context, c awstest.Call) awstest.Fault {
			if c.Op == "UpdateItem" && c.Nth <= 2 {
				_, err := other.Update(ctx, ref, nil, func(g *core.Group) error {
					g.Nudge(g.CheckAt + 1)
					return nil
				})
				require.NoError(t, err)
				_, err = other.Append(ctx, r.clock.Now(), parts(ref, p, fmt.Sprint("y", c.Nth)))
				require.NoError(t, err)
			}
			return awstest.None
		})
		runs := 0
		g, err := r.Update(r.ctx, ref, nil, func(g *core.Group) error {
			runs++
			g.Nudge(r.clock.Now().Add(time.Hour))
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, 3, runs)
		require.Equal(t, uint64(3), g.Tail, "the record has the appends")
		require.Equal(t, r.clock.Now().Add(time.Hour), g.CheckAt)
		r.faults.Set(nil)
		require.Equal(t, g, r.group(ref))
	})
}

// TestThrottled shows that a throttled call says so, and has done nothing.
func TestThrottled(t *testing.T) {
	p, ref := policy(), keyed("k")
	for _, c := range []struct {
		op   string
		call func(r *rig) error
	}{
		{"GetItem", func(r *rig) error { _, err := r.Group(r.ctx, ref); return err }},
		{"Query", func(r *rig) error {
			g := core.Group{Life: "l", Tail: 2}
			_, err := r.Items(r.ctx, ref, &g, core.Span{From: 1, To: 2})
			return err
		}},
		{"UpdateItem", func(r *rig) error {
			_, err := r.Update(r.ctx, ref, nil, func(g *core.Group) error { g.Nudge(begin.Add(time.Hour)); return nil })
			return err
		}},
		{"PutItem", func(r *rig) error { _, err := r.Append(r.ctx, begin, parts(ref, p, "x2")); return err }},
		{"Query", func(r *rig) error {
			for _, err := range r.Due(r.ctx, begin) {
				return err
			}
			return nil
		}},
		{"Query", func(r *rig) error { _, err := r.Stats(r.ctx); return err }},
		{"BatchGetItem", func(r *rig) error { _, err := r.Groups(r.ctx, "b", nil, 10); return err }},
		{"BatchGetItem", func(r *rig) error { return r.Maintain(r.ctx, []string{"b"}) }},
		{"GetItem", func(r *rig) error {
			ps := parts(ref, p, "x2")
			ps[0].Size = 10
			_, err := r.Append(r.ctx, begin, ps)
			return err
		}},
	} {
		t.Run(c.op, func(t *testing.T) {
			r := setup(t, awstest.Attempts(3))
			r.put(ref, p, "x1")
			r.faults.Set(func(_ context.Context, call awstest.Call) awstest.Fault {
				if call.Op == c.op {
					return awstest.Throttle
				}
				return awstest.None
			})
			err := c.call(r)
			require.Equal(t, core.Unavailable, core.CodeOf(err), "%v", err)
			require.Equal(t, time.Second, core.RetryAfterOf(err))
			require.Contains(t, core.DetailOf(err), "throttled")

			r.faults.Set(func(_ context.Context, call awstest.Call) awstest.Fault {
				if call.Op == c.op && call.Nth <= 2 {
					return awstest.Throttle
				}
				return awstest.None
			})
			require.NoError(t, c.call(r), "it goes on when the table does")
			r.faults.Set(nil)
			got := r.drain(ref, p)
			require.Equal(t, "x1", got[0])
			require.Empty(t, r.lost())
		})
	}
}

// severed is a client that gives a call up when its context ends: before the
// call was sent, or when it was carried out. On the wire nothing is cut off,
// which the stand-in does not survive.
type severed struct{ dynamo.API }

func sever[In, Out any](ctx context.Context, in In, o []func(*dynamodb.Options),
	call func(context.Context, In, ...func(*dynamodb.Options)) (Out, error),
) (out Out, err error) {
	if ctx.Err() == nil {
		out, err = call(context.WithoutCancel(ctx), in, o...)
	}
	if ctx.Err() != nil {
		var none Out
		return none, &aws.RequestCanceledError{Err: ctx.Err()}
	}
	return out, err
}

func (s severed) GetItem(ctx context.Context, in *dynamodb.GetItemInput, o ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return sever(ctx, in, o, s.API.GetItem)
}

func (s severed) PutItem(ctx context.Context, in *dynamodb.PutItemInput, o ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	return sever(ctx, in, o, s.API.PutItem)
}

func (s severed) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	return sever(ctx, in, o, s.API.UpdateItem)
}

func (s severed) Query(ctx context.Context, in *dynamodb.QueryInput, o ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	return sever(ctx, in, o, s.API.Query)
}

// TestCanceled cancels an append before or behind each of its calls.
func TestCanceled(t *testing.T) {
	r, p := setup(t), policy()
	r.Store = r.open(severed{r.client})
	for n := range 6 {
		for _, behind := range []bool{false, true} {
			ctx, cancel := context.WithCancel(t.Context())
			ref, other := keyed(fmt.Sprint(n, behind)), keyed(fmt.Sprint("other", n, behind))
			r.faults.Set(func(_ context.Context, c awstest.Call) awstest.Fault {
				if c.Total == n+1 && !behind {
					cancel()
				}
				return awstest.None
			})
			r.faults.After(func(_ context.Context, c awstest.Call, _ any, _ error) {
				if c.Total == n+1 && behind {
					cancel()
				}
			})
			_, err := r.Append(ctx, r.clock.Now(), append(parts(ref, p, "x"), parts(other, p, "y")...))
			cancel()
			r.faults.Set(nil)
			r.faults.After(nil)
			if err != nil {
				require.Contains(t, []core.Code{core.Canceled, core.Unavailable}, core.CodeOf(err), "%v", err)
				r.put(ref, p, "z")
				inOrder(t, []string{"z"}, r.drain(ref, p), "canceled")
				continue
			}
			require.Equal(t, []string{"x"}, r.drain(ref, p))
			require.Equal(t, []string{"y"}, r.drain(other, p))
		}
	}
}

// TestCanceledReading cancels a reader that waits for a writer.
func TestCanceledReading(t *testing.T) {
	r, ref, p := setup(t), keyed("k"), policy()
	r.Store = r.open(severed{r.client})
	r.hole(ref, p, 1)
	ctx, cancel := context.WithCancel(t.Context())
	r.faults.After(func(_ context.Context, c awstest.Call, _ any, _ error) {
		if c.Op == "Query" {
			cancel()
		}
	})
	g := r.group(ref)
	_, err := r.Items(ctx, ref, &g, core.Span{From: 1, To: 1})
	require.Equal(t, core.Canceled, core.CodeOf(err), "%v", err)
}

// TestTooLarge refuses an event that no item of the table takes, body and headers,
// before anything of its request is marked, numbered or stored; a copy is left out.
func TestTooLarge(t *testing.T) {
	r, ref, p := setup(t), keyed("k"), policy()
	headers := big("x1", int(core.MaxEventBytesAWS))
	for range 100 {
		headers.Headers = append(headers.Headers, core.Header{Name: "x", Value: strings.Repeat("h", 500)})
	}
	for name, e := range map[string]core.Event{"body": big("x1", 500_000), "headers": headers} {
		other := keyed(name)
		ps := append(once(other, p, "y"), once(ref, p, "x")...)
		ps[1].Events = []core.Event{big("x0", 10), e}
		for range 2 {
			_, err := r.Append(r.ctx, r.clock.Now(), ps)
			require.Equal(t, core.TooLarge, core.CodeOf(err), "%s: %v", name, err)
		}
		require.Empty(t, r.group(other).Life, name)
		ps[1].Shed = true
		a, err := r.Append(r.ctx, r.clock.Now(), ps)
		require.NoError(t, err, name)
		require.Empty(t, a[0].Doubles, name)
		require.True(t, a[1].Shed, name)
		require.Equal(t, []string{"y"}, r.drain(other, p), name)
		r.clock.pass(dedupeWindow)
	}
	r.put(ref, p, "x2")
	require.Equal(t, []string{"x2"}, r.drain(ref, p))
}

// TestLargest stores the largest event that a source on AWS may bring, with as
// many headers as it may have.
func TestLargest(t *testing.T) {
	r, ref, p := setup(t), keyed("k"), policy()
	e := big("x", int(core.MaxEventBytesAWS))
	for range core.MaxHeaderBytes / 2 {
		e.Headers = append(e.Headers, core.Header{Name: "a", Value: "b"})
	}
	e.ID, e.ContentType = strings.Repeat("i", 256), strings.Repeat("c", 8<<10)
	ps := parts(ref, p, "x")
	ps[0].Events = []core.Event{e}
	_, err := r.Append(r.ctx, r.clock.Now(), ps)
	require.NoError(t, err)
	require.Equal(t, []string{e.ID}, r.drain(ref, p))
}
