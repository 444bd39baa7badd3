package core

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

// fallback gives the destination fallbacks, which are there, and others.
func fallback(names ...string) func(*Config) {
	return func(c *Config) {
		c.Destinations[0].Fallbacks = names
		for _, name := range []string{"b1", "b2", "b3", "b4", "b5", "b6", "b7", "b8", "b9"} {
			d := NewDestination(name)
			d.Type = TypeStdout
			c.Destinations = append(c.Destinations, d)
		}
	}
}

// twoQueues makes the source one of a queue, with another beside it.
func twoQueues(one, two Secret) func(*Config) {
	return func(c *Config) {
		fromQueue(one)(c)
		s := c.Sources[0]
		s.Name, s.Queue = "two", two
		c.Sources = append(c.Sources, s)
	}
}

// copied gives the source a shadow beside its buffer, after which changes are
// made to that.
func copied(change func(*Buffer)) func(*Config) {
	return func(c *Config) {
		b := NewBuffer("copy")
		b.From, b.To, b.Shadow, b.Size = []string{"orders"}, "crm", true, ShadowSize
		change(&b)
		c.Buffers = append(c.Buffers, b)
	}
}

func changeBuffer(change func(*Buffer)) func(*Config) {
	return func(c *Config) { change(&c.Buffers[0]) }
}

