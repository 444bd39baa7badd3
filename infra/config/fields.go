package config

import (
	"time"

	"go.yaml.in/yaml/v4"

	"sluice/core"
)

// file is the table of every field of sluice.yaml: its name, what it means,
// where it goes, and what it looks like. Bounds and defaults are core's.
func file() shape[core.Config] {
	type c = core.Config
	return object(*core.NewConfig(),
		part("control", "Who may make control calls.", func(c *c) *core.Control { return &c.Control }, control()),
		part("store", "The store.", func(c *c) *core.StoreConfig { return &c.Store }, store()),
		part("sources", "The ways in, by name.", func(c *c) *[]core.Source { return &c.Sources }, named(core.NewSource, source())).must(),
		part("destinations", "The endpoints, by name.", func(c *c) *[]core.Destination { return &c.Destinations }, named(core.NewDestination, destination())),
		part("buffers", "The subscriptions of destinations to sources, by name.", func(c *c) *[]core.Buffer { return &c.Buffers }, named(core.NewBuffer, buffer())),
	)
}

func control() shape[core.Control] {
	return mapping("{tokens: [env:NAME]}", core.Control{},
		part("tokens", "Bearer tokens that allow control calls. None: they are answered on loopback only.",
			func(c *core.Control) *[]core.Secret { return &c.Tokens }, list(secret(), "[env:NAME]", 0)),
	)
}

func store() shape[core.StoreConfig] {
	return object(core.NewConfig().Store,
		part("sync", "Wait for the disk before every answer. Embedded store only. With false, a crash of the host can lose what was accepted last.",
			func(s *core.StoreConfig) *bool { return &s.Sync }, boolean()),
		part("retention", "How long items are kept beyond their deadline at most (DynamoDB), and how long a time window is remembered after its end; an older one counts as shipped.",
			func(s *core.StoreConfig) *time.Duration { return &s.Retention }, duration(core.RetentionRange)),
	)
}

func source() shape[core.Source] {
	type s = core.Source
	return object(core.NewSource(""),
		part("type", "The kind of source.", func(s *s) *string { return &s.Type }, choice(core.SourceTypes())),
		part("queue", "The queue's URL, or a reference to it such as env:QUEUE_URL. Required for sqs.", func(s *s) *string { return (*string)(&s.Queue) }, words()),
		part("auth", "Who may send. Absent: loopback only.", func(s *s) **core.Auth { return &s.Auth }, auth()),
		part("ack", "When an event is answered: accepted, when it is durable; delivered, when its outcome is known, with 200 or 502, or with 202 after respondTimeout.", func(s *s) *bool { return &s.AckDelivered }, ack()),
		part("respondTimeout", "How long an answer waits for the outcome, with ack: delivered.", func(s *s) *time.Duration { return &s.RespondTimeout }, duration(core.RespondRange)),
		part("maxEventBytes", "The largest event that is taken.", func(s *s) *int64 { return &s.MaxEventBytes }, size(core.EventBytesRange)),
	)
}

// auth is the word none, or a mapping of what lets a caller in.
func auth() shape[*core.Auth] {
	type a = core.Auth
	fields := mapping("{bearer: [env:NAME]}", core.Auth{},
		part("bearer", "Bearer tokens, any of which lets a caller in.", func(a *a) *[]core.Secret { return &a.Bearer }, some(list(secret(), "[env:NAME]", 0))),
		part("webhook", "Signatures by Standard Webhooks.", func(a *a) *[]core.Secret { return &a.Webhook }, webhook()),
	)
	fields.schema.MinProperties = 1
	return shape[*core.Auth]{
		schema: schema{OneOf: []schema{{Const: "none", Description: "Anybody."}, fields.schema}},
		read: func(d *decoder, path string, n *yaml.Node, into **core.Auth) {
			if !d.plain(path, n) {
				return
			}
			read := core.Auth{}
			switch s, isText := textOf(n); {
			case isText && s == "none":
				read.Open = true
			case isText: // perhaps a token: it is not shown
				d.fault(n, path, "is text other than none", "must be none, {bearer: [env:NAME]} or {webhook: {secrets: [env:NAME]}}")
			default:
				fields.read(d, path, n, &read)
			}
			*into = &read
		},
	}
}

