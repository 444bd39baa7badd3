package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"

	"sluice/core/jsonbody"
)

// maxDepth is how deep an object or array may be nested to be taken as a
// value. It bounds what encoding/json and text/template recurse over.
const maxDepth = 1_000

// text renders a part of a payload.
func text(raw []byte) (string, error) {
	switch jsonbody.KindOf(raw) {
	case jsonbody.None, jsonbody.Null:
		return "", nil
	case jsonbody.String:
		return jsonbody.Text(raw), nil
	case jsonbody.Array, jsonbody.Object:
		v, err := value(raw)
		if err != nil {
			return "", err
		}
		return out(v)
	default:
		return string(raw), nil
	}
}

// value is a part of a payload as text/template works with it: nil for nothing
// and null, a string, json.Number or bool, []any or map[string]any.
func value(raw []byte) (any, error) {
	switch jsonbody.KindOf(raw) {
	case jsonbody.None, jsonbody.Null:
		return nil, nil
	case jsonbody.String:
		return jsonbody.Text(raw), nil
	case jsonbody.Number:
		return json.Number(raw), nil
	case jsonbody.Bool:
		return raw[0] == 't', nil
	default:
		return decode(raw)
	}
}

func decode(raw []byte) (any, error) {
	if jsonbody.Depth(raw) > maxDepth {
		return nil, faultf("the value is nested more than %d deep", maxDepth)
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	err := dec.Decode(&v)
	return v, err
}

// out prints a value as templates print it: nothing for null, JSON for what
// has parts, and everything else as it is written.
func out(v any) (string, error) {
	switch v := v.(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	case json.Number:
		return string(v), nil
	case *event:
		return "", errWholeEvent
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

// walk is the value that names lead to from v: nothing if it is missing.
func walk(v any, names []string) (any, error) {
	for _, name := range names {
		var ok bool
		switch parent := v.(type) {
		case nil:
			return nil, nil
		case map[string]any:
			v = parent[name]
		case map[string]string:
			if v, ok = parent[name]; !ok {
				return nil, nil
			}
		default:
			return nil, noFields(name, kindOf(v))
		}
	}
	return v, nil
}

// kindOf is the kind of a value of a template: of an event's, of a literal, or
// of what a function returned.
func kindOf(v any) jsonbody.Kind {
	switch v.(type) {
	case nil:
		return jsonbody.Null
	case bool:
		return jsonbody.Bool
	case string:
		return jsonbody.String
	case json.Number:
		return jsonbody.Number
	case []any:
		return jsonbody.Array
	case map[string]any, map[string]string, *event:
		return jsonbody.Object
	}
	if r := reflect.ValueOf(v); r.CanInt() || r.CanUint() || r.CanFloat() {
		return jsonbody.Number
	}
	return jsonbody.None
}
