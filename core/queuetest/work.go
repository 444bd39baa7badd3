package queuetest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

var workTests = []test{
	{"every delivery is worked on, as it was handed", worksAll},
	{"handed by many at once", handedByMany},
	{"at most the limit at a time for a destination", keepsLimit},
	{"as many as the limit when there is enough to do", usesLimit},
	{"a limit that changes counts from then on", followsLimit},
	{"a slow destination delays no other", slowDestination},
	{"buffers of one destination take turns", takesTurns},
	{"three buffers take turns", takesTurnsOfThree},
	{"a delivery handed while it waits is worked on after that", mergesWaiting},
	{"a delivery handed while it is worked on is worked on again", worksAgain},
	{"equal keys of different buffers are different", keepsApart},
	{"work hands over", handsFromWork},
}

func worksAll(t *testing.T, h *Harness) {
	p := start(t, h, 3, nil)
	defer p.close()
	want := append(deliveries("a", 300, "x"), deliveries("b", 300, "y")...)
	want = append(want, core.Delivery{}, core.Delivery{Ref: core.Ref{Buffer: "c", Key: "a/b#🙂"}, Destination: "x"})
	for _, d := range want {
		p.hand(d)
	}
	p.done(want)
	require.Subset(t, want, p.order(), "a delivery that nobody handed")
}

func handedByMany(t *testing.T, h *Harness) {
	p := start(t, h, 4, nil)
	defer p.close()
	var want []core.Delivery
	var wg sync.WaitGroup
	for g := range 32 {
		mine := deliveries(fmt.Sprint("buffer", g), 30, fmt.Sprint("destination", g%3))
		want = append(want, mine...)
		wg.Go(func() {
			for _, d := range mine {
				if err := p.queue.Hand(context.Background(), d); err != nil {
					t.Errorf("hand: %v", err)
				}
			}
		})
	}
	wg.Wait()
	p.done(want)
}

// gated is work that passes a gate.
func gated(gate chan struct{}) func(*probe, context.Context, core.Delivery) {
	return func(*probe, context.Context, core.Delivery) { <-gate }
}

// let lets n more deliveries pass, one after the other.
func let(gate chan struct{}, n int) {
	for range n {
		gate <- struct{}{}
		synctest.Wait()
	}
}

func keepsLimit(t *testing.T, h *Harness) {
	for _, limit := range []int{1, 2, 7} {
		gate := make(chan struct{})
		p := start(t, h, limit, gated(gate))
		want := append(deliveries("a", 20, "x"), deliveries("b", 20, "x")...)
		want = append(want, deliveries("c", 20, "y")...)
		for _, d := range want {
			p.hand(d)
		}
		let(gate, len(want)/2)
		for _, destination := range []string{"x", "y"} {
			require.LessOrEqual(t, p.most[destination], limit, "at work for %s", destination)
		}
		close(gate)
		p.done(want)
		require.LessOrEqual(t, p.most["x"], limit)
		p.close()
	}
}

func usesLimit(t *testing.T, h *Harness) {
	gate := make(chan struct{})
	p := start(t, h, 5, gated(gate))
	defer p.close()
	defer close(gate)
	for _, d := range append(deliveries("a", 20, "x"), deliveries("b", 20, "y")...) {
		p.hand(d)
	}
	for range 10 {
		synctest.Wait()
		require.Equal(t, map[string]int{"x": 5, "y": 5}, p.atWork)
		let(gate, 1)
	}
}

func followsLimit(t *testing.T, h *Harness) {
	var mu sync.Mutex
	limit := 4
	set := func(n int) {
		mu.Lock()
		defer mu.Unlock()
		limit = n
	}
	gate := make(chan struct{})
	p := &probe{t: t, atWork: map[string]int{}, most: map[string]int{}}
	p.queue, p.stop = h.Start(t, func(string) int {
		mu.Lock()
		defer mu.Unlock()
		return limit
	}, func(_ context.Context, d core.Delivery) {
		p.begin(d)
		defer p.end(d)
		<-gate
	})
	defer p.close()
	want := deliveries("a", 40, "x")
	for _, d := range want[:20] {
		p.hand(d)
	}
	synctest.Wait()
	require.Equal(t, 4, p.atWork["x"])
	set(1)
	let(gate, 6)
	require.Equal(t, 1, p.atWork["x"], "after a lower limit, once what was under way has ended")
	set(3)
	for _, d := range want[20:] {
		p.hand(d)
	}
	synctest.Wait()
	require.Equal(t, 3, p.atWork["x"], "after a higher one, when more has been handed")
	close(gate)
	p.done(want)
}

