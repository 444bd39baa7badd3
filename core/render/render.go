// Package render evaluates the templates of a configuration, such as
// "{{ .json.customer_id }}", on events.
//
// Templates are those of text/template over four fields: .json (the payload;
// null when it is no JSON), .headers, .id and .source. A missing field or a
// null renders as the empty string, numbers as they are written, objects and
// arrays as compact JSON.
//
// Most templates are no more than literals and plain fields; these are looked
// up in the payload directly, a hundred times faster than text/template and
// with the same results, which a property test holds.
package render

import (
	"fmt"
	"strings"
	"text/template"
	"text/template/parse"
)

// Input is what a template sees of an event.
type Input interface {
	ID() string
	Source() string
	Body() []byte
	JSON() bool // the body is known to be one JSON value; false: it is to be seen
	Header(name string) string
	Headers() map[string]string
}

// Template is a compiled template. It is safe for concurrent use.
type Template struct {
	text  string
	parts []part             // when the template is plain
	slow  *template.Template // otherwise
}

// part is a literal, or a field when path is set.
type part struct {
	literal string
	path    []string
}

// Compile compiles a template. The error says what is wrong with it.
func Compile(text string) (*Template, error) {
	root, err := template.New("template").Funcs(template.FuncMap{outName: out}).Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s", strings.TrimPrefix(err.Error(), "template: template:"))
	}
	t := &Template{text: text}
	if root.Tree == nil { // an empty text
		return t, nil
	}
	if err := checkFields(root.Root); err != nil {
		return nil, err
	}
	var plain bool
	if t.parts, plain = plainParts(root.Root); plain {
		return t, nil
	}
	wrapOutput(root.Root)
	t.parts, t.slow = nil, root
	return t, nil
}

// String is the template's text.
func (t *Template) String() string { return t.text }

// Execute renders the template on an event.
func (t *Template) Execute(in Input) (string, error) {
	if t.slow != nil {
		return t.execute(in)
	}
	if len(t.parts) == 1 {
		return t.parts[0].render(in)
	}
	var b strings.Builder
	for i := range t.parts {
		s, err := t.parts[i].render(in)
		if err != nil {
			return "", err
		}
		b.WriteString(s)
	}
	return b.String(), nil
}

func (t *Template) execute(in Input) (string, error) {
	var b strings.Builder
	data := map[string]any{
		"id": in.ID(), "source": in.Source(), "headers": in.Headers(), "json": decode(in.Body()),
	}
	if err := t.slow.Execute(&b, data); err != nil {
		return "", fmt.Errorf("%s", reason(err))
	}
	return b.String(), nil
}

// reason is the telling part of a text/template error.
func reason(err error) string {
	s := err.Error()
	if i := strings.LastIndex(s, ">: "); i >= 0 {
		s = s[i+3:]
	}
	return s
}

func (p *part) render(in Input) (string, error) {
	if p.path == nil {
		return p.literal, nil
	}
	switch p.path[0] {
	case "id":
		return in.ID(), nil
	case "source":
		return in.Source(), nil
	case "headers":
		return in.Header(p.path[1]), nil
	}
	return lookup(in, p.path[1:])
}

// plainParts takes a template apart that is no more than literals and fields.
func plainParts(list *parse.ListNode) ([]part, bool) {
	parts := make([]part, 0, len(list.Nodes))
	for _, n := range list.Nodes {
		switch n := n.(type) {
		case *parse.TextNode:
			parts = append(parts, part{literal: string(n.Text)})
		case *parse.ActionNode:
			path := plainField(n)
			if path == nil {
				return nil, false
			}
			parts = append(parts, part{path: path})
		default:
			return nil, false
		}
	}
	return parts, true
}

// plainField is the field that an action prints, or nil if it does more.
func plainField(n *parse.ActionNode) []string {
	if len(n.Pipe.Decl) > 0 || len(n.Pipe.Cmds) != 1 || len(n.Pipe.Cmds[0].Args) != 1 {
		return nil
	}
	f, ok := n.Pipe.Cmds[0].Args[0].(*parse.FieldNode)
	if !ok {
		return nil
	}
	switch {
	case f.Ident[0] == "json",
		f.Ident[0] == "headers" && len(f.Ident) == 2,
		len(f.Ident) == 1 && f.Ident[0] != "headers":
		return f.Ident
	}
	return nil
}

// checkFields refuses fields that no event has, where the dot is the event.
func checkFields(list *parse.ListNode) error {
	for _, n := range list.Nodes {
		action, ok := n.(*parse.ActionNode)
		if !ok {
			continue
		}
		for _, cmd := range action.Pipe.Cmds {
			for _, arg := range cmd.Args {
				f, ok := arg.(*parse.FieldNode)
				if ok && !known(f.Ident[0]) {
					return fmt.Errorf("an event has no field .%s; it has .json, .headers, .id and .source", f.Ident[0])
				}
			}
		}
	}
	return nil
}

func known(field string) bool {
	return field == "json" || field == "headers" || field == "id" || field == "source"
}
