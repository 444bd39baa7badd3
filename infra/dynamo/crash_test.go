package dynamo_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/infra/awstest"
)

func asFailed(err error) (*types.ConditionalCheckFailedException, bool) {
	return errors.AsType[*types.ConditionalCheckFailedException](err)
}

// crashing runs a script once for each call that it makes and each way in which
// its process can die there, always on groups of their own. script returns
// what was acknowledged before it died.
func crashing(t *testing.T, script func(r *rig, ref core.Ref) (acknowledged []string, err error), check func(r *rig, ref core.Ref, acknowledged []string, died bool)) {
	t.Helper()
	r := setup(t)
	for _, fault := range []awstest.Fault{awstest.Unsent, awstest.Lost} {
		for n, died := 1, true; died; n++ {
			require.Less(t, n, 60, "a script that never gets to its end")
			ref := keyed(fmt.Sprintf("%d-%d", fault, n))
			r.faults.Set(nil)
			r.faults.Set(awstest.Crash(n, fault))
			acknowledged, err := script(r, ref)
			died = r.faults.Calls() >= n
			if err != nil {
				require.True(t, died, "%v", err)
				require.Equal(t, core.Unavailable, core.CodeOf(err), "call %d: %v", n, err)
			}
			r.faults.Set(nil)
			r.Store = r.open(r.client) // a new process
			check(r, ref, acknowledged, died)
		}
	}
}

// inOrder reports that what must be there is, once, in its order.
func inOrder(t *testing.T, must, got []string, what string) {
	t.Helper()
	at := map[string]int{}
	for i, n := range got {
		require.NotContains(t, at, n, "%s: %s is delivered twice: %v", what, n, got)
		at[n] = i + 1
	}
	last := 0
	for _, n := range must {
		require.NotZero(t, at[n], "%s: %s is lost: %v", what, n, got)
		require.Greater(t, at[n], last, "%s: %s was overtaken: %v", what, n, got)
		last = at[n]
	}
}

func TestCrashInAppend(t *testing.T) {
	p := policy()
	for _, c := range []struct {
		name   string
		append func(ref core.Ref) []core.Part
	}{
		{"one group", func(ref core.Ref) []core.Part { return parts(ref, p, "x1", "x2") }},
		{"the same group twice", func(ref core.Ref) []core.Part {
			return append(parts(ref, p, "x1"), parts(ref, p, "x2")...)
		}},
		{"several groups", func(ref core.Ref) []core.Part {
			a, b := ref, ref
			a.Shard, b.Shard = 1, 2
			return append(append(parts(ref, p, "x1", "x2"), parts(a, p, "a1")...), parts(b, p, "b1")...)
		}},
		{"several segments", func(ref core.Ref) []core.Part {
			ps := parts(ref, p, "x")
			ps[0].Events = []core.Event{big("x1", 300_000), big("x2", 300_000), big("x3", 300_000)}
			return ps
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			crashing(t, func(r *rig, ref core.Ref) ([]string, error) {
				r.clock.pass(time.Millisecond)
				_, err := r.Append(r.ctx, r.clock.Now(), c.append(ref))
				if err != nil {
					return nil, err
				}
				return []string{"x"}, nil
			}, func(r *rig, ref core.Ref, acknowledged []string, _ bool) {
				r.put(ref, p, "y") // behind whatever is left
				want := map[core.Ref][]string{ref: {"y"}}
				if acknowledged != nil {
					want[ref] = nil
					for _, part := range c.append(ref) {
						for i := range part.Events {
							want[part.Ref] = append(want[part.Ref], part.Events[i].ID)
						}
					}
					want[ref] = append(want[ref], "y")
				}
				for ref, must := range want {
					inOrder(t, must, r.drain(ref, p), ref.Key)
				}
			})
		})
	}
}