// webhook is a mapping with nothing but secrets.
func webhook() shape[[]core.Secret] {
	fields := mapping("{secrets: [env:NAME]}", []core.Secret(nil),
		part("secrets", "Secrets, any of which a sender may sign with.", func(s *[]core.Secret) *[]core.Secret { return s }, some(list(secret(), "[env:NAME]", 0))).must(),
	)
	return shape[[]core.Secret]{schema: fields.schema, read: func(d *decoder, path string, n *yaml.Node, into *[]core.Secret) {
		*into = []core.Secret{} // present, though perhaps without a secret
		fields.read(d, path, n, into)
	}}
}

func destination() shape[core.Destination] {
	type d = core.Destination
	return mapping("{url: https://example.com/events}", core.NewDestination(""),
		part("type", "The kind of destination.", func(d *d) *string { return &d.Type }, choice(core.DestinationTypes())),
		part("url", "Where batches are posted. Required for http.", func(d *d) *string { return &d.URL }, words()),
		part("path", "The file that batches are appended to. Required for file.", func(d *d) *string { return &d.Path }, words()),
		part("queue", "The queue's URL, or a reference to it such as env:QUEUE_URL. Required for sqs.", func(d *d) *string { return &d.Queue }, words()),
		part("bucket", "The bucket's name, or a reference to it such as env:BUCKET. Required for s3.", func(d *d) *string { return &d.Bucket }, words()),
		part("key", "The key of a batch's object in s3: a template of .id, .buffer, .group, .reason, .date, .year, .month, .day, .hour, .minute and .suffix.", func(d *d) *string { return &d.Key }, shown(words())),
		part("compression", "How objects in s3 are compressed.", func(d *d) *string { return &d.Compression }, choice(core.Compressions())),
		part("region", "The region of the queue or bucket. Absent: the one in the queue's URL, or else the one that Sluice is in.", func(d *d) *string { return &d.Region }, words()),
		part("endpoint", "The address of a store that speaks the protocol of s3. Absent: that of AWS.", func(d *d) *string { return &d.Endpoint }, words()),
		part("headers", "Headers to send: a literal, or a reference to a secret such as env:NAME.", func(d *d) *[]core.ConfigHeader { return &d.Headers }, headers()),
		part("format", "What a batch looks like.", func(d *d) *string { return &d.Format }, choice(core.Formats())),
		part("secrets", "What batches are signed with (Standard Webhooks): one secret, or two during rotation.", func(d *d) *[]core.Secret { return &d.Secrets }, list(secret(), "[env:NAME]", core.MaxSecrets)),
		part("timeout", "How long one send may take.", func(d *d) *time.Duration { return &d.Timeout }, duration(core.TimeoutRange)),
		part("allowPrivate", "Allow private and loopback addresses; for sqs and s3, an address that begins with http://.", func(d *d) *bool { return &d.AllowPrivate }, boolean()),
		part("concurrency", "Sends in flight, per process.", func(d *d) *int { return &d.Concurrency }, count[int](core.SendsRange)),
		part("retry", "When a failed batch is sent again.", func(d *d) *core.RetryPolicy { return &d.Retry }, retry()),
		part("breaker", "Stop sending after so many failures in a row, and try again after a cooldown; meanwhile batches wait, and use up no attempts. Absent: none.", func(d *d) **core.BreakerConfig { return &d.Breaker }, breaker()),
		part("rateLimit", "The most requests in a time. Absent: no limit.", func(d *d) **core.RateConfig { return &d.RateLimit }, rateLimit()),
		part("fallbacks", "Destinations that are tried in turn when a batch has finally failed here. Their own fallbacks are not followed.", func(d *d) *[]string { return &d.Fallbacks }, list(words(), "[backup]", core.MaxFallbacks)),
		part("filter", `Which items this destination gets: a jq program such as '.type == "order"'. One for which it gives false, null or nothing is finished.`, func(d *d) *string { return &d.Filter }, words()),
		part("transform", "What the items' bodies become for this destination: a jq program.", func(d *d) *string { return &d.Transform }, words()),
	)
}

