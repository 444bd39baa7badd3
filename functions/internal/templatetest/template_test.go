package templatetest

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"
)

// root is the module's root, from here.
const root = "../../.."

// functions are the entry points by the logical names of their resources.
var functions = map[string]string{
	"IngestFunction": "ingest", "ReceiveFunction": "receive", "CheckFunction": "check", "DeliverFunction": "deliver",
	"FlushFunction": "flush", "ControlFunction": "control",
}

// object is a mapping of the template. An intrinsic function is one with a
// single member: !Ref X is {"Ref": "X"}, !Sub x is {"Fn::Sub": "x"}.
type object = map[string]any

// list is a sequence of the template.
type list = []any

func read(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, name))
	require.NoError(t, err)
	return data
}

// load reads template.yaml.
func load(t *testing.T) object {
	t.Helper()
	var doc yaml.Node
	require.NoError(t, yaml.Unmarshal(read(t, "template.yaml"), &doc))
	template, ok := plain(t, doc.Content[0]).(object)
	require.True(t, ok)
	return template
}

// translated is the template as CloudFormation gets it.
func translated(t *testing.T) object {
	t.Helper()
	data, err := os.ReadFile("testdata/translated.json")
	require.NoError(t, err)
	var template object
	require.NoError(t, json.Unmarshal(data, &template))
	return template
}

// plain is a node with its short forms of intrinsic functions spelled out.
func plain(t *testing.T, n *yaml.Node) any {
	t.Helper()
	var v any
	switch n.Kind {
	case yaml.MappingNode:
		m := make(object, len(n.Content)/2)
		for i := 0; i < len(n.Content); i += 2 {
			m[n.Content[i].Value] = plain(t, n.Content[i+1])
		}
		v = m
	case yaml.SequenceNode:
		l := make(list, len(n.Content))
		for i := range n.Content {
			l[i] = plain(t, n.Content[i])
		}
		v = l
	default:
		if strings.HasPrefix(n.Tag, "!!") {
			require.NoError(t, n.Decode(&v))
		} else {
			v = n.Value
		}
	}
	switch name, short := strings.CutPrefix(n.Tag, "!"); {
	case !short || strings.HasPrefix(name, "!"):
		return v
	case name == "Ref" || name == "Condition":
		return object{name: v}
	default:
		return object{"Fn::" + name: v}
	}
}

// at is what lies at a path of names.
func at(t *testing.T, v any, path ...string) any {
	t.Helper()
	for i, name := range path {
		m, ok := v.(object)
		require.True(t, ok, "%v is no mapping", path[:i])
		v, ok = m[name]
		require.True(t, ok, "there is no %v", path[:i+1])
	}
	return v
}

// within is the value of a type at a path of names.
func within[T any](t *testing.T, v any, path ...string) T {
	t.Helper()
	found, ok := at(t, v, path...).(T)
	require.True(t, ok, "%v is a %T", path, at(t, v, path...))
	return found
}

// resources goes through the resources of a type, in order of their names;
// "" is every type.
func resources(t *testing.T, template object, kind string) []string {
	t.Helper()
	all := within[object](t, template, "Resources")
	var names []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if kind == "" || at(t, all, name, "Type") == kind {
			names = append(names, name)
		}
	}
	require.NotEmpty(t, names, kind)
	return names
}

// properties are those of a resource.
func properties(t *testing.T, template object, name string) object {
	t.Helper()
	return within[object](t, template, "Resources", name, "Properties")
}

// target is the resource that !Ref or !GetAtt names, or "".
func target(v any) string {
	m, ok := v.(object)
	if !ok || len(m) != 1 {
		return ""
	}
	if name, ok := m["Ref"].(string); ok {
		return name
	}
	switch name := m["Fn::GetAtt"].(type) {
	case string:
		name, _, _ = strings.Cut(name, ".")
		return name
	case list:
		first, _ := name[0].(string)
		return first
	}
	return ""
}

// words are a string, or a list of strings.
func words(t *testing.T, v any) []string {
	t.Helper()
	if s, ok := v.(string); ok {
		return []string{s}
	}
	l, ok := v.(list)
	require.True(t, ok, "%v", v)
	out := make([]string, len(l))
	for i := range l {
		out[i], ok = l[i].(string)
		require.True(t, ok, "%v", l[i])
	}
	return out
}

// values are all that an expression may come to: both branches of !If, the
// allowed values of a parameter, the elements of a list.
func values(t *testing.T, template object, v any) []any {
	t.Helper()
	switch v := v.(type) {
	case list:
		var all []any
		for _, e := range v {
			all = append(all, values(t, template, e)...)
		}
		return all
	case object:
		if branches, ok := v["Fn::If"].(list); ok {
			return append(values(t, template, branches[1]), values(t, template, branches[2])...)
		}
		if name, ok := v["Ref"].(string); ok {
			if name == "AWS::NoValue" {
				return nil
			}
			if allowed, ok := within[object](t, template, "Parameters", name)["AllowedValues"]; ok {
				return values(t, template, allowed)
			}
		}
	}
	return []any{v}
}
