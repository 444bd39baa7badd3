package core_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

const s = time.Second

func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }

// Items at some times, and what then leaves when.
func TestTimelines(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		batch func(*core.Config)
		items []time.Duration
		until time.Duration
		want  string
	}{
		{"the documented timeline", batch(50, 3*s, 10*s), []time.Duration{0, 1 * s, 3 * s, 5 * s, 7 * s, 9 * s}, 60 * s,
			"10.000 k 6 wait #1"},
		{"a trickle, and one just before the deadline", batch(100, 3*s, 10*s), []time.Duration{0, ms(2900), ms(5800), ms(8700), ms(9950)}, 60 * s,
			"10.000 k 5 wait #1"},
		{"one item after an hour of nothing", batch(50, 3*s, 10*s), []time.Duration{time.Hour}, 2 * time.Hour,
			"3603.000 k 1 idle #1"},
		{"one item and nothing ever again", batch(50, 5*s, 15*s), []time.Duration{0}, 24 * time.Hour,
			"5.000 k 1 idle #1"},
		{"idle to the millisecond", batch(50, ms(100), 10*s), []time.Duration{ms(7), ms(106)}, 10 * s,
			"0.206 k 2 idle #1"},
		{"idle from the last item", batch(50, ms(100), 10*s), []time.Duration{ms(7), ms(107)}, 10 * s,
			"0.107 k 1 idle #1\n0.207 k 1 idle #1"},
		{"full at once", batch(3, 5*s, 15*s), []time.Duration{0, 1 * s, 2 * s, 3 * s}, 60 * s,
			"2.000 k 3 items #1\n8.000 k 1 idle #1"},
		{"wait shorter than idle", batch(50, 10*s, 2*s), []time.Duration{0, 1 * s}, 60 * s,
			"2.000 k 2 wait #1"},
		{"two in the same millisecond", batch(50, 1*s, 15*s), []time.Duration{5 * s, 5 * s}, 60 * s,
			"6.000 k 2 idle #1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			run(t, config(tc.batch), func(r *rig) {
				for _, at := range tc.items {
					r.at(at)
					r.put("k")
				}
				r.at(tc.until)
				require.Equal(t, tc.want, r.summary())
			})
		})
	}
}

func TestBytesAreDueAtOnce(t *testing.T) {
	c := config()
	c.Buffers[0].Batch.MaxBytes = 2048
	run(t, c, func(r *rig) {
		r.post(event("k", 1024))
		r.at(1 * s)
		r.post(event("k", 1024))
		r.at(60 * s)
		require.Equal(t, "1.000 k 2 bytes #1", r.summary())
	})
}

// event is a JSON event of a key and of so many bytes.
func event(key string, size int) string {
	head, tail := fmt.Sprintf(`{"k":%q,"p":"`, key), `"}`
	return head + strings.Repeat("x", size-len(head)-len(tail)) + tail
}

func TestBurstSplitsIntoFullBatches(t *testing.T) {
	run(t, config(), func(r *rig) {
		r.at(1 * s)
		r.post(numbered("k", 0, 120)...)
		r.at(60 * s)
		require.Equal(t, "1.000 k 50 items #1\n1.000 k 50 items #1\n6.000 k 20 idle #1", r.summary())
		require.Equal(t, numbered("k", 0, 120), delivered(r))
	})
}

func TestOnePostOfManyNeverMakesOneLargeBatch(t *testing.T) {
	run(t, config(batch(10, 5*s, 15*s), ordered), func(r *rig) {
		r.post(numbered("k", 0, 400)...)
		r.at(1 * s)
		require.Len(t, r.sends(), 40)
		for _, b := range r.sends() {
			require.Len(t, b.Items, 10)
		}
		require.Equal(t, numbered("k", 0, 400), delivered(r))
	})
}

// The rest of a burst waits from its own first arrival, not the burst's.
func TestRestWaitsFromItsOwnFirstArrival(t *testing.T) {
	run(t, config(batch(50, 60*s, 10*s)), func(r *rig) {
		r.put("k")
		r.at(4 * s)
		r.post(numbered("k", 0, 60)...)
		r.at(60 * s)
		require.Equal(t, "4.000 k 50 items #1\n14.000 k 11 wait #1", r.summary())
	})
}

func TestOverflowBytesCapABatch(t *testing.T) {
	capped := func(c *core.Config) {
		c.Buffers[0].Overflow.MaxBytes = 500 * core.KiB
		c.Buffers[0].Batch.MaxBytes = 500 * core.KiB
	}
	sizes := func(r *rig) (n []int) {
		for _, b := range r.sends() {
			n = append(n, len(b.Items))
		}
		return n
	}
	const kib = 1 << 10
	t.Run("items of 300 KiB leave one by one", func(t *testing.T) {
		run(t, config(capped), func(r *rig) {
			r.post(event("k", 300*kib), event("k", 300*kib), event("k", 300*kib))
			r.at(60 * s)
			require.Equal(t, []int{1, 1, 1}, sizes(r))
		})
	})
	t.Run("items of 200 KiB leave in twos", func(t *testing.T) {
		run(t, config(capped), func(r *rig) {
			r.post(event("k", 200*kib), event("k", 200*kib), event("k", 200*kib), event("k", 200*kib))
			r.at(60 * s)
			require.Equal(t, []int{2, 2}, sizes(r))
		})
	})
	t.Run("an item of 600 KiB is refused", func(t *testing.T) {
		run(t, config(capped), func(r *rig) {
			_, err := r.tryPost(event("k", 20), event("k", 600*kib))
			require.Equal(t, core.TooLarge, core.CodeOf(err))
			require.ErrorContains(t, err, "event 2: the event has 614400 bytes; buffer b takes at most 512000 (overflow.maxBytes)")
			r.at(60 * s)
			require.Empty(t, r.sends())
		})
	})
}

