package objectkey

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/template/parse"
	"time"
	"unicode/utf8"
)

// Default is the template of a destination that gives none.
const Default = "{{ .buffer }}/{{ .date }}/{{ .id }}{{ .suffix }}"

const (
	// MaxBytes is how long a key may be, in bytes.
	MaxBytes = 1024
	// maxValue is how long a field that comes of events may be.
	maxValue = 200
)

// Batch is what a key may say of a batch.
type Batch struct {
	ID, Buffer, Group, Reason string
	At                        time.Time // when its oldest item arrived, or its window began
	Suffix                    string
}

// fields are what a template may use.
var fields = map[string]func(*Batch) string{
	"id":     func(b *Batch) string { return escape(b.ID) },
	"buffer": func(b *Batch) string { return escape(b.Buffer) },
	"group":  func(b *Batch) string { return escape(b.Group) },
	"reason": func(b *Batch) string { return escape(b.Reason) },
	"suffix": func(b *Batch) string { return b.Suffix },
	"date":   at(time.DateOnly),
	"year":   at("2006"), "month": at("01"), "day": at("02"), "hour": at("15"), "minute": at("04"),
}

// names are the fields in the order in which they are told.
var names = []string{"id", "buffer", "group", "reason", "date", "year", "month", "day", "hour", "minute", "suffix"}

func at(layout string) func(*Batch) string {
	return func(b *Batch) string { return b.At.UTC().Format(layout) }
}

// Template makes keys. It is safe for concurrent use.
type Template struct{ parts []part }

// part is a literal, or a field.
type part struct {
	literal string
	field   func(*Batch) string
}

// Compile reads a template. Its error says what is wrong with it, in words
// that follow "is not a template of keys: ".
func Compile(text string) (*Template, error) {
	trees, err := parse.Parse("key", text, "", "")
	if err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "template: "))
	}
	t, tree := &Template{}, trees["key"]
	if len(trees) != 1 || tree == nil {
		return nil, errors.New("it is empty, or defines others")
	}
	unique := false
	for _, n := range tree.Root.Nodes {
		if text, ok := n.(*parse.TextNode); ok {
			t.parts = append(t.parts, part{literal: string(text.Text)})
			continue
		}
		name := fieldOf(n)
		if fields[name] == nil {
			return nil, fmt.Errorf("%s is none of the fields .%s", n, strings.Join(names, ", ."))
		}
		unique = unique || name == "id"
		t.parts = append(t.parts, part{field: fields[name]})
	}
	if !unique {
		return nil, errors.New("it lacks {{ .id }}, without which one batch replaces another")
	}
	return t, t.check()
}

// fieldOf is the field that a node prints, or "" if it does anything else.
func fieldOf(n parse.Node) string {
	a, ok := n.(*parse.ActionNode)
	if !ok || len(a.Pipe.Decl) > 0 || len(a.Pipe.Cmds) != 1 || len(a.Pipe.Cmds[0].Args) != 1 {
		return ""
	}
	if f, ok := a.Pipe.Cmds[0].Args[0].(*parse.FieldNode); ok && len(f.Ident) == 1 {
		return f.Ident[0]
	}
	return ""
}

// check refuses keys that stores, or those who read them, have trouble with.
func (t *Template) check() error {
	key := t.Key(&Batch{ID: "x", Buffer: "x", Group: "x", Reason: "x", Suffix: "x"})
	if !utf8.ValidString(key) || strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r == 0x7F }) {
		return errors.New("it has a control character, or is not UTF-8")
	}
	for segment := range strings.SplitSeq(key, "/") {
		if segment == "" || segment == "." || segment == ".." {
			return fmt.Errorf("between its slashes stands %q", segment)
		}
	}
	if n := len(t.Key(longest())); n > MaxBytes {
		return fmt.Errorf("keys by it may have %d bytes, and a store takes %d", n, MaxBytes)
	}
	return nil
}

// longest is a batch none of whose fields is shorter than another's.
func longest() *Batch {
	long := strings.Repeat("x", maxValue)
	return &Batch{ID: long, Buffer: long[:63], Group: long, Reason: "window", Suffix: ".ndjson.zst"}
}

// Key is the key of a batch, the same for equal batches, of at most [MaxBytes].
func (t *Template) Key(b *Batch) string {
	var key strings.Builder
	for _, p := range t.parts {
		if p.field != nil {
			key.WriteString(p.field(b))
		} else {
			key.WriteString(p.literal)
		}
	}
	return key.String()
}

// escape makes a value safe for a key. Different values stay different.
func escape(s string) string {
	if s == "" {
		return "!"
	}
	dots := strings.Trim(s, ".") == ""
	var out strings.Builder
	for _, c := range []byte(s) {
		if plain(c) && !(dots && c == '.') {
			out.WriteByte(c)
		} else {
			fmt.Fprintf(&out, "!%02X", c)
		}
	}
	if out.Len() <= maxValue {
		return out.String()
	}
	sum := sha256.Sum256([]byte(s))
	end := "!" + hex.EncodeToString(sum[:16])
	return out.String()[:maxValue-len(end)] + end
}

func plain(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || slices.Contains([]byte("-_.*'()"), c)
}
