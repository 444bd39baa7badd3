package core

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

// toQueue gives the destination a fallback of type sqs.
func toQueue(change func(d, fallback *Destination)) func(*Config) {
	return func(c *Config) {
		q := NewDestination("q")
		q.Type, c.Destinations[0].Fallbacks = TypeSQS, []string{"q"}
		change(&c.Destinations[0], &q)
		c.Destinations = append(c.Destinations, q)
	}
}

// waiting makes callers wait for what becomes of their events.
func waiting(change func(*Buffer)) func(*Config) {
	return func(c *Config) {
		c.Sources[0].AckDelivered = true
		change(&c.Buffers[0])
	}
}

// shadowOf adds a shadow, and a destination.
func shadowOf(to string) func(*Config) {
	return func(c *Config) {
		other := NewDestination("other")
		other.Type = TypeStdout
		copies := NewBuffer("copies")
		copies.From, copies.To, copies.Shadow = []string{"orders"}, to, true
		c.Destinations, c.Buffers = append(c.Destinations, other), append(c.Buffers, copies)
		if to != "other" {
			c.Destinations = c.Destinations[:1]
		}
	}
}

// breakerOf gives one of a destination and its fallback a breaker.
func breakerOf(i int, cooldown time.Duration) func(*Config) {
	return func(c *Config) {
		fallback("b1")(c)
		c.Destinations = c.Destinations[:2]
		c.Destinations[i].Breaker = &BreakerConfig{Failures: 1, Cooldown: cooldown}
	}
}

const (
	inVain      = ": may keep events of source orders, whose ack is delivered, for its respondTimeout, 10s, or longer: its callers then hear pending"
	inTheWay    = ": is set, but its copies go to destination "
	inTheWayToo = ", as what buffer crm-orders sends may: they count for its breaker, rateLimit and concurrency"
)