func slowDestination(t *testing.T, h *Harness) {
	gate := make(chan struct{})
	p := start(t, h, 2, func(_ *probe, _ context.Context, d core.Delivery) {
		if d.Destination == "slow" {
			<-gate
		}
	})
	defer p.close()
	slow := deliveries("a", 100, "slow")
	for _, d := range slow {
		p.hand(d)
	}
	quick := append(deliveries("a-quick", 100, "quick"), deliveries("b", 1, "another")...)
	for _, d := range quick {
		p.hand(d)
	}
	p.done(quick)
	require.Len(t, p.order(), len(quick)+2, "two of the slow one's have begun")
	close(gate)
	p.done(slow)
}

// fewAhead is how many deliveries of a busy buffer may go ahead of the first
// one of another, when one is at work.
const fewAhead = 3

func takesTurns(t *testing.T, h *Harness) {
	gate := make(chan struct{})
	p := start(t, h, 1, gated(gate))
	defer p.close()
	busy := deliveries("busy", 1000, "x")
	for _, d := range busy {
		p.hand(d)
	}
	let(gate, 10)
	lone := delivery("quiet", 0, "x")
	before := len(p.order())
	p.hand(lone)
	for range fewAhead {
		let(gate, 1)
	}
	require.Contains(t, p.order()[before:], lone, "held back by the %d that others wait with", len(busy))
	close(gate)
	p.done(busy)
}

func takesTurnsOfThree(t *testing.T, h *Harness) {
	gate := make(chan struct{})
	p := start(t, h, 1, gated(gate))
	defer p.close()
	var all []core.Delivery
	for i, buffer := range []string{"a", "b", "c"} {
		mine := deliveries(buffer, []int{300, 100, 30}[i], "x")
		for _, d := range mine {
			p.hand(d)
		}
		all = append(all, mine...)
	}
	let(gate, 90)
	begun := map[string]int{}
	for _, d := range p.order() {
		begun[d.Ref.Buffer]++
	}
	for buffer, n := range begun {
		require.InDelta(t, 30, n, fewAhead, "turns of %s among 90: %v", buffer, begun)
	}
	close(gate)
	p.done(all)
}

func mergesWaiting(t *testing.T, h *Harness) {
	gate := make(chan struct{})
	p := start(t, h, 1, gated(gate))
	defer p.close()
	first, again := delivery("a", 0, "x"), delivery("a", 1, "x")
	p.hand(first)
	synctest.Wait()
	for range 100 {
		p.hand(again)
	}
	close(gate)
	p.done([]core.Delivery{first, again})
	require.LessOrEqual(t, p.times(again), 100, "no more often than it was handed")
	p.hand(again)
	synctest.Wait()
	before := p.times(again)
	p.hand(again)
	synctest.Wait()
	require.Greater(t, p.times(again), before, "a delivery that does not wait any more is a new one")
}

func worksAgain(t *testing.T, h *Harness) {
	gate := make(chan struct{})
	p := start(t, h, 3, gated(gate))
	defer p.close()
	d := delivery("a", 0, "x")
	p.hand(d)
	synctest.Wait()
	require.Equal(t, 1, p.times(d))
	p.hand(d) // what it is about may have come after the work looked
	close(gate)
	p.done([]core.Delivery{d})
	require.GreaterOrEqual(t, p.times(d), 2)
}

func keepsApart(t *testing.T, h *Harness) {
	gate := make(chan struct{})
	p := start(t, h, 1, gated(gate))
	defer p.close()
	want := []core.Delivery{
		delivery("a", 1, "x"), delivery("b", 1, "x"), delivery("a", 1, "y"), delivery("a", 11, "x"),
		{Ref: core.Ref{Buffer: "a", Key: ""}, Destination: "x"}, {Ref: core.Ref{Buffer: "a", Key: "b/c"}, Destination: "x"},
		{Ref: core.Ref{Buffer: "a", Key: "b"}, Destination: "x"},
	}
	for _, d := range want {
		p.hand(d)
	}
	close(gate)
	p.done(want)
}

func handsFromWork(t *testing.T, h *Harness) {
	const links = 50
	p := start(t, h, 1, func(p *probe, ctx context.Context, d core.Delivery) {
		var n int
		if _, err := fmt.Sscanf(d.Ref.Key, "%d", &n); err != nil || n == links {
			return
		}
		next := delivery("chain", n+1, "x")
		if err := p.queue.Hand(ctx, next); err != nil {
			p.t.Errorf("hand from work: %v", err)
		}
	})
	defer p.close()
	p.hand(delivery("chain", 0, "x"))
	p.done(deliveries("chain", links+1, "x"))
}
