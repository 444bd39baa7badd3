package config

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"sluice/core"
)

// shape is a kind of value: how it is read into a T, and its schema. Reading
// leaves T as it is when the value is wrong.
type shape[T any] struct {
	read   func(d *decoder, path string, n *yaml.Node, into *T)
	schema schema
	show   func(T) any // a default as the file would have it; nil: not shown
}

// field is a named part of a T.
type field[T any] struct {
	name     string
	required bool
	read     func(d *decoder, path string, n *yaml.Node, into *T)
	schema   func(fresh *T) schema
}

// part describes the field of a T that of points to.
func part[T, V any](name, doc string, of func(*T) *V, s shape[V]) field[T] {
	return field[T]{
		name: name,
		read: func(d *decoder, path string, n *yaml.Node, into *T) { s.read(d, path, n, of(into)) },
		schema: func(fresh *T) schema {
			out := s.schema
			out.Description = strings.TrimSpace(doc + " " + out.Description)
			if s.show != nil {
				out.Default = s.show(*of(fresh))
			}
			return out
		},
	}
}

// silent is a shape whose default is not shown: there is none, or zero stands
// for another value.
func silent[T any](s shape[T]) shape[T] {
	s.show = nil
	return s
}

// shown is text whose default is shown.
func shown(s shape[string]) shape[string] {
	s.show = func(v string) any { return v }
	return s
}

// must makes a field one that the schema requires. That it is there is checked
// by package core, with the rest of what a value may be.
func (f field[T]) must() field[T] {
	f.required = true
	return f
}

// object is a mapping with these fields and no others. fresh is a T with the
// defaults.
func object[T any](fresh T, fields ...field[T]) shape[T] { return mapping("", fresh, fields...) }

// mapping is an object. such is what one may look like; "": its first field that
// has a default, with that.
func mapping[T any](such string, fresh T, fields ...field[T]) shape[T] {
	out := schema{Type: "object", AdditionalProperties: false}
	names := make([]string, len(fields))
	byName := make(map[string]field[T], len(fields))
	for i, f := range fields {
		names[i], byName[f.name] = f.name, f
		out.Properties = append(out.Properties, property{f.name, f.schema(&fresh)})
		if f.required {
			out.Required = append(out.Required, f.name)
		}
	}
	if at := slices.IndexFunc(out.Properties, func(p property) bool { return p.schema.Default != nil }); such == "" && at >= 0 {
		such = fmt.Sprintf("{%s: %v}", out.Properties[at].name, out.Properties[at].schema.Default)
	}
	right := "must be a mapping of fields"
	if such != "" {
		right += ", such as " + such
	}
	read := func(d *decoder, path string, n *yaml.Node, into *T) {
		entries, _ := d.entries(path, n, right)
		for _, e := range entries {
			f, ok := byName[e.name]
			switch {
			case ok:
				f.read(d, e.path, e.value, target(e, into))
			case !e.again: // else it has been said
				d.fault(e.key, e.path, "is not a known field", suggest(e.name, names))
			}
		}
	}
	return shape[T]{read: read, schema: out}
}

// optional is a mapping that gives every default where it is there.
func optional[T any](fresh func() T, fields ...field[T]) shape[*T] {
	all := object(fresh(), fields...)
	return shape[*T]{schema: all.schema, read: func(d *decoder, path string, n *yaml.Node, into **T) {
		read := fresh()
		all.read(d, path, n, &read)
		*into = &read
	}}
}

// target is where an entry is read to: a copy, for its faults alone, if its
// name was there before.
func target[T any](e entry, into *T) *T {
	if !e.again {
		return into
	}
	copied := *into
	return &copied
}

// named is a mapping of names to things, in the file's order.
func named[T any](fresh func(name string) T, thing shape[T]) shape[[]T] {
	out := schema{
		Type: "object", MinProperties: 1,
		PropertyNames:        &schema{Pattern: core.NamePattern},
		AdditionalProperties: &thing.schema,
	}
	read := func(d *decoder, path string, n *yaml.Node, into *[]T) {
		entries, ok := d.entries(path, n, "must be a mapping of names")
		if ok && len(entries) == 0 {
			d.wrong(n, path, "must have at least one name")
		}
		for _, e := range entries {
			item := fresh(e.name)
			thing.read(d, e.path, e.value, &item)
			if !e.again {
				*into = append(*into, item)
			}
		}
	}
	return shape[[]T]{read: read, schema: out}
}

// list is a sequence of at most so many elements (0: no limit) of one shape.
func list[T any](element shape[T], example string, limit int) shape[[]T] {
	out := schema{Type: "array", Items: &element.schema, MaxItems: limit}
	read := func(d *decoder, path string, n *yaml.Node, into *[]T) {
		if !d.plain(path, n) {
			return
		}
		if n.Kind != yaml.SequenceNode {
			d.wrong(n, path, "must be a list, such as "+example)
			return
		}
		*into = make([]T, len(n.Content))
		for i, v := range n.Content {
			at := core.ElementPath(path, i)
			d.mark(at, v, v)
			element.read(d, at, v, &(*into)[i])
		}
	}
	return shape[[]T]{read: read, schema: out}
}

// some is a list that is not empty, to which package core holds it.
func some[T any](s shape[[]T]) shape[[]T] {
	s.schema.MinItems = 1
	return s
}

// suggest says which field was probably meant, or which there are.
func suggest(name string, known []string) string {
	switch len(known) {
	case 0:
		return "there are no fields here"
	case 1:
		return "the only field is " + known[0]
	}
	if best := nearest(name, known); best != "" {
		return fmt.Sprintf("did you mean %s?", best)
	}
	return "the fields are " + strings.Join(known, ", ")
}
