package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"sluice/core"
)

// MaxBytes is the most that a configuration file may hold, in bytes.
const MaxBytes = 1 << 20

// tree parses the one YAML document of a file. The root is nil when there is
// none; the findings lack the file's name.
func tree(data []byte) (*yaml.Node, []Finding) {
	if len(data) > MaxBytes {
		return nil, []Finding{at(place{1, 1}, "", "is larger than 1MiB", "a configuration file has at most 1MiB")}
	}
	if p, ok := unreadable(data); ok {
		return nil, []Finding{at(p, "", "is not text", "save the file as UTF-8, without control characters")}
	}
	loader, err := yaml.NewLoader(bytes.NewReader(data))
	if err != nil {
		return nil, []Finding{syntax(err)}
	}
	var first, second yaml.Node
	if err := loader.Load(&first); err != nil && !errors.Is(err, io.EOF) {
		return nil, []Finding{syntax(err)}
	}
	root := content(&first)
	var faults []Finding
	if root == nil {
		faults = append(faults, at(place{1, 1}, "", "is empty", "a configuration has sources, destinations and buffers"))
	}
	switch err := loader.Load(&second); {
	case errors.Is(err, io.EOF):
	case err != nil:
		faults = append(faults, syntax(err))
	default:
		faults = append(faults, at(placeOf(&second), "", "starts a second document", "one file holds one configuration"))
	}
	return root, faults
}

// content is what is in a document, or nil if it is empty.
func content(doc *yaml.Node) *yaml.Node {
	if len(doc.Content) == 0 || doc.Content[0].Tag == nullTag {
		return nil
	}
	return doc.Content[0]
}

// unreadable is the place of the first byte that YAML text cannot have.
func unreadable(data []byte) (place, bool) {
	p := place{1, 1}
	for len(data) > 0 {
		r, n := utf8.DecodeRune(data)
		switch {
		case r == '\n':
			p = place{p.line + 1, 0}
		case r == utf8.RuneError && n == 1, r < ' ' && r != '\t' && r != '\r', r == 0xFFFE, r == 0xFFFF:
			return p, true
		}
		p.column++
		data = data[n:]
	}
	return place{}, false
}

// syntax is the finding of a parser's error.
func syntax(err error) Finding {
	e, ok := errors.AsType[*yaml.LoadError](err)
	if !ok {
		return at(place{1, 1}, "", "is not YAML", "fix the syntax")
	}
	problem := "is not YAML: " + e.Message
	if e.ContextMsg != "" && e.ContextMark.Line > 0 && e.ContextMark != e.Mark {
		problem += fmt.Sprintf(" %s that starts in line %d, column %d", e.ContextMsg, e.ContextMark.Line, e.ContextMark.Column)
	}
	return at(place{max(e.Mark.Line, 1), max(e.Mark.Column, 1)}, "", problem, "fix the syntax here or just before")
}

// at makes a finding.
func at(p place, path, problem, right string) Finding {
	return Finding{Line: p.line, Column: p.column, Fault: core.Fault{Path: path, Problem: problem, Right: right}}
}

// place is where something stands in the file, from 1.
type place struct{ line, column int }

func placeOf(n *yaml.Node) place { return place{max(n.Line, 1), max(n.Column, 1)} }

// The tags that the parser gives to values.
const (
	nullTag  = "!!null"
	boolTag  = "!!bool"
	intTag   = "!!int"
	floatTag = "!!float"
	mergeTag = "!!merge"
	timeTag  = "!!timestamp" // of text that looks like a date
	textTag  = "!!str"
)
