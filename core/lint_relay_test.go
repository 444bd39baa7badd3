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
		{"a wait", func(c *Config) { c.Sources[0].AckDelivered, c.Sources[0].RespondTimeout = true, time.Second }, nil},

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
		{"order that waits for a time", changeBuffer(func(b *Buffer) { b.Ordered, b.DeliverAfter, b.DeliverAt = true, time.Hour, "{{ .json.at }}" }), []string{
			b + "deliverAfter: makes an event that is held hold back all behind it in its group, since ordering is set",
			b + "deliverAt: makes an event that is held hold back all behind it in its group, since ordering is set",
		}},

		{"a delay", changeBuffer(func(b *Buffer) { b.DeliverAfter = time.Hour }), nil},
		{"a delay that a crash ends", func(c *Config) { c.Store.Sync, c.Buffers[0].DeliverAfter = false, time.Hour },
			[]string{b + "deliverAfter: holds events while store.sync is false: a crash of the host can lose some, and by then nobody sends them again"}},
		{"no delay that a crash ends", func(c *Config) { c.Store.Sync = false }, nil},
		{"a delay that callers wait for", func(c *Config) { c.Sources[0].AckDelivered, c.Buffers[0].DeliverAt = true, "{{ .json.at }}" },
			[]string{b + "deliverAt: holds events of source orders, whose ack is delivered: its callers wait for respondTimeout and then hear pending"}},
		{"a delay that callers can wait for", func(c *Config) { c.Sources[0].AckDelivered, c.Buffers[0].DeliverAfter = true, time.Second }, nil},
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
