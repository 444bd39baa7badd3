package timertest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

var tests = []test{
	{"a hint comes at its time, as it was armed", comesOnTime},
	{"a hint of the past comes at once", comesAtOnce},
	{"an earlier hint armed later comes first", comesEarlier},
	{"hints of equal times all come", comeTogether},
	{"a hint armed twice does no harm", comesTwice},
	{"the newest check of a group comes, whatever becomes of the others", newestCheck},
	{"claims of a group come beside its check", claimsBesideCheck},
	{"10,000 hints come at their times", comeInMasses},
	{"32 goroutines arm at once", armedByMany},
	{"a fire arms the next", armsFromFire},
	{"a fire that takes long delays no other", slowFire},
	{"what is armed after a long rest comes on time", comesAfterRest},
	{"stop ends all", stops},
	{"stop waits for a fire under way", stopWaits},
}

func comesOnTime(t *testing.T, h *Harness) {
	p := start(t, h, nil)
	defer p.stop()
	armed := now()
	hints := []core.Hint{
		hint("", time.Millisecond), hint("a", 3*time.Second), hint("a/ä#🙂", 3*time.Second+time.Millisecond),
		hint("b", 10*time.Minute), hint("c", 30*time.Hour),
		{Ref: core.Ref{Buffer: "other", Key: "a"}, Life: "", At: now().Add(3 * time.Second)},
	}
	for _, x := range hints {
		p.arm(x)
	}
	synctest.Wait()
	require.Zero(t, p.all(), "nothing comes before its time")
	pass(31*time.Hour + h.Late)
	for _, x := range hints {
		p.onTime(x, armed)
	}
	require.Subset(t, hints, p.order(), "a hint that nobody armed")
}

func comesAtOnce(t *testing.T, h *Harness) {
	p := start(t, h, nil)
	defer p.stop()
	armed := now()
	hints := []core.Hint{hint("now", 0), hint("past", -time.Millisecond), hint("long past", -24*time.Hour),
		{Ref: core.Ref{Buffer: "b", Key: "1970"}, Life: "l", At: 1}}
	for _, x := range hints {
		p.arm(x)
	}
	pass(h.Late)
	for _, x := range hints {
		p.onTime(x, armed)
	}
}

func comesEarlier(t *testing.T, h *Harness) {
	p := start(t, h, nil)
	defer p.stop()
	armed := now()
	late, early, between := hint("late", time.Hour), hint("early", time.Second), hint("between", time.Minute)
	for _, x := range []core.Hint{late, early, between} {
		p.arm(x)
		synctest.Wait() // the timer waits for what it has
	}
	pass(time.Second + h.Late)
	p.onTime(early, armed)
	_, ok := p.came(late)
	require.False(t, ok, "%v came early", late)
	pass(time.Hour)
	p.onTime(between, armed)
	p.onTime(late, armed)
}

func comeTogether(t *testing.T, h *Harness) {
	p := start(t, h, nil)
	defer p.stop()
	armed := now()
	var hints []core.Hint
	for i := range 100 {
		hints = append(hints, hint(fmt.Sprint(i), 5*time.Second))
		p.arm(hints[i])
	}
	pass(5*time.Second + h.Late)
	for _, x := range hints {
		p.onTime(x, armed)
	}
}

func comesTwice(t *testing.T, h *Harness) {
	p := start(t, h, nil)
	defer p.stop()
	armed := now()
	x := hint("k", time.Second)
	later := x
	later.At = x.At.Add(time.Second) // the same group, on another deadline
	p.arm(x)
	p.arm(x)
	p.arm(later)
	pass(2*time.Second + h.Late)
	p.onTime(x, armed)
	p.onTime(later, armed)
}

func newestCheck(t *testing.T, h *Harness) {
	p := start(t, h, nil)
	defer p.stop()
	armed := now()
	var newest []core.Hint
	for i, order := range [][]uint64{{1, 2, 3}, {3, 2, 1}, {2, 3, 1}, {1, 3, 2}} {
		for j, check := range order {
			x := hint(fmt.Sprint(i), time.Duration(1+(i+2*j)%3)*time.Second)
			x.Check = check
			p.arm(x)
			if check == 3 {
				newest = append(newest, x)
			}
		}
	}
	pass(3*time.Second + h.Late)
	for _, x := range newest {
		p.onTime(x, armed)
	}
}

