package render

import (
	"strings"
	"text/template"
	"text/template/parse"
)

// rootName is what text/template calls the template in its errors.
const rootName = "template"

// Compile compiles a template. The error says what is wrong with it.
func Compile(text string) (*Template, error) {
	root, err := template.New(rootName).Funcs(functions).Parse(text)
	if err != nil {
		return nil, fault(strings.TrimPrefix(err.Error(), "template: "+rootName+":"))
	}
	for _, t := range root.Templates() {
		if t.Name() != rootName {
			return nil, faultf("it defines the template %q; a template has no others beside it", t.Name())
		}
	}
	t := &Template{text: text}
	if root.Tree == nil { // an empty text
		return t, nil
	}
	plan, plain := planOf(root.Root)
	if err := (scope{dotIsEvent: true}).list(root.Root); err != nil {
		return nil, err
	}
	if plain {
		t.plan = plan
	} else {
		t.full = root
	}
	return t, nil
}

// planOf takes a template apart that is no more than literals and fields.
func planOf(list *parse.ListNode) (plan []part, plain bool) {
	plan = make([]part, 0, len(list.Nodes))
	for _, n := range list.Nodes {
		switch n := n.(type) {
		case *parse.TextNode:
			plan = append(plan, part{literal: string(n.Text)})
		case *parse.ActionNode:
			path := plainField(n)
			if path == nil {
				return nil, false
			}
			plan = append(plan, part{path: path})
		default:
			return nil, false
		}
	}
	return plan, true
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
		f.Ident[0] != "headers" && len(f.Ident) == 1:
		return f.Ident
	}
	return nil
}

// checkPath refuses what no event has, in front of all of them.
func checkPath(path []string) error {
	depth := 1 // how many names may follow each other
	switch path[0] {
	case "json":
		return nil
	case "headers":
		depth = 2
	case "id", "source":
	default:
		return noSuchField(path[0])
	}
	if len(path) > depth {
		return faultf(".%s has no fields", strings.Join(path[:depth], "."))
	}
	return nil
}
