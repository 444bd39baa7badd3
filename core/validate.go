package core

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"sluice/core/render"
)

// Validate reports everything that is wrong with a configuration: its references
// to secrets and its names, then each part in order. A configuration without
// faults can be run.
//
// Faults quote offending values, but never what may be a secret.
func (c *Config) Validate() []Fault {
	var v validation
	v.secrets(c)
	v.retention(c)
	v.sources = v.names("sources", len(c.Sources), func(i int) string { return c.Sources[i].Name })
	v.destinations = v.names("destinations", len(c.Destinations), func(i int) string { return c.Destinations[i].Name })
	v.names("buffers", len(c.Buffers), func(i int) string { return c.Buffers[i].Name })
	if len(c.Sources) == 0 {
		v.add("sources", "is missing", "name at least one source, such as orders: {type: http}")
	}
	for i := range c.Sources {
		v.source(&c.Sources[i])
	}
	for i := range c.Destinations {
		v.destination(&c.Destinations[i])
	}
	for i := range c.Buffers {
		v.buffer(&c.Buffers[i])
	}
	return v.faults
}

// retention checks that what waits for a retry outlives it: its last attempt
// keeps it for half of the retention at least.
func (v *validation) retention(c *Config) {
	const path = "store.retention"
	v.number(path, int64(c.Store.Retention), RetentionRange)
	for i := range c.Destinations {
		d := &c.Destinations[i]
		if hold := d.Retry.Max; RetryMaxRange.Has(int64(hold)) && RetentionRange.Has(int64(c.Store.Retention)) && c.Store.Retention < 2*hold {
			v.add(path, "is "+formatDuration(c.Store.Retention)+", less than twice the retry.max of destination "+d.Name+", "+formatDuration(hold),
				"must be at least "+formatDuration(2*hold)+", so that nothing expires between two attempts")
		}
	}
}

// FieldPath is the path of a field or a named part below another path. A name
// that would not read well there is quoted, and cut after 64 bytes.
func FieldPath(parent, name string) string {
	if !plainName.MatchString(name) {
		name = shown(name)
	}
	if parent == "" {
		return name
	}
	return parent + "." + name
}

// ElementPath is the path of the i-th element of a list, from 0.
func ElementPath(parent string, i int) string { return fmt.Sprintf("%s[%d]", parent, i) }

// NamePattern is what the names of sources, destinations and buffers match.
const NamePattern = `^[a-z0-9-]{1,63}$`

var (
	validName = regexp.MustCompile(NamePattern)
	plainName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
)

// validation collects faults.
type validation struct {
	faults                []Fault
	sources, destinations names // those there are
}

func (v *validation) add(path, problem, right string) {
	v.faults = append(v.faults, Fault{Path: path, Problem: problem, Right: right})
}

// number checks a number against its range.
func (v *validation) number(path string, n int64, r Range) {
	if !r.Has(n) {
		v.add(path, "is "+r.Unit.Format(n), "must be "+r.String())
	}
}

// names are the names of one section, in order.
type names struct {
	list []string
	has  map[string]bool
}

// names checks the names of one section and returns them.
func (v *validation) names(section string, n int, name func(int) string) names {
	known := names{has: make(map[string]bool, n)}
	for i := range n {
		s, path := name(i), FieldPath(section, name(i))
		if !validName.MatchString(s) {
			v.add(path, "is not a name", "a name has 1 to 63 of a-z, 0-9 and -")
		}
		if known.has[s] {
			v.add(path, "is there twice", "give each a name of its own")
			continue
		}
		known.has[s] = true
		known.list = append(known.list, s)
	}
	return known
}

// oneOf checks a choice between a few words.
func (v *validation) oneOf(path, value string, known []string) {
	if !slices.Contains(known, value) {
		v.add(path, "is "+quoted(value), "must be "+alternatives(known))
	}
}

func (v *validation) source(s *Source) {
	path := FieldPath("sources", s.Name)
	v.oneOf(path+".type", s.Type, SourceTypes())
	if a := s.Auth; a != nil && !a.Open {
		v.auth(path+".auth", a)
	}
	v.number(path+".maxEventBytes", s.MaxEventBytes, EventBytesRange)
}

