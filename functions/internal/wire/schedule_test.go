package wire

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

// planned is a schedule under test, and when it had which buffer flushed.
type planned struct {
	schedule

	t     *testing.T
	ctx   context.Context
	begin time.Time

	mu    sync.Mutex
	calls []string
	early map[string]time.Duration // how long the next flush is too early
	takes map[string]time.Duration // how long a flush takes
}

// plan runs a test of a schedule in a bubble, and ends the schedule.
func plan(t *testing.T, test func(p *planned)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		p := &planned{t: t, ctx: ctx, begin: time.Now(), early: map[string]time.Duration{}, takes: map[string]time.Duration{}}
		p.flush = p.call
		test(p)
		cancel()
		p.going.Wait()
	})
}

func (p *planned) call(ctx context.Context, buffer string) time.Duration {
	p.mu.Lock()
	p.calls = append(p.calls, fmt.Sprintf("%s@%s", buffer, time.Since(p.begin)))
	early, takes := p.early[buffer], p.takes[buffer]
	delete(p.early, buffer)
	p.mu.Unlock()
	if takes > 0 {
		select {
		case <-time.After(takes):
		case <-ctx.Done():
		}
	}
	return early
}

// wants sets which buffers are flushed, and how often: "a 5s, b 1m".
func (p *planned) wants(text string) {
	p.t.Helper()
	var all []core.Schedule
	for part := range strings.SplitSeq(text, ", ") {
		if name, every, ok := strings.Cut(part, " "); ok {
			d, err := time.ParseDuration(every)
			require.NoError(p.t, err)
			all = append(all, core.Schedule{Buffer: name, Every: d})
		}
	}
	p.set(p.ctx, all)
}

// got checks what was flushed since the last time, once so much time has passed.
func (p *planned) got(after time.Duration, want ...string) {
	p.t.Helper()
	sleep(after)
	p.mu.Lock()
	defer p.mu.Unlock()
	require.ElementsMatch(p.t, want, p.calls)
	p.calls = nil
}

func TestScheduleFlushesAtOnceAndThenEverySoOften(t *testing.T) {
	plan(t, func(p *planned) {
		p.wants("a 5s, b 4s")
		p.got(14*time.Second, "a@0s", "b@0s", "b@4s", "a@5s", "b@8s", "a@10s", "b@12s")
	})
}

// Time counts from when the last flush began, however long it took, and a slow
// one delays no other.
func TestScheduleOfASlowBuffer(t *testing.T) {
	plan(t, func(p *planned) {
		p.takes["a"], p.takes["c"] = 2*time.Second, 7*time.Second
		p.wants("a 5s, b 4s, c 5s")
		p.got(15*time.Second, "a@0s", "b@0s", "c@0s", "b@4s", "a@5s", "c@7s", "b@8s", "a@10s", "b@12s", "c@14s", "a@15s")
	})
}

// A flush that was too early is made when it is not.
func TestScheduleOfAnEarlyFlush(t *testing.T) {
	plan(t, func(p *planned) {
		p.early["a"] = 2 * time.Second
		p.wants("a 5s")
		p.got(8*time.Second, "a@0s", "a@2s", "a@7s")
	})
}

func TestScheduleChanges(t *testing.T) {
	plan(t, func(p *planned) {
		p.wants("a 10s, b 10s")
		p.got(3*time.Second, "a@0s", "b@0s")
		p.wants("a 10s, c 10s")
		p.got(8*time.Second, "c@3s", "a@10s")
		p.wants("a 2s, c 1m")
		p.got(4*time.Second, "a@12s", "a@14s")
		p.wants("a 2s, c 3s")
		p.wants("a 2s, c 6s") // before the first change was seen
		p.got(3*time.Second, "c@15s", "a@16s", "a@18s")
		p.wants("")
		p.got(time.Hour)
		p.wants("a 1h")
		p.got(time.Minute, "a@1h0m18s")
	})
}

// A new interval counts though the last flush was too early by the old one.
func TestScheduleChangesWhileItWaits(t *testing.T) {
	plan(t, func(p *planned) {
		p.early["a"] = time.Hour
		p.wants("a 1h")
		p.got(time.Second, "a@0s")
		p.wants("a 5s")
		p.got(5*time.Second, "a@5s")
	})
}

// A flush of a buffer that is gone begins no more; nor does any once the
// process stops.
func TestScheduleEndsAFlush(t *testing.T) {
	plan(t, func(p *planned) {
		p.takes["a"] = time.Hour
		p.wants("a 1m, b 1m")
		p.got(time.Second, "a@0s", "b@0s")
		gone := p.rounds["a"]
		p.wants("b 1m")
		require.NotNil(t, gone)
		p.got(time.Hour, sixty("b")...)
	})
}

func sixty(buffer string) (calls []string) {
	for i := range 60 {
		calls = append(calls, fmt.Sprintf("%s@%s", buffer, time.Duration(i+1)*time.Minute))
	}
	return calls
}
