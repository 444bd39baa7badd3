package core

import (
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
)

// Lint reports what works but is likely to hurt, in the order of the
// configuration, which must be valid.
func (c *Config) Lint() []Fault {
	var v validation
	read, used := map[string]bool{}, map[string]bool{}
	for i := range c.Buffers {
		for _, d := range c.hops(c.Buffers[i].To) {
			used[d.Name] = true
		}
		for _, s := range c.Buffers[i].From {
			read[s] = true
		}
	}
	limits := make(map[string]int64, len(c.Sources))
	for i := range c.Sources {
		v.lintSource(&c.Sources[i], read[c.Sources[i].Name])
		limits[c.Sources[i].Name] = c.Sources[i].MaxEventBytes
	}
	for i := range c.Destinations {
		v.lintDestination(&c.Destinations[i], used[c.Destinations[i].Name])
		v.lintFallbacks(c, &c.Destinations[i])
	}
	for i := range c.Buffers {
		v.lintBuffer(&c.Buffers[i], limits)
		v.lintOrder(c, &c.Buffers[i])
		v.lintDelay(c, &c.Buffers[i])
		v.lintWait(c, &c.Buffers[i])
		v.lintShadow(c, &c.Buffers[i])
	}
	return v.faults
}

func (v *validation) lintSource(s *Source, read bool) {
	path := FieldPath("sources", s.Name)
	if !read {
		v.add(path, "is read by no buffer", "name it in a buffer's from, or its events go nowhere")
	}
	if s.Auth != nil && s.Auth.Open {
		v.add(path+".auth", "lets anybody in", "use {bearer: [env:NAME]} or {webhook: {secrets: [env:NAME]}}, unless something in front of it checks the caller")
	}
	v.lintAck(path, s)
}

func (v *validation) lintDestination(d *Destination, used bool) {
	path := FieldPath("destinations", d.Name)
	if !used {
		v.add(path, "is used by no buffer", "name it in a buffer's to, or remove it")
	}
	if d.Type == TypeHTTP && !d.AllowPrivate && privateHost(d.URL) {
		v.add(path+".url", "is a private or loopback address, which is refused", "set allowPrivate: true, or use a public address")
	}
	for _, h := range d.Headers {
		if h.Secret == "" && (credential.MatchString(h.Value) || secretHeader.MatchString(h.Name)) {
			v.add(FieldPath(path+".headers", h.Name), "looks like a secret written out", "put it in the environment and write env:NAME")
		}
	}
}

// privateHost reports whether a URL names a private or loopback address
// without asking the DNS.
func privateHost(s string) bool {
	u, err := url.Parse(s)
	if err != nil {
		return false
	}
	host := strings.ToLower(u.Hostname())
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && (ip.IsPrivate() || ip.IsLoopback())
}

// secretHeader matches the names of headers that carry secrets.
var secretHeader = regexp.MustCompile(`(?i)authorization|cookie|password|secret|token|api[-_]?key|access[-_]?key`)

func (v *validation) lintBuffer(b *Buffer, limits map[string]int64) {
	path := FieldPath("buffers", b.Name)
	for i, s := range b.From {
		if limits[s] > b.Overflow.MaxBytes {
			v.add(ElementPath(path+".from", i),
				fmt.Sprintf("brings events of up to %s, above overflow.maxBytes, %s", formatBytes(limits[s]), formatBytes(b.Overflow.MaxBytes)),
				"larger events are answered 413; raise overflow.maxBytes, or lower the source's maxEventBytes")
		}
	}
	v.lintGroupBy(path, b)
	if b.Batch.IdleTimeout > b.Batch.MaxWait {
		v.add(path+".batch.idleTimeoutMs",
			fmt.Sprintf("is %s, above maxWaitFromFirstMs, %s, and so never counts", UnitMillis.Format(int64(b.Batch.IdleTimeout)), UnitMillis.Format(int64(b.Batch.MaxWait))),
			"set it below maxWaitFromFirstMs")
	}
	if n := b.Overflow.MaxItems; n > 0 && n < b.Batch.MaxItems && b.Fold == nil && !b.Shadow {
		v.add(path+".overflow.maxItems",
			fmt.Sprintf("is %d, below batch.maxItems, %d, which a group can then never reach", n, b.Batch.MaxItems),
			"must be at least batch.maxItems to let batches fill")
	}
	switch {
	case b.Concurrency > 1 && b.Fold != nil:
		v.add(path+".concurrency", fmt.Sprintf("is %d, but the rows of a window are sent one batch at a time", b.Concurrency), "remove it; windows do not wait for each other")
	case b.Concurrency > 1 && b.Ordered:
		v.add(path+".concurrency", fmt.Sprintf("is %d, but an ordered group sends one batch at a time", b.Concurrency), "remove it, or remove ordering")
	}
}

// lintGroupBy warns of a key that does not do what it is for: it groups events,
// or in a time window says which fold into a row, and which share a shard.
func (v *validation) lintGroupBy(path string, b *Buffer) {
	field := uniqueField(b.GroupBy)
	switch {
	case b.Window != nil && b.Shards > 1 && b.GroupBy == "":
		v.add(path+".shards", fmt.Sprintf("is %d, but without groupBy all events of a window go to one shard", b.Shards), "group by something that many events differ in, or remove it")
	case b.Fold != nil && field != "":
		v.add(path+".groupBy", "groups by "+field+", which is likely to differ in every event", "a row then folds one event; group by something that events share")
	case b.Window != nil && b.Fold == nil && b.GroupBy != "" && b.Shards == 1:
		v.add(path+".groupBy", "has no effect: a window without fold leaves in the order accepted, and the key only picks one of several shards", "add fold, which makes a row of each key, or remove it")
	case b.Window == nil && field != "":
		v.add(path+".groupBy", "groups by "+field+", which is likely to differ in every event", "a batch then holds one item; group by something that events share")
	}
}

var (
	// eventID matches an action of a template that uses the event's own id.
	eventID = regexp.MustCompile(`\{\{([^}]*[^A-Za-z0-9_.])?\.id\b`)

	// uniqueHeaders matches headers that are new with every request.
	uniqueHeaders = regexp.MustCompile(`(?i)(x[-_])?(request|correlation)[-_]id|idempotency[-_]key|webhook[-_](id|timestamp)|\bce[-_](id|time)\b|traceparent|x[-_](amzn[-_])?trace[-_]id`)
)

// uniqueField is the field of a group key that makes nearly every key unique,
// or "".
func uniqueField(template string) string {
	if eventID.MatchString(template) {
		return ".id"
	}
	if strings.Contains(template, ".headers") {
		return uniqueHeaders.FindString(template)
	}
	return ""
}