// auth checks that somebody may send: an empty list would lock everyone out.
func (v *validation) auth(path string, a *Auth) {
	const right = "list at least one reference, such as env:NAME"
	switch {
	case a.Bearer == nil && a.Webhook == nil:
		v.add(path, "lets nobody in", "must be none, {bearer: [env:NAME]} or {webhook: {secrets: [env:NAME]}}")
	case a.Bearer != nil && len(a.Bearer) == 0:
		v.add(path+".bearer", "is empty", right)
	case a.Webhook != nil && len(a.Webhook) == 0:
		v.add(path+".webhook.secrets", "is empty", right)
	}
}

func (v *validation) buffer(b *Buffer) {
	path := FieldPath("buffers", b.Name)
	v.from(path+".from", b.From)
	if b.To == "" {
		v.add(path+".to", "is missing", "name a destination: "+alternatives(v.destinations.list))
	} else if !v.destinations.has[b.To] {
		v.add(path+".to", "names the destination "+shown(b.To)+", which does not exist", "must be "+alternatives(v.destinations.list))
	}
	if _, err := render.Compile(b.GroupBy); err != nil {
		v.add(path+".groupBy", "is not a template: "+err.Error(), `must be like "{{ .json.customer_id }}"`)
	}
	v.number(path+".batch.maxItems", int64(b.Batch.MaxItems), BatchItemsRange)
	v.number(path+".batch.maxBytes", b.Batch.MaxBytes, BatchBytesRange)
	v.number(path+".batch.idleTimeoutMs", int64(b.Batch.IdleTimeout), IdleTimeoutRange)
	v.number(path+".batch.maxWaitFromFirstMs", int64(b.Batch.MaxWait), MaxWaitRange)
	v.overflow(path+".overflow", b)
	v.number(path+".concurrency", int64(b.Concurrency), BatchesRange)
	v.number(path+".size", b.Size, SizeRange)
	v.number(path+".shards", int64(b.Shards), ShardsRange)
	if b.Ordered && b.Shards > 1 {
		v.add(path+".shards", fmt.Sprintf("is %d, which breaks the order that ordering asks for", b.Shards), "must be 1, or leave ordering out")
	}
}

func (v *validation) from(path string, from []string) {
	if len(from) == 0 {
		v.add(path, "is missing", "list at least one source: "+alternatives(v.sources.list))
	}
	seen := make(map[string]bool, len(from))
	for i, name := range from {
		switch {
		case !v.sources.has[name]:
			v.add(ElementPath(path, i), "names the source "+shown(name)+", which does not exist", "must be "+alternatives(v.sources.list))
		case seen[name]:
			v.add(ElementPath(path, i), "names "+shown(name)+" again", "list each source once")
		}
		seen[name] = true
	}
}

func (v *validation) overflow(path string, b *Buffer) {
	v.number(path+".maxBytes", b.Overflow.MaxBytes, OverflowBytesRange)
	v.number(path+".maxItems", int64(b.Overflow.MaxItems), OverflowItemsRange)
	inRange := OverflowBytesRange.Has(b.Overflow.MaxBytes) && BatchBytesRange.Has(b.Batch.MaxBytes)
	if inRange && b.Overflow.MaxBytes < b.Batch.MaxBytes {
		v.add(path+".maxBytes",
			"is "+formatBytes(b.Overflow.MaxBytes)+", below batch.maxBytes, "+formatBytes(b.Batch.MaxBytes),
			"must be at least batch.maxBytes, so that a due batch fits")
	}
}

// quoted shows an offending value, unless it looks like a secret.
func quoted(s string) string {
	if secretLooking(s) {
		return "something that looks like a secret"
	}
	return shown(s)
}

// shown shows an offending value that is no secret.
func shown(s string) string { return fmt.Sprintf("%q", Cut(s, 64)) }

// alternatives lists what may be chosen, at most ten.
func alternatives(known []string) string {
	const most = 10
	switch n := len(known); {
	case n == 0:
		return "one that exists (there is none yet)"
	case n == 1:
		return known[0]
	case n <= most:
		return strings.Join(known[:n-1], ", ") + " or " + known[n-1]
	default:
		return strings.Join(known[:most], ", ") + fmt.Sprintf(" or one of %d more", n-most)
	}
}