// TestLintRelay asks for no valid configuration: a destination of type sqs
// needs more than what counts here.
func TestLintRelay(t *testing.T) {
	t.Parallel()
	const b = "buffers.crm-orders."
	tests := []struct {
		name   string
		change func(*Config)
		want   []string // "path: problem"
	}{
		{"a timeout without a wait", func(c *Config) { c.Sources[0].RespondTimeout = time.Second },
			[]string{"sources.orders.respondTimeout: has no effect: events are answered when they are durable"}},
		{"a wait", func(c *Config) { c.Sources[0].AckDelivered, c.Sources[0].RespondTimeout = true, 6*time.Second }, nil},

		{"a fallback is used", func(c *Config) { fallback("b1")(c); c.Destinations = c.Destinations[:2] }, nil},
		{"a fallback of its own", func(c *Config) {
			fallback("b1")(c)
			c.Destinations = c.Destinations[:3]
			c.Destinations[1].Fallbacks = []string{"b2"}
		}, []string{
			"destinations.crm.fallbacks[0]: names b1, which has fallbacks of its own: they are not followed from here",
			"destinations.b2: is used by no buffer",
		}},
		{"a queue behind large batches", toQueue(func(_, _ *Destination) {}),
			[]string{"destinations.crm.fallbacks[0]: names q, of type sqs, which takes 10 items at a time: a batch of 50 from buffer crm-orders is sent in 5 parts"}},
		{"a queue behind small batches", func(c *Config) {
			toQueue(func(_, _ *Destination) {})(c)
			c.Buffers[0].Batch.MaxItems = 10
		}, nil},
		{"a queue behind a queue", toQueue(func(d, _ *Destination) { d.Type = TypeSQS }), nil},

		{"order", changeBuffer(func(b *Buffer) { b.Ordered = true }), nil},
		{"a key without shards", changeBuffer(func(b *Buffer) { b.Ordered, b.OrderKey = true, "{{ .json.k }}" }),
			[]string{b + "ordering.key: has no effect: a group is kept in order as a whole, and the key only picks one of several shards"}},
		{"a key of shards", changeBuffer(func(b *Buffer) { b.Ordered, b.OrderKey, b.Shards = true, "{{ .json.k }}", 2 }), nil},
		{"order that waits for batches", changeBuffer(func(b *Buffer) { b.Ordered, b.Batch.MaxWait = true, 5*time.Minute }),
			[]string{b + "batch.maxWaitFromFirstMs: is 300000 beside ordering: an event may wait so long for its batch, and then for the one before, whose retries come first"}},
		{"order that waits for retries", func(c *Config) { c.Buffers[0].Ordered, c.Destinations[0].Retry.MaxAttempts = true, 100 },
			[]string{b + "ordering: makes a batch that fails hold back all behind it in its group for up to 22h32m, the retries of destination crm"}},
		{"order that waits for the retries of fallbacks", func(c *Config) {
			fallback("b1", "b2")(c)
			c.Destinations = c.Destinations[:3]
			c.Buffers[0].Ordered = true
		}, []string{b + "ordering: makes a batch that fails hold back all behind it in its group for up to 7h36m, the retries of destination crm and its fallbacks"}},
		{"order that waits for a time", changeBuffer(func(b *Buffer) { b.Ordered, b.DeliverAfter, b.DeliverAt = true, time.Hour, "{{ .json.at }}" }), []string{
			b + "deliverAfter: makes an event that is held hold back all behind it in its group, since ordering is set",
			b + "deliverAt: makes an event that is held hold back all behind it in its group, since ordering is set",
		}},

		{"a delay", changeBuffer(func(b *Buffer) { b.DeliverAfter = time.Hour }), nil},
		{"a delay that a crash ends", func(c *Config) { c.Store.Sync, c.Buffers[0].DeliverAfter = false, time.Hour },
			[]string{b + "deliverAfter: holds events while store.sync is false: a crash of the host can lose some, and by then nobody sends them again"}},
		{"no delay that a crash ends", func(c *Config) { c.Store.Sync = false }, nil},
		{"a delay that callers wait for", waiting(func(b *Buffer) { b.DeliverAt = "{{ .json.at }}" }),
			[]string{b + "deliverAt: may hold events of source orders, whose ack is delivered: its callers then hear pending at once"}},
		{"a short delay that callers wait for", waiting(func(b *Buffer) { b.DeliverAfter = time.Second }),
			[]string{b + "deliverAfter: may hold events of source orders, whose ack is delivered: its callers then hear pending at once"}},
		{"a delay in its place that callers wait for", waiting(func(b *Buffer) { b.DeliverAfter, b.Ordered = time.Minute, true }), []string{
			b + "deliverAfter: makes an event that is held hold back all behind it in its group, since ordering is set",
			b + "deliverAfter" + inVain,
		}},
		{"a delay in its place that callers can wait for", waiting(func(b *Buffer) { b.DeliverAfter, b.Ordered = time.Second, true }),
			[]string{b + "deliverAfter: makes an event that is held hold back all behind it in its group, since ordering is set"}},
		{"rows that callers wait for", waiting(func(b *Buffer) {
			b.Window, b.Fold = &WindowConfig{Every: time.Second}, []FoldColumn{{Name: "n", Expr: "count"}}
		}),
			[]string{b + "fold: makes rows of events of source orders, whose ack is delivered, and what becomes of one says nothing of an event: its callers hear pending at once"}},
		{"a window that callers wait for", waiting(func(b *Buffer) {
			b.GroupBy, b.Window = "", &WindowConfig{Every: 5 * time.Second, Grace: 5 * time.Second}
		}),
			[]string{b + "window" + inVain}},
		{"a window that callers can wait for", waiting(func(b *Buffer) { b.GroupBy, b.Window = "", &WindowConfig{Every: 5 * time.Second} }), nil},
		{"a window that a flush ships", waiting(func(b *Buffer) {
			b.GroupBy, b.Window, b.FlushEvery = "", &WindowConfig{Every: 5 * time.Second}, 5*time.Second
		}),
			[]string{b + "window" + inVain}},
		{"a flush that callers wait for", waiting(func(b *Buffer) { b.FlushEvery = 10 * time.Second }), []string{b + "flush.every" + inVain}},
		{"a batch that callers wait for", waiting(func(b *Buffer) { b.Batch.IdleTimeout, b.Batch.MaxWait = 12*time.Second, 15*time.Second }),
			[]string{b + "batch.idleTimeoutMs" + inVain}},
		{"a first event that callers wait for", waiting(func(b *Buffer) { b.Batch.IdleTimeout, b.Batch.MaxWait = 15*time.Second, 10*time.Second }),
			[]string{
				b + "batch.idleTimeoutMs: is 15000, above maxWaitFromFirstMs, 10000, and so never counts",
				b + "batch.maxWaitFromFirstMs" + inVain,
			}},
		{"batches of one", waiting(func(b *Buffer) { b.Batch.MaxItems, b.Batch.IdleTimeout = 1, 15*time.Second }), nil},
		{"a copy for which nobody waits", func(c *Config) {
			shadowOf("other")(c)
			waiting(func(*Buffer) {})(c)
			c.Buffers[1].FlushEvery = time.Minute
		}, nil},

		{"a shadow of its own destination", shadowOf("other"), nil},
		{"a shadow of limited groups", func(c *Config) {
			shadowOf("other")(c)
			c.Buffers[1].Overflow.MaxItems = 10 // less than batch.maxItems, too
		}, []string{"buffers.copies.overflow.maxItems: is 10, but has no effect beside shadow: no request is refused for a copy"}},
		{"a shadow of what counts", shadowOf("crm"), []string{"buffers.copies.shadow" + inTheWay + "crm" + inTheWayToo}},
		{"a shadow of a fallback", func(c *Config) {
			shadowOf("other")(c)
			c.Destinations[0].Fallbacks = []string{"other"}
		}, []string{"buffers.copies.shadow" + inTheWay + "other" + inTheWayToo}},
		{"a shadow that falls back", func(c *Config) {
			shadowOf("other")(c)
			c.Destinations[1].Fallbacks = []string{"crm"}
		}, []string{"buffers.copies.shadow" + inTheWay + "crm" + inTheWayToo}},

		{"a fallback that is shut for long", breakerOf(1, time.Minute+1),
			[]string{"destinations.crm.fallbacks[0]: names b1, whose breaker is open for 1m0.000000001s: 8 batches of a group that wait for it, or 1 where ordering is set, keep the next ones from crm, too"}},
		{"a fallback that is shut for a while", breakerOf(1, time.Minute), nil},
		{"a destination that is shut for long", breakerOf(0, time.Hour), nil},
		{"a breaker that opens after the last attempt", func(c *Config) {
			breaker := NewBreaker()
			c.Destinations[0].Breaker, c.Destinations[0].Retry.MaxAttempts = &breaker, 2
		}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := validConfig()
			tt.change(c)
			require.Empty(t, cmp.Diff(tt.want, problems(c.Lint())))
		})
	}
}
