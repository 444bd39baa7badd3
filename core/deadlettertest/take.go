package deadlettertest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

var takeTests = []test{
	{"take leases the oldest, each to one taker", takeOldest},
	{"a lease ends at its time", takeExpires},
	{"settle removes what is done and frees the rest", takeSettles},
	{"what one gives back late does not end another's lease", takeLate},
	{"a crash brings back nothing that is done, and loses nothing that is not", takeCrash},
}

func takeOldest(t *testing.T, p *probe) {
	mixed(p)
	require.Equal(t, []string{"b/1", "b/2"}, ids(p.take(everything, 2, start)))
	require.Equal(t, []string{"a/3"}, ids(p.take(core.DeadLetterFilter{Buffer: "a"}, 1, start)))
	require.Equal(t, []string{"a/4", "b/5", "a/6"}, ids(p.take(everything, 3, start)))
	require.Equal(t, []string{"b/7"}, ids(p.take(everything, 100, start)))
	require.Empty(t, p.take(everything, 100, start+lease-1))
}

func takeExpires(t *testing.T, p *probe) {
	p.put(letters("a", 1, 3)...)
	require.Equal(t, []string{"a/1", "a/2"}, ids(p.take(everything, 2, start)))
	require.Equal(t, []string{"a/3"}, ids(p.take(everything, 10, start+1)), "the one that is free")
	require.Empty(t, p.take(everything, 10, start+lease-1), "just before the first leases end")
	require.Equal(t, []string{"a/1", "a/2"}, ids(p.take(everything, 10, start+lease)), "when they do")
	require.Equal(t, []string{"a/3"}, ids(p.take(everything, 10, start+lease+1)))
	require.Empty(t, p.take(everything, 10, start+2*lease-1))
}

func takeSettles(t *testing.T, p *probe) {
	p.put(letters("a", 1, 6)...)
	taken := p.take(everything, 4, start)
	p.settle(taken[:1], taken[2:3])
	require.Equal(t, []string{"a/3", "a/5", "a/6"}, ids(p.take(everything, 10, start)), "the freed one keeps its place")
	again := p.take(everything, 10, start+lease)
	require.Equal(t, []string{"a/2", "a/3", "a/4", "a/5", "a/6"}, ids(again))
	p.settle(again, nil)
	p.holds(everything, []string{}, "all done")
	require.Empty(t, p.take(everything, 10, start+100*lease))
	p.settle(again, nil) // a settling whose answer was lost
}

func takeLate(t *testing.T, p *probe) {
	p.put(letters("a", 1, 2)...)
	late := p.take(everything, 10, start)
	require.Len(t, p.take(everything, 10, start+lease), 2)
	p.settle(nil, late)
	require.Empty(t, p.take(everything, 10, start+lease+1))
}

func takeCrash(t *testing.T, p *probe) {
	p.put(letters("a", 1, 8)...)
	taken := p.take(everything, 6, start)
	p.settle(taken[:2], taken[2:4])
	p.reopen()
	again := p.take(everything, 100, start+lease)
	require.Equal(t, []string{"a/3", "a/4", "a/5", "a/6", "a/7", "a/8"}, ids(again))
	p.settle(again[:5], again[5:])
	p.reopen()
	p.holds(everything, []string{"a/8"}, "settled and crashed")
	p.put(letter("a", 9))
	p.reopen()
	same(t, letters("a", 8, 9), p.take(everything, 100, start+2*lease), "the rest, and one put after a crash")
}

var raceTests = []test{
	{"racing takers share letters out, each to one", raceTakers},
	{"racing sinks put each letter once", racePutters},
}

const racers, letterCount = 8, 200

func raceTakers(t *testing.T, p *probe) {
	p.put(letters("a", 1, letterCount)...)
	var mu sync.Mutex
	var all []string
	var wg sync.WaitGroup
	for r := range racers {
		wg.Go(func() {
			for {
				taken, err := p.l.Take(context.Background(), everything, 1+r%3, start, start+lease)
				if err != nil {
					t.Errorf("take: %v", err)
					return
				}
				if len(taken) == 0 {
					return
				}
				mu.Lock()
				all = append(all, ids(taken)...)
				mu.Unlock()
				if err := p.l.Settle(context.Background(), taken, nil); err != nil {
					t.Errorf("settle: %v", err)
					return
				}
			}
		})
	}
	wg.Wait()
	require.ElementsMatch(t, ids(letters("a", 1, letterCount)), all)
	p.holds(everything, []string{}, "all done")
}

func racePutters(t *testing.T, p *probe) {
	var wg sync.WaitGroup
	for range racers {
		wg.Go(func() {
			for n := 1; n <= letterCount; n += 10 {
				batch := append(letters("shared", n, n+9), letter(fmt.Sprint("own", n), n))
				if err := p.l.Put(context.Background(), batch); err != nil {
					t.Errorf("put: %v", err)
				}
			}
		})
	}
	wg.Wait()
	stored := ids(p.list(core.DeadLetterFilter{Buffer: "shared"}, 17))
	require.ElementsMatch(t, ids(letters("shared", 1, letterCount)), stored)
	n, err := p.l.Count(context.Background(), everything)
	require.NoError(t, err)
	require.Equal(t, letterCount+letterCount/10, n)
	p.reopen()
	require.True(t, slices.Equal(stored, ids(p.list(core.DeadLetterFilter{Buffer: "shared"}, 100))), "the same order after a crash")
}
