package core

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"
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
	v.queues(c)
	for i := range c.Destinations {
		v.destination(&c.Destinations[i])
	}
	for i := range c.Buffers {
		v.buffer(c, &c.Buffers[i])
	}
	v.shadows(c)
	return v.faults
}

// retention checks that nothing is forgotten that still counts: what waits for
// a retry, a flush or its time keeps half of the retention at least, and a time window is
// remembered for as long again as it takes events.
func (v *validation) retention(c *Config) {
	const path = "store.retention"
	v.number(path, int64(c.Store.Retention), RetentionRange)
	twice := func(hold time.Duration, r Range, of, so string) {
		if r.Has(int64(hold)) && RetentionRange.Has(int64(c.Store.Retention)) && c.Store.Retention < 2*hold {
			v.add(path, "is "+formatDuration(c.Store.Retention)+", less than twice "+of+", "+formatDuration(hold),
				"must be at least "+formatDuration(2*hold)+", so that "+so)
		}
	}
	for i := range c.Destinations {
		d := &c.Destinations[i]
		twice(d.Retry.Max, RetryMaxRange, "the retry.max of destination "+d.Name, "nothing expires between two attempts")
	}
	for i := range c.Buffers {
		b := &c.Buffers[i]
		twice(b.FlushEvery, FlushEveryRange, "the flush.every of buffer "+b.Name, "nothing expires between two flushes")
		twice(b.DeliverAfter, DelayRange, "the deliverAfter of buffer "+b.Name, "nothing expires while it is held")
		if w := b.Window; w != nil && w.inRange() {
			twice(w.Every+w.Grace+w.MaxAhead, Range{Max: math.MaxInt64}, "the every, grace and maxAhead of the window of buffer "+b.Name,
				"no window is forgotten before its last events have come")
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
	if s.Type == TypeSQS {
		v.sqsSource(path, s)
	} else {
		v.httpSource(path, s)
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
