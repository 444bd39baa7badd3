package core_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

// Where neither the destination nor the dead-letter queue takes a batch, it is
// tried again in its place, and those behind it wait, over a crash, too.
func TestOrderWhileDeadLettersAreDown(t *testing.T) {
	c := config(at1, ordered, attempts(2, time.Second, time.Second))
	run(t, c, func(r *rig) {
		r.failPut = func() error { return core.Errorf(core.Unavailable, "down") }
		r.replies(func(_ string, b *core.Batch) core.Response {
			if b.Group == "k" {
				return core.Response{Status: 500}
			}
			return core.Response{Status: 200}
		})
		sent := numbered("k", 0, 4)
		r.post(sent...)
		r.at(10 * time.Second)
		r.put("other")
		r.at(20 * time.Second)
		r.crash(c)
		r.at(time.Minute)
		var taken []string
		r.replies(func(_ string, b *core.Batch) core.Response {
			taken = append(taken, bodies(b.Items)...) // one at a time, or the race detector tells
			return core.Response{Status: 200}
		})
		r.at(time.Hour)
		require.Equal(t, sent, taken)
		require.Empty(t, r.left())
		for _, s := range r.sends() {
			if s.Group == "other" {
				require.Equal(t, 10*time.Second, s.at)
			}
			if s.at < time.Minute && s.Group == "k" {
				require.Equal(t, sent[:1], bodies(s.Items), "nothing overtakes it")
			}
		}
	})
}

func TestHeldEventsKeepToARateLimit(t *testing.T) {
	run(t, config(at1, sendAt, limited(1, time.Minute)), func(r *rig) {
		r.post(r.due("a", 10*time.Second), r.due("b", 10*time.Second), r.due("c", 10*time.Second))
		r.at(time.Hour)
		var at []time.Duration
		for _, s := range r.sends() {
			at = append(at, s.at)
		}
		require.Equal(t, []time.Duration{10 * time.Second, 70 * time.Second, 130 * time.Second}, at)
	})
}

func TestAReplayToAShadowsDestinationIsNoCopy(t *testing.T) {
	run(t, config(at1, copied()), func(r *rig) {
		r.answers(map[string]int{"out": 400})
		r.put("a")
		r.at(time.Second)
		report, err := r.replayer.Replay(context.Background(), core.ReplayRequest{To: "copies"})
		require.NoError(t, err)
		require.Equal(t, 1, report.Replayed)
		sent := r.sends()
		last := sent[len(sent)-1]
		require.Equal(t, "copies", last.destination)
		require.Equal(t, core.ReasonReplay, last.Reason)
		require.False(t, last.Shadow)
	})
}

func TestOrderOfAWholeSource(t *testing.T) {
	run(t, config(at1, ordered, buf(func(b *core.Buffer) { b.GroupBy = "all" })), func(r *rig) {
		r.replies(attempt(2, 200, 500))
		var sent, got []string
		for i := range 20 {
			sent = append(sent, numbered(fmt.Sprint("k", i%5), i, 1)...)
		}
		r.post(sent...)
		r.at(time.Hour)
		for _, s := range r.sends() {
			if s.Attempt == 2 {
				got = append(got, bodies(s.Items)...)
			}
		}
		require.Equal(t, sent, got)
	})
}
