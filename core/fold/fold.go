package fold

import (
	"fmt"
	"slices"

	"sluice/core/jsonbody"
	"sluice/core/render"
)

// maxDepth is how deep a value may be nested that a row keeps.
const maxDepth = 1_000

// Fold is a compiled list of columns. It is safe for concurrent use.
type Fold struct {
	columns []column
	reads   []read
}

type column struct {
	prefix string // in front of its value in a row: ,"name":
	cell   func() cell
	read   int // the place of what it reads in reads; -1: the event itself
}

// read is a path that columns read, looked up once for all of them. The names
// are of the first column that needs it: at all, as a number, and to keep.
type read struct {
	path                  *render.Path
	column, number, keeps string
}

// Compile compiles columns, in their order. The error names the first column
// that is wrong, and says what would be right.
func Compile(columns []Column) (*Fold, error) {
	if len(columns) > MaxColumns {
		return nil, fmt.Errorf("a fold has at most %d columns; these are %d", MaxColumns, len(columns))
	}
	f := &Fold{}
	for i, c := range columns {
		e, err := compile(c)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(columns[:i], func(other Column) bool { return other.Name == c.Name }) {
			return nil, fmt.Errorf("column %q: there are two of that name", c.Name)
		}
		f.columns = append(f.columns, column{prefix: `,"` + c.Name + `":`, cell: e.cell, read: f.readOf(e, c.Name)})
	}
	return f, nil
}

// readOf is the place of what e reads, added if it is new.
func (f *Fold) readOf(e expr, name string) int {
	if e.path == nil {
		return -1
	}
	at := slices.IndexFunc(f.reads, func(r read) bool { return r.path.String() == e.path.String() })
	if at < 0 {
		at = len(f.reads)
		f.reads = append(f.reads, read{path: e.path, column: name})
	}
	r := &f.reads[at]
	if e.numbers && r.number == "" {
		r.number = name
	}
	if e.keeps && r.keeps == "" {
		r.keeps = name
	}
	return at
}

// Check says whether every value that the fold reads of an event can be folded.
// The error names the column, and is for whoever sent the event.
func (f *Fold) Check(in render.Input) error {
	r := render.Read(in)
	for i := range f.reads {
		if _, err := f.reads[i].of(&r); err != nil {
			return err
		}
	}
	return nil
}

// value is what a path leads to in an event.
type value struct {
	there  bool
	raw    []byte // as JSON
	text   string // or as a text
	number number // when a column asks for one
	is     bool   // it is that number
}

// of is what the event has of it. With an error it is what can be folded all
// the same.
func (r *read) of(event *render.Reader) (v value, err error) {
	v.raw, v.text, err = event.Find(r.path)
	v.there = v.raw != nil || v.text != ""
	if err != nil {
		return value{}, fmt.Errorf("column %s: %s: %w", r.column, r.path, err)
	}
	if v.raw == nil {
		return v, nil
	}
	kind := jsonbody.KindOf(v.raw)
	if r.number != "" {
		if kind != jsonbody.Number {
			err = fmt.Errorf("column %s: %s is %s; it must be a number, or absent", r.number, r.path, render.Named(kind))
		} else if v.number, err = parseNumber(v.raw); err != nil {
			err = fmt.Errorf("column %s: %s %w", r.number, r.path, err)
		}
		v.is = err == nil
	}
	if r.keeps != "" && kind >= jsonbody.Array && jsonbody.Depth(v.raw) > maxDepth {
		v.raw = nil // a count counts it still
		err = fmt.Errorf("column %s: %s is nested more than %d deep", r.keeps, r.path, maxDepth)
	}
	return v, err
}
