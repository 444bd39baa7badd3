package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/template/parse"
	"unsafe"

	"github.com/tidwall/gjson"

	"sluice/core/jsonbody"
)

// outName is the function that prints what an action's pipeline comes to.
const outName = "_out"

// out prints a value as templates print it: nothing for null, JSON for what
// has parts, and everything else as it is written.
func out(v any) (string, error) {
	switch v := v.(type) {
	case nil, null:
		return "", nil
	case string:
		return v, nil
	case map[string]any, []any, map[string]string:
		return compact(v)
	}
	return fmt.Sprint(v), nil
}

func compact(v any) (string, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return "", err
	}
	return string(bytes.TrimRight(b.Bytes(), "\n")), nil
}

// null is JSON's null to text/template: false, without fields, and not an
// error to look into, as a missing value is not.
type null map[string]any

// decode is the payload as text/template walks it: nil when it is no JSON.
func decode(body []byte) any {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return nil
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil
	}
	return withNulls(v)
}

func withNulls(v any) any {
	switch v := v.(type) {
	case nil:
		return null(nil)
	case map[string]any:
		for k, m := range v {
			v[k] = withNulls(m)
		}
	case []any:
		for i, m := range v {
			v[i] = withNulls(m)
		}
	}
	return v
}

// lookup renders the field of a payload that a path leads to, one name at a
// time as text/template does: a missing or null parent renders as nothing, any
// other that has no fields is an error.
func lookup(in Input, path []string) (string, error) {
	body := in.Body()
	if len(body) == 0 || !in.JSON() && !jsonbody.Valid(body) {
		return "", nil
	}
	// The payload is looked at in place; what is returned is a copy.
	v := gjson.Parse(unsafe.String(unsafe.SliceData(body), len(body))) //nolint:gosec // body outlives v and is not written to
	for _, name := range path {
		switch {
		case v.Type == gjson.Null:
			return "", nil
		case !v.IsObject():
			return "", fmt.Errorf("can't read field %s of %s", name, kind(v))
		}
		v = member(v, name)
	}
	return text(v)
}

// member is the last member of a name, as in encoding/json.
func member(v gjson.Result, name string) gjson.Result {
	var found gjson.Result
	v.ForEach(func(k, m gjson.Result) bool {
		if k.Str == name {
			found = m
		}
		return true
	})
	return found
}

func kind(v gjson.Result) string {
	switch {
	case v.IsArray():
		return "an array"
	case v.Type == gjson.String:
		return "a string"
	case v.Type == gjson.Number:
		return "a number"
	}
	return "a boolean"
}

func text(v gjson.Result) (string, error) {
	switch v.Type {
	case gjson.Null:
		return "", nil
	case gjson.String:
		return strings.Clone(v.Str), nil
	case gjson.JSON:
		return compact(decode([]byte(v.Raw)))
	default:
		return strings.Clone(v.Raw), nil
	}
}

// wrapOutput makes every action that prints do so through out.
func wrapOutput(n parse.Node) {
	switch n := n.(type) {
	case *parse.ListNode:
		if n == nil {
			return
		}
		for _, m := range n.Nodes {
			wrapOutput(m)
		}
	case *parse.ActionNode:
		if len(n.Pipe.Decl) == 0 {
			n.Pipe.Cmds = append(n.Pipe.Cmds, &parse.CommandNode{
				NodeType: parse.NodeCommand, Pos: n.Pos,
				Args: []parse.Node{parse.NewIdentifier(outName).SetPos(n.Pos)},
			})
		}
	case *parse.IfNode:
		wrapBranch(&n.BranchNode)
	case *parse.WithNode:
		wrapBranch(&n.BranchNode)
	case *parse.RangeNode:
		wrapBranch(&n.BranchNode)
	}
}

func wrapBranch(n *parse.BranchNode) {
	wrapOutput(n.List)
	if n.ElseList != nil {
		wrapOutput(n.ElseList)
	}
}
