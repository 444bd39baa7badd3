package core_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

// troubles are what may go wrong with a buffer, each with what makes it so.
var troubles = []struct {
	name  string
	takes time.Duration // of a send, which fails then
	make  func(*core.Destination, *core.Buffer)
}{
	{"dead", 0, func(*core.Destination, *core.Buffer) {}},
	{"hung", 15 * time.Second, func(*core.Destination, *core.Buffer) {}},
	{"broken", 10 * time.Millisecond, func(d *core.Destination, _ *core.Buffer) {
		d.Breaker = &core.BreakerConfig{Failures: 3, Cooldown: 5 * time.Second}
	}},
	{"limited", 0, func(d *core.Destination, _ *core.Buffer) {
		d.RateLimit = &core.RateConfig{Requests: 1, Per: time.Minute}
	}},
	{"full", 15 * time.Second, func(_ *core.Destination, b *core.Buffer) { b.Size = 20 }},
	{"ordered", 15 * time.Second, func(_ *core.Destination, b *core.Buffer) { b.Ordered = true }},
	{"shadow", 15 * time.Second, func(_ *core.Destination, b *core.Buffer) {
		b.From, b.Shadow, b.Sample, b.Size = []string{"in"}, true, 1, core.ShadowSize
	}},
}

// in is an event of a source.
func (r *rig) in(source, key string) error {
	_, err := r.ingester.Ingest(context.Background(), source, []core.Event{{Body: fmt.Appendf(nil, `{"k":%q}`, key)}})
	return err
}

// Whatever is wrong with the others, a buffer's batches leave at their deadlines.
func TestTroubleDelaysNoOtherBuffer(t *testing.T) {
	t.Parallel()
	all := make([]string, 0, len(troubles))
	for _, trouble := range troubles {
		all = append(all, trouble.name)
		t.Run(trouble.name, func(t *testing.T) { besideTrouble(t, trouble.name) })
	}
	t.Run("all at once", func(t *testing.T) { besideTrouble(t, all...) })
}

func besideTrouble(t *testing.T, names ...string) {
	const groups, healthy = 300, 300
	const every, idle = 100 * time.Millisecond, time.Second
	c := config(batch(50, idle, 15*time.Second))
	takes := map[string]time.Duration{}
	for _, trouble := range troubles {
		if name := trouble.name; slices.Contains(names, name) {
			takes[name] = trouble.takes
			with(name)(c)
			beside(name, func(b *core.Buffer) { b.From, b.To, b.Batch.MaxItems = []string{name}, name, 1 })(c)
			trouble.make(&c.Destinations[len(c.Destinations)-1], &c.Buffers[len(c.Buffers)-1])
			c.Sources = append(c.Sources, core.Source{Name: name, Type: core.TypeHTTP, MaxEventBytes: core.MiB})
		}
	}
	run(t, c, func(r *rig) {
		r.replies(func(to string, _ *core.Batch) core.Response {
			long, trouble := takes[to]
			if !trouble {
				return core.Response{Status: 200}
			}
			<-time.After(long)
			return core.Response{Status: 500}
		})
		refused := 0
		for i := range healthy {
			r.at(time.Duration(i) * every)
			for _, name := range names {
				switch err := r.in(name, fmt.Sprint(i%groups)); {
				case name == "shadow":
				case core.CodeOf(err) == core.Full:
					refused++
				default:
					require.NoError(t, err)
				}
			}
			require.NoError(t, r.in("in", fmt.Sprint(i)))
		}
		r.at(healthy*every + 2*idle)
		left, tried := 0, map[string]int{}
		for _, s := range r.sends() {
			if tried[s.destination]++; s.destination != "out" {
				continue
			}
			var i int
			_, err := fmt.Sscan(s.Group, &i)
			require.NoError(t, err)
			require.Equal(t, time.Duration(i)*every+idle, s.at, "as if the others did not exist")
			left++
		}
		require.Equal(t, healthy, left)
		for _, name := range names {
			require.NotZero(t, tried[name])
		}
		require.Equal(t, slices.Contains(names, "full"), refused > 0)
		require.Equal(t, slices.Contains(names, "shadow"), r.told.of("shadow dropped") > 0)
		require.Equal(t, slices.Contains(names, "broken"), r.told.of("breaker true") > 0)
	})
}