func retry() shape[core.RetryPolicy] {
	type r = core.RetryPolicy
	return object(core.NewDestination("").Retry,
		part("maxAttempts", "Sends in all, the first included.", func(r *r) *int { return &r.MaxAttempts }, count[int](core.AttemptsRange)),
		part("initial", "The most that is waited before the second send. It doubles each time.", func(r *r) *time.Duration { return &r.Initial }, duration(core.RetryInitialRange)),
		part("max", "The most that is ever waited, also when the destination asks for more.", func(r *r) *time.Duration { return &r.Max }, duration(core.RetryMaxRange)),
		part("on", "Statuses to retry beyond 408, 425, 429 and 5xx.", func(r *r) *[]int { return &r.On }, list(count[int](core.RetryStatusRange), "[404]", 0)),
	)
}

func buffer() shape[core.Buffer] {
	type b = core.Buffer
	fields := mapping("{from: [orders], to: crm}", core.NewBuffer(""),
		part("from", "The sources whose events it takes.", func(b *b) *[]string { return &b.From }, some(list(words(), "[orders]", 0))).must(),
		part("to", "The destination.", func(b *b) *string { return &b.To }, text("must be the name of one destination; for several, use a buffer for each, or fallbacks")).must(),
		part("filter", `Which events it takes: a jq program such as '.type == "order"'. One for which it gives false, null or nothing is not stored.`, func(b *b) *string { return &b.Filter }, words()),
		part("transform", "What an event's body becomes before it is grouped: a jq program.", func(b *b) *string { return &b.Transform }, words()),
		part("groupBy", `The group of an event, or beside window its row: a template such as "{{ .json.customer_id }}". Absent: one group.`, func(b *b) *string { return &b.GroupBy }, words()),
		part("batch", "When a group is due: as soon as any of these holds. Beside window or flush only maxItems counts, as the most in one batch.", func(b *b) *core.BatchConfig { return &b.Batch }, batch()),
		part("overflow", "Hard limits.", func(b *b) *core.OverflowConfig { return &b.Overflow }, overflow()),
		part("concurrency", "Batches of one group in flight.", func(b *b) *int { return &b.Concurrency }, count[int](core.BatchesRange)),
		part("ordering", "Send a group's batches one at a time, retries included.", func(b *b) *core.Buffer { return b }, ordering()),
		part("size", "Items in the whole buffer. 0: no limit. Absent: 0, or 256 beside shadow, whose events are dropped beyond that.", func(b *b) *int64 { return &b.Size }, silent(count[int64](core.SizeRange))),
		part("shards", "Records that each group is spread over, each of which is batched for itself. DynamoDB only.", func(b *b) *int { return &b.Shards }, count[int](core.ShardsRange)),
		part("dedupe", "Drop events whose id has been seen.", func(b *b) *time.Duration { return &b.Dedupe }, dedupe()),
		part("deliverAfter", "How long events are held, from their receipt.", func(b *b) *time.Duration { return &b.DeliverAfter }, duration(core.DelayRange)),
		part("deliverAt", `Until when an event is held: a template such as "{{ .json.send_at }}", of RFC 3339. Empty: deliverAfter. A time that has passed: not at all.`, func(b *b) *string { return &b.DeliverAt }, words()),
		part("shadow", "Deliver a copy on the side, for which nothing waits and whose failures change nothing.", func(b *b) *bool { return &b.Shadow }, boolean()),
		part("sample", "The share of the events that a shadow gets; their ids decide.", func(b *b) *float64 { return &b.Sample }, share()),
		part("window", "Make the groups time windows, each of which leaves once, whole, when it is over.", func(b *b) **core.WindowConfig { return &b.Window }, window()),
		part("fold", "Make one row of all events of a window that have the same groupBy, with these columns: count, or one of count, sum, min, max, avg, first and last with a path, such as {total: sum .json.amount}.",
			func(b *b) *[]core.FoldColumn { return &b.Fold }, fold()),
		part("flush", "Deliver by flushes alone. Sluice makes them by itself; a forced call makes one sooner.", func(b *b) *time.Duration { return &b.FlushEvery }, flush()),
		part("claimLimit", "The most items that a flush claims of a group at a time. 0: batch.maxItems.", func(b *b) *int { return &b.ClaimLimit }, count[int](core.ClaimLimitRange)),
		part("recoverAfter", "How long a batch is one deliverer's; after that it counts as dead, and another sends the batch again. At least, and by default, the destination's timeout and 15s to settle.",
			func(b *b) *time.Duration { return &b.RecoverAfter }, silent(duration(core.RecoverAfterRange))),
	)
	read := fields.read
	fields.read = func(d *decoder, path string, n *yaml.Node, into *core.Buffer) {
		read(d, path, n, into)
		_, given := d.places[path+".overflow.maxBytes"]
		if !given && core.BatchBytesRange.Has(into.Batch.MaxBytes) {
			into.Overflow.MaxBytes = into.Batch.DefaultMaxBytes()
		}
		if _, given := d.places[path+".size"]; !given {
			into.Size = into.DefaultSize()
		}
	}
	return fields
}