// TestCrashInCycle lets a deliverer die anywhere, and writers with it.
func TestCrashInCycle(t *testing.T) {
	p := policy()
	for _, c := range []struct {
		name   string
		settle func(r *rig, ref core.Ref, held core.Claim, got []string) (settled []string, err error)
	}{
		{"ack", func(r *rig, ref core.Ref, held core.Claim, got []string) ([]string, error) {
			_, err := r.Update(r.ctx, ref, nil, func(g *core.Group) error { return g.Ack(held.ID, held.Lease, p, r.clock.Now()) })
			return got, err
		}},
		{"release", func(r *rig, ref core.Ref, held core.Claim, _ []string) ([]string, error) {
			_, err := r.Update(r.ctx, ref, nil, func(g *core.Group) error {
				return g.Release(held.ID, held.Lease, r.clock.Now().Add(time.Second), "no", p, r.clock.Now())
			})
			return nil, err
		}},
		{"shrink", func(r *rig, ref core.Ref, held core.Claim, got []string) ([]string, error) {
			_, err := r.Update(r.ctx, ref, nil, func(g *core.Group) error {
				var failed core.Bits
				return g.Shrink(held.ID, held.Lease, failed.With(1), r.clock.Now(), "no", p, r.clock.Now())
			})
			return append(got[:1:1], got[2:]...), err
		}},
	} {
		for _, take := range []int{3, 4} { // 4: which leaves the group empty
			t.Run(fmt.Sprintf("%s of %d", c.name, take), func(t *testing.T) {
				var settled, maybe []string // maybe: settled, if the answer was only lost
				crashing(t, func(r *rig, ref core.Ref) (acknowledged []string, err error) {
					settled, maybe = nil, nil
					r.clock.pass(time.Millisecond)
					for _, names := range [][]string{{"x1", "x2"}, {"x3", "x4"}} {
						if _, err := r.Append(r.ctx, r.clock.Now(), parts(ref, p, names...)); err != nil {
							return acknowledged, err
						}
						acknowledged = append(acknowledged, names...)
					}
					g, err := r.Group(r.ctx, ref)
					if err != nil {
						return acknowledged, err
					}
					page, err := r.Items(r.ctx, ref, &g, core.Span{From: 1, To: g.Tail, MaxItems: take})
					if err != nil {
						return acknowledged, err
					}
					held, err := claim(r.ctx, r, ref, &g, &page, p, r.clock.Now())
					if err != nil {
						return acknowledged, err
					}
					did, err := c.settle(r, ref, held, names(page.Items))
					if maybe = did; err == nil {
						settled = did
					}
					return acknowledged, err
				}, func(r *rig, ref core.Ref, acknowledged []string, _ bool) {
					r.put(ref, p, "y")
					got := r.drain(ref, p)
					var must []string
					for _, n := range acknowledged {
						if slices.Contains(maybe, n) && !slices.Contains(got, n) {
							continue
						}
						must = append(must, n)
					}
					inOrder(t, append(must, "y"), got, ref.Key)
					for _, n := range settled {
						require.NotContains(t, got, n, "what was settled is delivered again")
					}
				})
			})
		}
	}
}

// TestCrashInFencing lets a reader die while it fences a hole of several numbers.
func TestCrashInFencing(t *testing.T) {
	p := policy()
	crashing(t, func(r *rig, ref core.Ref) ([]string, error) {
		plain := &rig{t: r.t, ctx: r.ctx, clock: r.clock, table: r.table}
		plain.Store = plain.open(r.raw)
		plain.put(ref, p, "x1")
		plain.hole(ref, p, 3)
		plain.put(ref, p, "x2")
		r.clock.pass(time.Minute)
		g, err := r.Group(r.ctx, ref)
		if err != nil {
			return nil, err
		}
		page, err := r.Items(r.ctx, ref, &g, core.Span{From: 1, To: g.Tail})
		if err == nil {
			require.Equal(t, []string{"x1", "x2"}, names(page.Items))
		}
		return nil, err
	}, func(r *rig, ref core.Ref, _ []string, _ bool) {
		require.Equal(t, []string{"x1", "x2"}, r.drain(ref, p))
		require.Empty(t, r.lost())
	})
}

// TestCrashInWindow lets writer and deliverer of a window die anywhere.
func TestCrashInWindow(t *testing.T) {
	p := policy(window)
	var maybe, settled []string // maybe: settled, if the answer was only lost
	crashing(t, func(r *rig, ref core.Ref) (acknowledged []string, err error) {
		maybe, settled = nil, nil
		r.clock.pass(time.Millisecond)
		for _, names := range [][]string{{"x1", "x2"}, {"x3"}} {
			if _, err := r.Append(r.ctx, r.clock.Now(), parts(ref, p, names...)); err != nil {
				return acknowledged, err
			}
			acknowledged = append(acknowledged, names...)
		}
		g, err := r.Update(r.ctx, ref, nil, func(g *core.Group) error { g.Close(p.KeptUntil, p, r.clock.Now()); return nil })
		if err != nil {
			return acknowledged, err
		}
		page, err := r.Items(r.ctx, ref, &g, core.Span{From: 1, To: g.Tail})
		if err != nil {
			return acknowledged, err
		}
		held, err := claim(r.ctx, r, ref, &g, &page, p, r.clock.Now())
		if err != nil {
			return acknowledged, err
		}
		if _, err = r.Update(r.ctx, ref, nil, func(g *core.Group) error {
			return g.Advance(held.ID, held.Lease, "rows", 2, p, r.clock.Now())
		}); err != nil {
			return acknowledged, err
		}
		maybe = names(page.Items)
		_, err = r.Update(r.ctx, ref, nil, func(g *core.Group) error { return g.Ack(held.ID, held.Lease, p, r.clock.Now()) })
		if err == nil {
			settled = maybe
		}
		return acknowledged, err
	}, func(r *rig, ref core.Ref, acknowledged []string, _ bool) {
		closed := r.group(ref).Closed != 0
		a := r.put(ref, p, "y")
		require.Equal(t, closed, a.Closed)
		got := r.drain(ref, p)
		var must []string
		for _, n := range acknowledged {
			if !slices.Contains(maybe, n) || slices.Contains(got, n) {
				must = append(must, n)
			}
		}
		if !closed {
			must = append(must, "y")
		}
		inOrder(t, must, got, ref.Key)
		require.Equal(t, closed, !slices.Contains(got, "y"))
		for _, n := range settled {
			require.NotContains(t, got, n, "what was settled is delivered again")
		}
	})
}
