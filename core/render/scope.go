package render

import (
	"strconv"
	"strings"
	"text/template/parse"
)

// scope readies a parsed template, in place. Every chain of fields becomes a
// call of get, which knows what is missing from what cannot be there; every
// pipeline that prints ends in a call of out. Fields that no event has are
// refused wherever a chain is known to start at the event.
type scope struct {
	dotIsEvent bool // not so within range, and within most withs; $ always is
}

func (s scope) list(list *parse.ListNode) error {
	if list == nil {
		return nil
	}
	for _, n := range list.Nodes {
		if err := s.node(n); err != nil {
			return err
		}
	}
	return nil
}

func (s scope) node(n parse.Node) error {
	switch n := n.(type) {
	case *parse.ActionNode:
		return s.action(n)
	case *parse.IfNode:
		return s.branch(&n.BranchNode, s)
	case *parse.WithNode:
		return s.branch(&n.BranchNode, scope{dotIsEvent: s.isEvent(n.Pipe)})
	case *parse.RangeNode:
		return s.branch(&n.BranchNode, scope{})
	case *parse.TemplateNode:
		return faultf("it calls the template %q; a template has no others beside it", n.Name)
	}
	return nil
}

func (s scope) branch(n *parse.BranchNode, inner scope) error {
	if err := s.pipe(n.Pipe); err != nil {
		return err
	}
	if err := inner.list(n.List); err != nil {
		return err
	}
	return s.list(n.ElseList)
}

func (s scope) action(n *parse.ActionNode) error {
	prints := len(n.Pipe.Decl) == 0
	if prints && s.isEvent(n.Pipe) {
		return errWholeEvent
	}
	if err := s.pipe(n.Pipe); err != nil {
		return err
	}
	if prints {
		n.Pipe.Cmds = append(n.Pipe.Cmds, command(n.Pos, identifier(n.Pos, outName)))
	}
	return nil
}

func (s scope) pipe(p *parse.PipeNode) error {
	for _, c := range p.Cmds {
		if f, ok := c.Args[0].(*parse.IdentifierNode); ok && f.Ident == "printf" && !literalFormat(c) {
			return fault("printf needs a format that is a literal in front of its arguments")
		}
		for i, arg := range c.Args {
			var err error
			if c.Args[i], err = s.arg(arg); err != nil {
				return err
			}
		}
	}
	return nil
}

// literalFormat reports whether no event gets to choose the widths of a printf.
func literalFormat(c *parse.CommandNode) bool {
	return len(c.Args) > 1 && c.Args[1].Type() == parse.NodeString
}

func (s scope) arg(n parse.Node) (parse.Node, error) {
	switch n := n.(type) {
	case *parse.PipeNode:
		return n, s.pipe(n)
	case *parse.FieldNode:
		dot := &parse.DotNode{NodeType: parse.NodeDot, Pos: n.Pos}
		return s.chain(dot, n.Ident)
	case *parse.VariableNode:
		if len(n.Ident) == 1 {
			return n, nil
		}
		v := &parse.VariableNode{NodeType: parse.NodeVariable, Pos: n.Pos, Ident: n.Ident[:1]}
		return s.chain(v, n.Ident[1:])
	case *parse.ChainNode:
		return s.chain(n.Node, n.Field)
	}
	return n, nil
}

// chain is the call of get for a chain of fields that starts at n.
func (s scope) chain(n parse.Node, path []string) (parse.Node, error) {
	if s.isEvent(n) {
		if err := checkPath(path); err != nil {
			return nil, err
		}
	}
	start, err := s.arg(n)
	if err != nil {
		return nil, err
	}
	at, name := n.Position(), strings.Join(path, ".")
	return &parse.PipeNode{NodeType: parse.NodePipe, Pos: at, Cmds: []*parse.CommandNode{command(at,
		identifier(at, getName), start,
		&parse.StringNode{NodeType: parse.NodeString, Pos: at, Quoted: strconv.Quote(name), Text: name},
	)}}, nil
}

// isEvent reports whether n is the event itself.
func (s scope) isEvent(n parse.Node) bool {
	switch n := n.(type) {
	case *parse.DotNode:
		return s.dotIsEvent
	case *parse.VariableNode:
		return len(n.Ident) == 1 && n.Ident[0] == "$"
	case *parse.PipeNode:
		return len(n.Cmds) == 1 && len(n.Cmds[0].Args) == 1 && s.isEvent(n.Cmds[0].Args[0])
	}
	return false
}

func command(at parse.Pos, args ...parse.Node) *parse.CommandNode {
	return &parse.CommandNode{NodeType: parse.NodeCommand, Pos: at, Args: args}
}

func identifier(at parse.Pos, name string) parse.Node {
	return parse.NewIdentifier(name).SetPos(at)
}