func TestConcurrentWritersNeverOverfillABatch(t *testing.T) {
	c := config(batch(7, ms(100), 1*s), ordered)
	c.Buffers[0].Batch.MaxBytes, c.Buffers[0].Overflow.MaxBytes = 2*core.KiB, 4*core.KiB
	run(t, c, func(r *rig) {
		r.sendsTake(ms(1))
		var writers sync.WaitGroup
		for w := range 64 {
			writers.Go(func() {
				for i := range 20 {
					r.post(fmt.Sprintf(`{"k":"k","w":%d,"i":%d,"p":%q}`, w, i, strings.Repeat("x", 40*w)))
					<-time.After(ms(w % 3))
				}
			})
		}
		writers.Wait()
		r.at(time.Hour)
		n := 0
		next := map[int]int{} // by writer
		for _, b := range r.sends() {
			require.LessOrEqual(t, len(b.Items), 7)
			require.LessOrEqual(t, b.Bytes(), 4*core.KiB)
			for _, it := range b.Items {
				var e struct{ W, I int }
				require.NoError(t, json.Unmarshal(it.Body, &e))
				require.Equal(t, next[e.W], e.I, "writer %d is out of order", e.W)
				next[e.W]++
				n++
			}
		}
		require.Equal(t, 64*20, n)
	})
}

func TestKeysStayDistinct(t *testing.T) {
	values := []string{`"a"`, `"a/b"`, `"a#b"`, `"a b"`, `"ä"`, `"🚰"`, `"` + strings.Repeat("l", 2048) + `"`, `""`, `1`, `true`, `{"x":1}`, `[1]`}
	run(t, config(), func(r *rig) {
		for range 2 {
			for _, v := range values {
				r.post(`{"k":` + v + `}`)
			}
		}
		r.post(`{"k":"1"}`, `{}`, `{"k":null}`, `no JSON`) // join the groups "1" and ""
		r.at(60 * s)
		got := map[string]int{}
		for _, b := range r.sends() {
			require.NotContains(t, got, b.Group)
			got[b.Group] = len(b.Items)
		}
		require.Len(t, got, len(values))
		require.Equal(t, 3, got["1"])
		require.Equal(t, 5, got[""])
		require.Equal(t, 2, got[`{"x":1}`])
	})
}

func TestTemplateThatFailsRefusesTheWholeRequest(t *testing.T) {
	c := config()
	c.Buffers[0].GroupBy = "{{ .json.customer.id }}"
	run(t, c, func(r *rig) {
		events := make([]string, 1000)
		for i := range events {
			events[i] = fmt.Sprintf(`{"customer":{"id":%d}}`, i)
		}
		events[700] = `{"customer":"c1"}`
		_, err := r.tryPost(events...)
		require.Equal(t, core.Invalid, core.CodeOf(err))
		require.EqualError(t, err, "event 701: the group key of buffer b, {{ .json.customer.id }}, fails on this event: can't read field id of a string")
		r.at(60 * s)
		require.Empty(t, r.sends())
	})
}

// An item that arrives while its group's batch is being sent opens a window
// of its own.
func TestItemDuringASend(t *testing.T) {
	run(t, config(batch(50, 5*s, 15*s)), func(r *rig) {
		r.sendsTake(3 * s)
		r.put("k")
		r.at(6 * s) // its batch is under way from 5 to 8
		r.put("k")
		r.at(60 * s)
		require.Equal(t, "5.000 k 1 idle #1\n11.000 k 1 idle #1", r.summary())
	})
}

func TestUnroutedEventsAreCounted(t *testing.T) {
	c := config()
	c.Sources = append(c.Sources, core.Source{Name: "other", Type: core.TypeHTTP, MaxEventBytes: core.MiB})
	c.Buffers[0].From = []string{"other"}
	run(t, c, func(r *rig) {
		receipt := r.post(`{}`, `{}`)
		require.Equal(t, 2, receipt.Unrouted)
		require.Zero(t, receipt.Accepted)
		require.Len(t, receipt.IDs, 2)
	})
}

func TestOneEventForTwoBuffers(t *testing.T) {
	c := config()
	b := c.Buffers[0]
	b.Name, b.GroupBy = "all", ""
	c.Buffers = append(c.Buffers, b)
	run(t, c, func(r *rig) {
		r.put("k1")
		r.put("k2")
		r.at(60 * s)
		got := map[string]int{}
		for _, b := range r.sends() {
			got[b.Buffer+"/"+b.Group] = len(b.Items)
		}
		require.Equal(t, map[string]int{"b/k1": 1, "b/k2": 1, "all/": 2}, got)
	})
}

// numbered is a request of n events of a key, numbered from first.
func numbered(key string, first, n int) []string {
	events := make([]string, n)
	for i := range events {
		events[i] = fmt.Sprintf(`{"k":%q,"n":%d}`, key, first+i)
	}
	return events
}

// delivered is every payload sent, in order.
func delivered(r *rig) []string {
	var all []string
	for _, b := range r.sends() {
		all = append(all, bodies(b.Items)...)
	}
	return all
}