func claimsBesideCheck(t *testing.T, h *Harness) {
	p := start(t, h, nil)
	defer p.stop()
	armed := now()
	check := hint("k", 2*time.Second)
	check.Check = 7
	hints := []core.Hint{hint("k", time.Second), check, hint("k", 2*time.Second), hint("k", 3*time.Second)}
	for _, x := range hints {
		p.arm(x)
	}
	pass(3*time.Second + h.Late)
	for _, x := range hints {
		p.onTime(x, armed)
	}
}

func comeInMasses(t *testing.T, h *Harness) {
	const n = 10_000
	p := start(t, h, nil)
	defer p.stop()
	rnd := rand.New(rand.NewPCG(1, 2))
	armed := now()
	hints := make([]core.Hint, n)
	for i, at := range rnd.Perm(n) {
		hints[i] = hint(fmt.Sprint(i), time.Duration(at+1)*time.Millisecond)
		p.arm(hints[i])
	}
	pass(n*time.Millisecond + h.Late)
	for _, x := range hints {
		p.onTime(x, armed)
	}
}

func armedByMany(t *testing.T, h *Harness) {
	p := start(t, h, nil)
	defer p.stop()
	armed := now()
	var wg sync.WaitGroup
	for g := range 32 {
		wg.Go(func() {
			for i := range 50 {
				x := hint(fmt.Sprintf("%d-%d", g, i), time.Duration((i*37+g)%100)*time.Millisecond)
				if err := p.timer.Arm(context.Background(), x); err != nil {
					t.Errorf("arm: %v", err)
				}
			}
		})
	}
	wg.Wait()
	pass(100*time.Millisecond + h.Late)
	for g := range 32 {
		for i := range 50 {
			in := time.Duration((i*37+g)%100) * time.Millisecond
			key := fmt.Sprintf("%d-%d", g, i)
			p.onTime(core.Hint{Ref: core.Ref{Buffer: "orders", Key: key}, Life: "life-of-" + key, At: armed.Add(in)}, armed)
		}
	}
}

func armsFromFire(t *testing.T, h *Harness) {
	const links = 50
	p := start(t, h, func(p *probe, ctx context.Context, x core.Hint) {
		var n int
		if _, err := fmt.Sscan(x.Ref.Key, &n); err != nil || n == links {
			return
		}
		if err := p.timer.Arm(ctx, hint(fmt.Sprint(n+1), time.Second)); err != nil {
			p.t.Errorf("arm from fire: %v", err)
		}
	})
	defer p.stop()
	p.arm(hint("1", time.Second))
	pass(links * (time.Second + h.Late))
	require.GreaterOrEqual(t, p.all(), links, "links of the chain")
	order := p.order()
	require.Equal(t, fmt.Sprint(links), order[len(order)-1].Ref.Key)
}

func slowFire(t *testing.T, h *Harness) {
	gate := make(chan struct{})
	p := start(t, h, func(_ *probe, _ context.Context, x core.Hint) {
		if x.Ref.Key == "slow" {
			<-gate
		}
	})
	defer p.stop()
	defer close(gate)
	armed := now()
	slow, next := hint("slow", time.Second), hint("next", 2*time.Second)
	p.arm(slow)
	p.arm(next)
	pass(2*time.Second + h.Late)
	p.onTime(slow, armed)
	p.onTime(next, armed)
}

func comesAfterRest(t *testing.T, h *Harness) {
	p := start(t, h, nil)
	defer p.stop()
	for range 3 {
		pass(100 * time.Hour)
		armed := now()
		x := hint("k", 100*time.Millisecond)
		p.arm(x)
		pass(100*time.Millisecond + h.Late)
		p.onTime(x, armed)
	}
}

func stops(t *testing.T, h *Harness) {
	p := start(t, h, nil)
	early, late := hint("early", time.Second), hint("late", time.Hour)
	p.arm(late)
	p.arm(early)
	pass(time.Second + h.Late)
	p.stop()
	before := p.all()
	_ = p.timer.Arm(context.Background(), hint("after", 0)) // may fail, and must not fire
	pass(2 * time.Hour)
	require.Equal(t, before, p.all(), "a stopped timer fires nothing")
	_, ok := p.came(late)
	require.False(t, ok, "%v came early", late)
}

func stopWaits(t *testing.T, h *Harness) {
	gate := make(chan struct{})
	p := start(t, h, func(*probe, context.Context, core.Hint) { <-gate })
	p.arm(hint("k", 0))
	pass(h.Late)
	require.NotZero(t, p.all())
	stopped := make(chan struct{})
	go func() {
		p.stop()
		close(stopped)
	}()
	synctest.Wait()
	select {
	case <-stopped:
		require.Fail(t, "stop returned while a fire was running")
	default:
	}
	close(gate)
	<-stopped
}
