package storetest

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

var closeTests = []test{
	{"a closed store answers no call", closeAnswersNothing},
	{"a closed store opens with all it held", closeKeeps},
	{"close lets calls under way finish", closeFinishes},
}

func closeAnswersNothing(t *testing.T, p *probe) {
	ref, ctx := core.Ref{Buffer: "b", Key: "k"}, context.Background()
	p.append(start, part(ref, calm(), start, 1, 1, 1))
	closed := p.s
	require.NoError(t, closed.Close())
	ran := false
	for call, err := range map[string]error{
		"append": errorOf(closed.Append(ctx, start, []core.Part{part(ref, calm(), start, 2, 1, 1)})),
		"group":  errorOf(closed.Group(ctx, ref)),
		"update": errorOf(closed.Update(ctx, ref, nil, func(*core.Group) error { ran = true; return nil })),
		"items":  errorOf(closed.Items(ctx, ref, &core.Group{Life: "l", Tail: 1}, core.Span{From: 1, To: 1})),
		"due":    dueError(closed.Due(ctx, start)),
		"groups": errorOf(closed.Groups(ctx, "b", nil, 1)),
		"stats":  errorOf(closed.Stats(ctx)),
	} {
		require.Error(t, err, call)
		require.Equal(t, core.Unavailable, core.CodeOf(err), "%s: %v", call, err)
	}
	require.False(t, ran, "no transition runs on a closed store")
	p.reopen()
	require.Equal(t, []string{"k-1"}, ids(p.all(ref, 1, 1, 0)))
	require.Equal(t, uint64(1), p.group(ref).Tail)
}

// errorOf is the error of a call with two results.
func errorOf[T any](_ T, err error) error { return err }

// dueError is the error that a walk ends with.
func dueError(due iter.Seq2[core.Hint, error]) error {
	var last error
	for _, err := range due {
		last = err
	}
	return last
}

func closeKeeps(t *testing.T, p *probe) {
	policy := calm()
	a, b := core.Ref{Buffer: "b", Key: "a"}, core.Ref{Buffer: "b", Key: "b"}
	p.append(start, part(a, policy, start, 1, 5, 10), part(b, policy, start, 1, 5, 10))
	p.claim(a, 2, policy, start)
	p.ack(b, p.claim(b, 5, policy, start), policy, start)
	want := observe(p, "b")
	if p.h.Abandons {
		abandon(want)
	}
	require.NoError(t, p.s.Close())
	p.reopen()
	same(t, want, observe(p, "b"), "reopened")
}

func closeFinishes(t *testing.T, p *probe) {
	ref, policy, s := core.Ref{Buffer: "b", Key: "k"}, calm(), p.s
	const writers = 8
	var accepted [writers][]string
	var wg sync.WaitGroup
	begun := make(chan struct{}, writers)
	for w := range writers {
		wg.Go(func() {
			signal := sync.OnceFunc(func() { begun <- struct{}{} })
			defer signal()
			for i := 0; ; i++ {
				e := event(fmt.Sprintf("%d-%d", w, i), start, 10)
				_, err := s.Append(context.Background(), start, []core.Part{{Ref: ref, Life: "l", Policy: policy, Events: []core.Event{e}}})
				if err != nil {
					if core.CodeOf(err) != core.Unavailable {
						t.Errorf("append on a store that closes: %v", err)
					}
					return
				}
				accepted[w] = append(accepted[w], e.ID)
				if i == 5 {
					signal()
				}
			}
		})
	}
	for range writers {
		<-begun
	}
	require.NoError(t, s.Close())
	wg.Wait()
	p.reopen()
	stored := map[string]int{}
	for _, item := range p.all(ref, 1, p.group(ref).Tail, 0) {
		stored[item.ID]++
	}
	for _, ids := range accepted {
		for _, id := range ids {
			require.Equal(t, 1, stored[id], "accepted event %s", id)
		}
	}
}
