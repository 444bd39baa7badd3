package config

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v4"

	"sluice/core"
)

// decoder collects what is found while a tree is read.
type decoder struct {
	faults []Finding
	places map[string]place // of every path in the file
	failed map[string]bool  // the paths at which there is a fault
}

// fault reports that the value at path is wrong, at the node.
func (d *decoder) fault(n *yaml.Node, path, problem, right string) {
	p := placeOf(n)
	if known, ok := d.places[path]; ok && (n.Kind == yaml.MappingNode || n.Kind == yaml.SequenceNode) {
		p = known // that of its key; its own first line may come later
	}
	d.failed[path] = true
	d.faults = append(d.faults, at(p, path, problem, right))
}

// wrong reports a value of the wrong type, without showing it.
func (d *decoder) wrong(n *yaml.Node, path, right string) {
	d.fault(n, path, "is "+kind(n), right)
}

// check validates what was read, also by checks of the caller's. Faults that
// only follow from a value which could not be read are left out.
func (d *decoder) check(c *core.Config, more []Check) {
	faults := c.Validate()
	for _, check := range more {
		faults = append(faults, check(c)...)
	}
	for _, f := range faults {
		if !d.blamed(f.Path) {
			d.faults = append(d.faults, at(find(d.places, f.Path), f.Path, f.Problem, f.Right))
		}
	}
}

// blamed reports whether a fault at path may come of one that is known.
func (d *decoder) blamed(path string) bool {
	if d.failed["sources"] && strings.Contains(path, ".from[") ||
		d.failed["destinations"] && (strings.HasSuffix(path, ".to") || strings.Contains(path, ".fallbacks[")) {
		return true
	}
	if strings.HasSuffix(path, ".shadow") && d.unread() {
		return true
	}
	for p := path; p != ""; p = parent(p) {
		if d.failed[p] {
			return true
		}
	}
	return d.failed[""]
}

// unread reports whether it is not known of every buffer what it reads, and
// whether it is a shadow.
func (d *decoder) unread() bool {
	for p := range d.failed {
		if strings.HasPrefix(p, "buffers") && (strings.HasSuffix(p, ".from") || strings.HasSuffix(p, ".shadow") || strings.Count(p, ".") < 2) {
			return true
		}
	}
	return false
}

// find is the place of a path, or of what should have it.
func find(places map[string]place, path string) place {
	for p := path; p != ""; p = parent(p) {
		if at, ok := places[p]; ok {
			return at
		}
	}
	return place{1, 1}
}

// parent is the path without its last part.
func parent(path string) string {
	if strings.HasSuffix(path, "]") {
		return path[:max(strings.LastIndexByte(path, '['), 0)]
	}
	return path[:max(strings.LastIndexByte(path, '.'), 0)]
}

// entry is a field of a mapping.
type entry struct {
	name  string
	path  string
	key   *yaml.Node
	value *yaml.Node
	again bool // the name was there before
}

// entries takes a mapping apart. What is no mapping is a fault.
func (d *decoder) entries(path string, n *yaml.Node, right string) ([]entry, bool) {
	if !d.plain(path, n) {
		return nil, false
	}
	if n.Kind != yaml.MappingNode {
		d.wrong(n, path, right)
		return nil, false
	}
	seen := make(map[string]int, len(n.Content)/2)
	entries := make([]entry, 0, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		e := entry{key: n.Content[i], value: n.Content[i+1]}
		if !plainKey(e.key) {
			d.faults = append(d.faults, at(placeOf(e.key), path, "has a key that is not a plain name", "write every field as name: value"))
			continue
		}
		e.name, e.path = e.key.Value, core.FieldPath(path, e.key.Value)
		var first int
		if first, e.again = seen[e.name]; e.again {
			d.faults = append(d.faults, at(placeOf(e.key), e.path, fmt.Sprintf("is there twice, first in line %d", first), "keep one of the two"))
		} else {
			seen[e.name] = e.key.Line
			d.mark(e.path, e.key, e.value)
		}
		entries = append(entries, e)
	}
	return entries, true
}

// mark remembers where a field is: its value, or its key if the value is a
// collection or is not there.
func (d *decoder) mark(path string, key, value *yaml.Node) {
	n := key
	if value.Kind == yaml.ScalarNode && !(value.Tag == nullTag && value.Value == "") {
		n = value
	}
	if _, ok := d.places[path]; !ok {
		d.places[path] = placeOf(n)
	}
}

// plain reports whether a node can be read. An alias cannot; an anchor or a
// tag is a fault, but what has one is read nevertheless.
func (d *decoder) plain(path string, n *yaml.Node) bool {
	const right = "write the value out; anchors, aliases and tags are not understood here"
	switch {
	case n.Kind == yaml.AliasNode:
		d.fault(n, path, "is an alias", right)
		return false
	case n.Anchor != "":
		d.faults = append(d.faults, at(placeOf(n), path, "has an anchor", right))
	case n.Style&yaml.TaggedStyle != 0:
		d.faults = append(d.faults, at(placeOf(n), path, "has a tag", right))
	}
	return true
}

// plainKey reports whether a key is no more than a word or a number.
func plainKey(key *yaml.Node) bool {
	return key.Kind == yaml.ScalarNode && key.Anchor == "" && key.Style&yaml.TaggedStyle == 0 &&
		key.Tag != mergeTag && key.Tag != nullTag
}

// textOf is the text of a string, in whatever style.
func textOf(n *yaml.Node) (string, bool) {
	return n.Value, n.Kind == yaml.ScalarNode && (n.Tag == textTag || n.Tag == timeTag || n.Tag == mergeTag)
}

// kind says what a node is, without saying what is in it.
func kind(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Tag == intTag, n.Tag == floatTag:
		return "a number"
	case n.Tag == boolTag:
		return "true or false"
	case n.Tag == nullTag:
		return "empty"
	}
	return "text"
}
