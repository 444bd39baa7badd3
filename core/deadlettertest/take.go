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
	require.Equal(t, []string{"b/1", "b/2"}, ids(p.take(everything, 2)))
	first := p.until
	require.Equal(t, []string{"a/3"}, ids(p.take(core.DeadLetterFilter{Buffer: "a"}, 1)))
	require.Equal(t, []string{"a/4", "b/5", "a/6"}, ids(p.take(everything, 3)))
	require.Equal(t, []string{"b/7"}, ids(p.take(everything, 100)))
	p.held(first, "all are taken")
}

func takeExpires(t *testing.T, p *probe) {
	p.put(letters("a", 1, 3)...)
	require.Equal(t, []string{"a/1", "a/2"}, ids(p.take(everything, 2)))
	first := p.until
	p.reach(p.clock.Now() + 1)
	require.Equal(t, []string{"a/3"}, ids(p.take(everything, 10)), "the one that is free")
	second := p.until
	p.held(first, "just before the first leases end")
	p.reach(first)
	p.takes([]string{"a/1", "a/2"}, everything, 2, "when they do")
	first = p.until
	p.held(second, "just before the other ends")
	p.reach(second)
	p.takes([]string{"a/3"}, everything, 10, "when it does")
	p.held(first, "just before the first ones end again")
}

func takeSettles(t *testing.T, p *probe) {
	p.put(letters("a", 1, 6)...)
	taken := p.take(everything, 4)
	p.settle(taken[:1], taken[2:3])
	require.Equal(t, []string{"a/3", "a/5", "a/6"}, ids(p.take(everything, 10)), "the freed one keeps its place")
	p.reach(p.until)
	again := p.takes([]string{"a/2", "a/3", "a/4", "a/5", "a/6"}, everything, 10, "what is not done")
	p.settle(again, nil)
	p.holds(everything, []string{}, "all done")
	p.reach(p.until)
	require.Empty(t, p.take(everything, 10))
	p.settle(again, nil) // a settling whose answer was lost
}

func takeLate(_ *testing.T, p *probe) {
	p.put(letters("a", 1, 2)...)
	late := p.take(everything, 10)
	p.reach(p.until)
	p.takes([]string{"a/1", "a/2"}, everything, 10, "after the lease")
	p.settle(nil, late)
	p.held(p.until, "given back by another")
}

func takeCrash(t *testing.T, p *probe) {
	p.put(letters("a", 1, 8)...)
	taken := p.take(everything, 6)
	p.settle(taken[:2], taken[2:4])
	p.reopen()
	p.reach(p.until)
	again := p.takes([]string{"a/3", "a/4", "a/5", "a/6", "a/7", "a/8"}, everything, 100, "what is not done")
	p.settle(again[:5], again[5:])
	p.reopen()
	p.holds(everything, []string{"a/8"}, "settled and crashed")
	p.put(letter("a", 9))
	p.reopen()
	same(t, letters("a", 8, 9), p.takes([]string{"a/8", "a/9"}, everything, 100, "the rest"), "the rest, and one put after a crash")
}

var raceTests = []test{
	{"racing takers share letters out, each to one", raceTakers},
	{"racing sinks put each letter, and a list shows it once", racePutters},
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
				now := p.clock.Now()
				taken, err := p.l.Take(context.Background(), everything, 1+r%3, now, now+p.clock.Lease)
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
	p.soon(func() bool { // a racer may have left too soon what its service hid from all
		if len(all) < letterCount {
			taken := p.take(everything, letterCount)
			all = append(all, ids(taken)...)
			p.settle(taken, nil)
		}
		return len(all) >= letterCount
	})
	require.ElementsMatch(t, ids(letters("a", 1, letterCount)), all)
	p.holds(everything, []string{}, "all done")
}

func racePutters(t *testing.T, p *probe) {
	count := letterCount
	if p.h.Doubles {
		count /= 5 // each racer adds its own
	}
	var wg sync.WaitGroup
	for range racers {
		wg.Go(func() {
			for n := 1; n <= count; n += 10 {
				batch := append(letters("shared", n, n+9), letter(fmt.Sprint("own", n), n))
				if err := p.l.Put(context.Background(), batch); err != nil {
					t.Errorf("put: %v", err)
				}
			}
		})
	}
	wg.Wait()
	var stored []string
	p.soon(func() bool {
		stored = ids(p.list(core.DeadLetterFilter{Buffer: "shared"}, 17))
		return len(stored) == count
	})
	require.ElementsMatch(t, ids(letters("shared", 1, count)), stored)
	n, err := p.l.Count(context.Background(), everything)
	require.NoError(t, err)
	put := count + count/10
	require.GreaterOrEqual(t, n, put)
	require.LessOrEqual(t, n, map[bool]int{false: put, true: racers * put}[p.h.Doubles], "counted")
	p.reopen()
	require.True(t, slices.Equal(stored, ids(p.list(core.DeadLetterFilter{Buffer: "shared"}, 100))), "the same order after a crash")
}