// TestValidateRelay holds what is said of how events come in, wait and go on.
func TestValidateRelay(t *testing.T) {
	t.Parallel()
	const (
		source = "sources.orders."
		b      = "buffers.crm-orders."
		crm    = "destinations.crm."
	)
	tests := []struct {
		name   string
		change func(*Config)
		want   []string // "path: problem"
	}{
		{"a queue by reference", fromQueue("ssm:/queue"), nil},
		{"a queue by its URL", fromQueue("https://sqs.eu-west-1.amazonaws.com/1/q"), nil},
		{"a queue on this machine", fromQueue("http://localhost:9324/0/q"), nil},
		{"a queue in the clear", fromQueue("http://sqs.eu-west-1.amazonaws.com/1/q"), []string{source + "queue: is an http URL, which is for private addresses"}},
		{"no queue", fromQueue(""), []string{source + "queue: is missing"}},
		{"a queue's name", fromQueue("orders"), []string{source + "queue: has no scheme"}},
		{"a service", fromQueue("https://sqs.eu-west-1.amazonaws.com/"), []string{source + "queue: names no queue"}},
		{"a queue and more", fromQueue("https://sqs.eu-west-1.amazonaws.com/1/q?Action=x"), []string{source + "queue: has a query or a fragment"}},
		{"a queue in no variable", fromQueue("env:1"), []string{source + "queue: is not a reference to a secret"}},
		{"a queue that answers", func(c *Config) {
			fromQueue("env:Q")(c)
			c.Sources[0].Auth, c.Sources[0].AckDelivered, c.Sources[0].RespondTimeout = &Auth{}, true, time.Second
		}, []string{
			source + "auth: has no meaning here: who may send is the queue's policy",
			source + "ack: has no meaning here: a message leaves the queue when its event is durable",
			source + "respondTimeout: has no meaning here: nobody waits for an answer",
		}},
		{"a queue of two", twoQueues("https://sqs.eu-west-1.amazonaws.com/1/q", "https://sqs.eu-west-1.amazonaws.com/1/q"),
			[]string{`sources.two.queue: is the queue of source "orders", too`}},
		{"a reference of two", twoQueues("env:Q", "env:Q"), []string{`sources.two.queue: is the queue of source "orders", too`}},
		{"a queue in two regions", twoQueues("https://sqs.eu-west-1.amazonaws.com/1/q", "https://sqs.eu-west-2.amazonaws.com/1/q"), nil},
		{"two without a queue", twoQueues("", ""), []string{source + "queue: is missing", "sources.two.queue: is missing"}},
		{"a queue that is called", func(c *Config) { c.Sources[0].Queue = "env:Q" }, []string{source + "queue: has no meaning here"}},
		{"a timeout that has no effect", func(c *Config) { c.Sources[0].RespondTimeout = time.Minute }, []string{source + "respondTimeout: is 1m"}},

		{"fallbacks", fallback("b1", "b2", "b3", "b4", "b5", "b6", "b7", "b8"), nil},
		{"nine fallbacks", fallback("b1", "b2", "b3", "b4", "b5", "b6", "b7", "b8", "b9"), []string{crm + "fallbacks: has 9 destinations"}},
		{"fallbacks that are none", fallback("crm", "b1", "b1", "b"), []string{
			crm + "fallbacks[0]: names the destination itself",
			crm + `fallbacks[2]: names "b1" again`,
			crm + `fallbacks[3]: names the destination "b", which does not exist`,
		}},

		{"order in one shard", changeBuffer(func(b *Buffer) { b.Ordered = true }), nil},
		{"order in shards", changeBuffer(func(b *Buffer) { b.Ordered, b.Shards = true, 2 }),
			[]string{b + "shards: is 2, which breaks the order that ordering asks for"}},
		{"order of a key in shards", changeBuffer(func(b *Buffer) { b.Ordered, b.Shards, b.OrderKey = true, 2, "{{ .json.k }}" }), nil},
		{"order of a window's shards", window(changeBuffer(func(b *Buffer) { b.Ordered, b.Shards, b.OrderKey = true, 2, "{{ .json.k }}" })), []string{
			b + "ordering.key: has no meaning beside window: groupBy picks the shard of an event there",
			b + "shards: is 2, which breaks the order that ordering asks for",
		}},
		{"a key that is no template", changeBuffer(func(b *Buffer) { b.Ordered, b.OrderKey = true, "{{ .k }}" }),
			[]string{b + "ordering.key: is not a template: an event has no field .k; it has .json, .headers, .id and .source"}},

		{"a delay", changeBuffer(func(b *Buffer) { b.DeliverAfter, b.DeliverAt = time.Hour, "{{ .json.at }}" }), nil},
		{"a delay of an ordered group, by flushes", changeBuffer(func(b *Buffer) { b.DeliverAfter, b.Ordered, b.FlushEvery = time.Hour, true, time.Minute }), nil},
		{"a delay that is no template", changeBuffer(func(b *Buffer) { b.DeliverAt = "{{ .at }}" }),
			[]string{b + "deliverAt: is not a template: an event has no field .at; it has .json, .headers, .id and .source"}},
		{"a delay of a window", window(changeBuffer(func(b *Buffer) { b.DeliverAfter, b.DeliverAt = time.Hour, "{{ .json.at }}" })), []string{
			b + "deliverAfter: has no meaning beside window: a window has its own time, its end, when all of it leaves",
			b + "deliverAt: has no meaning beside window: a window has its own time, its end, when all of it leaves",
		}},
		{"a delay of half the retention", changeBuffer(func(b *Buffer) { b.DeliverAfter = 84 * time.Hour }), nil},
		{"a longer one", changeBuffer(func(b *Buffer) { b.DeliverAfter = 85 * time.Hour }),
			[]string{"store.retention: is 7d, less than twice the deliverAfter of buffer crm-orders, 85h"}},

		{"a shadow", copied(func(b *Buffer) { b.Sample = 0.05 }), nil},
		{"a shadow of nothing", copied(func(b *Buffer) { b.Sample = 0 }), []string{"buffers.copy.sample: is 0"}},
		{"a shadow of more than all", copied(func(b *Buffer) { b.Sample = 1.5 }), []string{"buffers.copy.sample: is 1.5"}},
		{"a shadow that waits", copied(func(b *Buffer) { b.DeliverAfter = time.Hour }),
			[]string{"buffers.copy.deliverAfter: has no meaning beside shadow: nothing waits for a copy, and so nothing keeps it"}},
		{"a sample of what must arrive", changeBuffer(func(b *Buffer) { b.Sample = 0.5 }),
			[]string{b + "sample: has no meaning without shadow: a buffer gets every event that its filter keeps"}},
		{"a shadow alone", changeBuffer(func(b *Buffer) { b.Shadow = true }),
			[]string{b + "shadow: is set in every buffer that reads orders, and a shadow may drop events"}},
		{"two shadows alone", func(c *Config) {
			c.Sources = append(c.Sources, NewSource("more"), NewSource("kept"))
			c.Buffers[0].From, c.Buffers[0].Shadow = []string{"orders", "more", "kept", "none"}, true
			copied(func(b *Buffer) { b.Name, b.From, b.Shadow = "keeper", []string{"kept"}, false })(c)
			copied(func(*Buffer) {})(c)
		}, []string{
			b + `from[3]: names the source "none", which does not exist`,
			b + "shadow: is set in every buffer that reads orders or more, and a shadow may drop events",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := validConfig()
			tt.change(c)
			require.Empty(t, cmp.Diff(tt.want, problems(c.Validate())))
		})
	}
}

func TestRetrySpan(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		policy RetryPolicy
		want   time.Duration
	}{
		"one attempt":  {RetryPolicy{MaxAttempts: 1, Initial: time.Second, Max: time.Hour}, 0},
		"doubling":     {RetryPolicy{MaxAttempts: 5, Initial: time.Second, Max: time.Hour}, 15 * time.Second},
		"bounded":      {RetryPolicy{MaxAttempts: 5, Initial: time.Second, Max: 3 * time.Second}, 9 * time.Second},
		"the defaults": {NewDestination("").Retry, 1023*time.Second + 9*15*time.Minute},
		"the most":     {RetryPolicy{MaxAttempts: 1000, Initial: time.Hour, Max: 24 * time.Hour}, (1+2+4+8+16)*time.Hour + 994*24*time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, tt.policy.span())
		})
	}
}
