package core_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

// TestDelaysUnderChange mixes what goes with a delay, and changes it while events
// are held, back and forth: each is delivered once, and none before its time.
func TestDelaysUnderChange(t *testing.T) {
	t.Parallel()
	small := func(c *core.Config) { batch(3, 200*time.Millisecond, time.Second)(c); sendAt(c) }
	all := map[string]func(*core.Config){
		"plain":    func(*core.Config) {},
		"ordered":  ordered,
		"doubles":  func(c *core.Config) { c.Buffers[0].Dedupe = time.Hour },
		"small":    func(c *core.Config) { c.Buffers[0].Size, c.Buffers[0].Overflow.MaxItems = 60, 5 },
		"shards":   func(c *core.Config) { c.Buffers[0].Shards = 4 },
		"in order": func(c *core.Config) { ordered(c); c.Buffers[0].Shards, c.Buffers[0].OrderKey = 4, "{{ .json.at }}" },
		"copied":   copied(func(b *core.Buffer) { b.DeliverAt = "" }),
		"flaky": func(c *core.Config) {
			c.Destinations[0].Breaker = &core.BreakerConfig{Failures: 2, Cooldown: time.Second}
		},
	}
	for from, a := range all {
		for to, b := range all {
			t.Run(from+", "+to, func(t *testing.T) {
				run(t, config(small, quick, a), func(r *rig) {
					var mu sync.Mutex
					n, got := 0, map[string]int{}
					r.replies(func(_ string, b *core.Batch) core.Response {
						mu.Lock()
						defer mu.Unlock()
						if n++; n%4 == 0 {
							return core.Response{Status: 503}
						}
						for i := range b.Items {
							if !b.Shadow {
								got[b.Items[i].ID]++
							}
						}
						return core.Response{Status: 200}
					})
					due := map[string]time.Duration{}
					post := func(i int) {
						at := time.Duration(i%20) * time.Second
						id := fmt.Sprint("event ", len(due))
						_, err := r.ingester.Ingest(context.Background(), "in", []core.Event{{ID: id, Body: []byte(r.due(fmt.Sprint("k", i%3), at))}})
						if err != nil {
							require.Equal(t, core.Full, core.CodeOf(err))
							return
						}
						due[id] = at
					}
					for i := range 20 {
						post(i)
					}
					for i, change := range []func(*core.Config){b, a, b} {
						r.at(time.Duration(4*i+4) * time.Second)
						r.reconfigure(config(small, quick, change))
						for j := range 5 {
							post(4*i + j)
						}
					}
					r.at(5 * time.Minute)
					for _, s := range r.sends() {
						for i := range s.Items {
							require.True(t, s.Shadow || s.at >= due[s.Items[i].ID], "never early")
						}
					}
					for id := range due {
						require.Equal(t, 1, got[id], id)
					}
					for _, ref := range r.left() {
						require.Contains(t, ref, "copy", "nothing else is left")
					}
					require.Empty(t, r.deadLetters())
				})
			})
		}
	}
}
