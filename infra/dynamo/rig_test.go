package dynamo_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
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

const retention = 7 * 24 * time.Hour

// rig is a table of its own, with a store whose calls a test may make fail.
type rig struct {
	*dynamo.Store

	t      *testing.T
	ctx    context.Context
	clock  *clock
	table  string
	client *dynamodb.Client // the store's own
	raw    *dynamodb.Client // the test's, which never fails
	faults *awstest.Faults
	meter  *awstest.Meter

	mu     sync.Mutex
	losses []dynamo.Loss
}

func setup(t *testing.T, opts ...awstest.Option) *rig {
	t.Helper()
	t.Parallel()
	r := &rig{t: t, ctx: context.Background(), clock: newClock(), faults: &awstest.Faults{}, meter: &awstest.Meter{}}
	r.raw = awstest.DynamoDB(t)
	r.client = awstest.DynamoDB(t, append([]awstest.Option{r.faults.Option, r.meter.Option}, opts...)...)
	r.table = awstest.Table(t, r.raw)
	r.Store = r.open(r.client)
	return r
}

// open is one more process on the table.
func (r *rig) open(api dynamo.API) *dynamo.Store { return r.openFor(api, retention) }

// openFor is one with another retention.
func (r *rig) openFor(api dynamo.API, retention time.Duration) *dynamo.Store {
	return dynamo.New(api, dynamo.Options{Table: r.table, Clock: r.clock, Retention: retention, OnLoss: func(l dynamo.Loss) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.losses = append(r.losses, l)
	}})
}

// lost is what losses were reported, each once.
func (r *rig) lost() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var lost []string
	for _, l := range r.losses {
		if s := fmt.Sprintf("%d-%d", l.From, l.To); !slices.Contains(lost, s) {
			lost = append(lost, s)
		}
	}
	return lost
}

// keyed is a group of the tests' buffer.
func keyed(key string) core.Ref { return core.Ref{Buffer: "b", Key: key} }

// policy is one under which nothing but time makes a group due.
func policy(change ...func(*core.Policy)) *core.Policy {
	p := &core.Policy{
		MaxItems: 10_000, MaxBytes: 1 << 30, IdleTimeout: 3 * time.Second, MaxWait: 10 * time.Second,
		CapBytes: 1 << 30, Concurrency: core.MaxClaims, Lease: time.Minute, MaxHold: time.Hour,
	}
	for _, f := range change {
		f(p)
	}
	return p
}

func capped(n int) func(*core.Policy) { return func(p *core.Policy) { p.CapItems = n } }

// parts is one part of events that hold no more than their names.
func parts(ref core.Ref, p *core.Policy, names ...string) []core.Part {
	part := core.Part{Ref: ref, Life: "life" + ref.Key + strings.Join(names[:1], ""), Policy: p}
	for _, n := range names {
		part.Events = append(part.Events, core.Event{ID: n, Source: "in"})
	}
	return []core.Part{part}
}

// numbered are n names.
func numbered(prefix string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s%d", prefix, i+1)
	}
	return names
}

func (r *rig) put(ref core.Ref, p *core.Policy, names ...string) core.Appended {
	r.t.Helper()
	return r.putAll(parts(ref, p, names...))
}

// putAll appends one part.
func (r *rig) putAll(ps []core.Part) core.Appended {
	r.t.Helper()
	now := r.clock.Now()
	for i := range ps[0].Events {
		ps[0].Events[i].ReceivedAt = now
	}
	a, err := r.Append(r.ctx, now, ps)
	require.NoError(r.t, err)
	return a[0]
}

// hole makes a writer die between its two calls.
func (r *rig) hole(ref core.Ref, p *core.Policy, n int) {
	r.t.Helper()
	other := &awstest.Faults{}
	other.Set(awstest.Crash(2, awstest.Unsent))
	_, err := r.open(awstest.DynamoDB(r.t, other.Option)).Append(r.ctx, r.clock.Now(), parts(ref, p, numbered("dead", n)...))
	require.Equal(r.t, core.Unavailable, core.CodeOf(err), "%v", err)
}

func (r *rig) group(ref core.Ref) core.Group {
	r.t.Helper()
	g, err := r.Group(r.ctx, ref)
	require.NoError(r.t, err)
	return g
}

// pending reads one page of pending items.
func (r *rig) pending(ref core.Ref, limit int) (core.Page, core.Group) {
	r.t.Helper()
	g := r.group(ref)
	page, err := r.Items(r.ctx, ref, &g, core.Span{From: g.Head + 1, To: g.Tail, MaxItems: limit})
	require.NoError(r.t, err)
	require.Len(r.t, page.Offsets, len(page.Items))
	return page, g
}

// claim takes the next n items.
func (r *rig) claim(ref core.Ref, n int, p *core.Policy) (core.Claim, []string) {
	r.t.Helper()
	page, g := r.pending(ref, n)
	c, err := claim(r.ctx, r.Store, ref, &g, &page, p, r.clock.Now())
	require.NoError(r.t, err)
	return c, names(page.Items)
}

// claim claims a page.
func claim(ctx context.Context, s core.Store, ref core.Ref, g *core.Group, page *core.Page, p *core.Policy, now core.Millis) (c core.Claim, err error) {
	t := core.Taking{From: g.Head + 1, To: page.End, Through: page.Through, Items: len(page.Items),
		NextAt: page.NextAt, Mark: page.Mark, Reason: core.ReasonIdle}
	_, err = s.Update(ctx, ref, g, func(now2 *core.Group) (err error) {
		if now2.Life != g.Life {
			return core.Errorf(core.Conflict, "the group has begun anew")
		}
		c, err = now2.Claim(t, p, now)
		return err
	})
	return c, err
}