func batch() shape[core.BatchConfig] {
	type b = core.BatchConfig
	return object(core.NewBuffer("").Batch,
		part("maxItems", "The group holds this many items; also the most in one batch.", func(b *b) *int { return &b.MaxItems }, count[int](core.BatchItemsRange)),
		part("maxBytes", "The group's payloads add up to this.", func(b *b) *int64 { return &b.MaxBytes }, size(core.BatchBytesRange)),
		part("idleTimeoutMs", "No new item for this long, in milliseconds.", func(b *b) *time.Duration { return &b.IdleTimeout }, millis(core.IdleTimeoutRange)),
		part("maxWaitFromFirstMs", "The oldest item has waited this long, in milliseconds.", func(b *b) *time.Duration { return &b.MaxWait }, millis(core.MaxWaitRange)),
	)
}

func overflow() shape[core.OverflowConfig] {
	type o = core.OverflowConfig
	return object(core.NewBuffer("").Overflow,
		part("maxBytes", "The most payload of one batch; a larger event is refused. At least, and by default not below, batch.maxBytes.",
			func(o *o) *int64 { return &o.MaxBytes }, size(core.OverflowBytesRange)),
		part("maxItems", "The most items that may wait in one group, or in one time window. 0: no limit.", func(o *o) *int { return &o.MaxItems }, count[int](core.OverflowItemsRange)),
	)
}

// headers is a mapping of names to literals and references.
func headers() shape[[]core.ConfigHeader] {
	value := words()
	return shape[[]core.ConfigHeader]{
		schema: schema{Type: "object", AdditionalProperties: &value.schema},
		read: func(d *decoder, path string, n *yaml.Node, into *[]core.ConfigHeader) {
			entries, _ := d.entries(path, n, "must be a mapping of names to values")
			for _, e := range entries {
				h := core.ConfigHeader{Name: e.name}
				value.read(d, e.path, e.value, &h.Value)
				if core.IsReference(h.Value) {
					h.Value, h.Secret = "", core.Secret(h.Value)
				}
				if !e.again {
					*into = append(*into, h)
				}
			}
		},
	}
}