func (r *rig) members(ref core.Ref, c core.Claim) []string {
	r.t.Helper()
	g := r.group(ref)
	page, err := r.Items(r.ctx, ref, &g, core.Span{From: c.From, To: c.To})
	require.NoError(r.t, err)
	require.Equal(r.t, c.To, page.End)
	return names(slices.DeleteFunc(page.Items, func(it core.Item) bool { return !c.Has(it.Seq) }))
}

func (r *rig) ack(ref core.Ref, c core.Claim, p *core.Policy) core.Group {
	r.t.Helper()
	g, err := r.Update(r.ctx, ref, nil, func(g *core.Group) error { return g.Ack(c.ID, c.Lease, p, r.clock.Now()) })
	require.NoError(r.t, err)
	return g
}

func names(items []core.Item) []string {
	s := make([]string, len(items))
	for i := range items {
		s[i] = items[i].ID
	}
	return s
}

// drain delivers all of a group, as deliverers do whom only sweeps wake: every
// lease that there was has ended, and every hole is old.
func (r *rig) drain(ref core.Ref, p *core.Policy) []string {
	r.t.Helper()
	var all []string
	for range 50 {
		r.clock.pass(2 * time.Hour)
		g := r.group(ref)
		switch {
		case g.Empty():
			return all
		case len(g.Claims) > 0:
			c := g.Claims[0]
			_, err := r.Update(r.ctx, ref, &g, func(g *core.Group) (err error) {
				c, err = g.Recover(c.ID, p, r.clock.Now())
				return err
			})
			require.NoError(r.t, err)
			all = append(all, r.members(ref, c)...)
			r.ack(ref, c, p)
		default:
			require.NotZero(r.t, g.CheckAt, "what is pending is armed")
			c, got := r.claim(ref, 50, p)
			if all = append(all, got...); len(got) > 0 {
				r.ack(ref, c, p)
			}
		}
	}
	r.t.Fatalf("%v never gets empty", ref)
	return nil
}

// segment is the key of a segment in the table.
func segment(life string, first uint64) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{
		"pk": &types.AttributeValueMemberS{Value: fmt.Sprintf("s/%s/%d", life, first/256)},
		"sk": &types.AttributeValueMemberN{Value: fmt.Sprint(first)},
	}
}

func recordKey(ref core.Ref) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{
		"pk": &types.AttributeValueMemberS{Value: fmt.Sprintf("g/%s/%d/=%s", ref.Buffer, ref.Shard, ref.Key)},
		"sk": &types.AttributeValueMemberN{Value: "0"},
	}
}

func sharedKey(name string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{
		"pk": &types.AttributeValueMemberS{Value: "c/=" + name},
		"sk": &types.AttributeValueMemberN{Value: "0"},
	}
}

// expire deletes an item that must be there, as the table does.
func (r *rig) expire(key map[string]types.AttributeValue) {
	r.t.Helper()
	_, err := r.raw.DeleteItem(r.ctx, &dynamodb.DeleteItemInput{TableName: &r.table, Key: key, ConditionExpression: aws.String("attribute_exists(pk)")})
	require.NoError(r.t, err)
}

// expires is the time, in Unix seconds, from which on the table may delete an item.
func (r *rig) expires(key map[string]types.AttributeValue) string {
	r.t.Helper()
	out, err := r.raw.GetItem(r.ctx, &dynamodb.GetItemInput{TableName: &r.table, Key: key, ConsistentRead: aws.Bool(true)})
	require.NoError(r.t, err)
	n, ok := out.Item["expires"].(*types.AttributeValueMemberN)
	if !ok {
		return ""
	}
	return n.Value
}

// carrying makes failed conditions carry the item that they met, as the real
// table does, and the stand-in does not.
type carrying struct {
	dynamo.API
	carried atomic.Int64
}

func (c *carrying) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	out, err := c.API.UpdateItem(ctx, in, o...)
	return out, c.carry(ctx, err, in.TableName, in.Key)
}

func (c *carrying) PutItem(ctx context.Context, in *dynamodb.PutItemInput, o ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	out, err := c.API.PutItem(ctx, in, o...)
	return out, c.carry(ctx, err, in.TableName, map[string]types.AttributeValue{"pk": in.Item["pk"], "sk": in.Item["sk"]})
}

func (c *carrying) carry(ctx context.Context, err error, table *string, key map[string]types.AttributeValue) error {
	failed, ok := asFailed(err)
	if !ok {
		return err
	}
	out, got := c.API.GetItem(ctx, &dynamodb.GetItemInput{TableName: table, Key: key, ConsistentRead: aws.Bool(true)})
	if got != nil {
		return got
	}
	c.carried.Add(1)
	failed.Item = out.Item
	return err
}

// big is an event of so many bytes that do not compress.
func big(name string, size int) core.Event {
	var b bytes.Buffer
	x := uint64(len(name))*7919 + 1
	for i := range len(name) {
		x = x*31 + uint64(name[i])
	}
	for b.Len() < size {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		b.WriteByte(byte(x >> 32))
	}
	return core.Event{ID: name, Source: "in", Body: b.Bytes()}
}
