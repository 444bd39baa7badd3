package render

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"text/template"
)

// The functions that only a readied template calls.
const (
	getName = "_get"
	outName = "_out"
)

// functions are get and out, and those of text/template that would make
// something of nothing: they print <nil>, or fail on it.
var functions = template.FuncMap{
	getName: get, outName: out, "index": index,
	"eq": eq, "ne": ne, "lt": lt, "le": le, "gt": gt, "ge": ge,
	"print":    printer(fmt.Sprint),
	"println":  printer(fmt.Sprintln),
	"html":     printer(template.HTMLEscaper),
	"js":       printer(template.JSEscaper),
	"urlquery": printer(template.URLQueryEscaper),
	"printf":   printf,
}

// get is the value that a path leads to from v.
func get(v any, path string) (any, error) {
	if e, ok := v.(*event); ok {
		return e.get(path)
	}
	return walk(v, strings.Split(path, "."))
}

// index is the value that names, and places from 0, lead to from v. Names may
// have characters that a field's may not.
func index(v any, keys ...any) (any, error) {
	for _, key := range keys {
		var err error
		switch parent := v.(type) {
		case nil:
			return nil, nil
		case []any:
			v, err = element(parent, key)
		default:
			name, ok := key.(string)
			if !ok {
				return nil, faultf("can't index %s by %s", Named(kindOf(v)), Named(kindOf(key)))
			}
			if e, ok := v.(*event); ok {
				v, err = e.value([]string{name})
			} else {
				v, err = walk(v, []string{name})
			}
		}
		if err != nil {
			return nil, err
		}
	}
	return v, nil
}

func element(array []any, key any) (any, error) {
	n, ok := numberOf(key)
	if !ok || !n.whole {
		return nil, faultf("can't index an array by %s", Named(kindOf(key)))
	}
	if n.exact < 0 || n.exact >= int64(len(array)) {
		return nil, faultf("index out of range: %d", n.exact)
	}
	return array[n.exact], nil
}

// printer is a function that prints its arguments, as templates print them.
func printer(write func(...any) string) func(...any) (string, error) {
	return func(args ...any) (string, error) {
		shown, err := show(args)
		if err != nil {
			return "", err
		}
		return write(shown...), nil
	}
}

func printf(format string, args ...any) (string, error) {
	shown, err := show(args)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf(format, shown...), nil
}

// show has the arguments of a print as what prints them well.
func show(args []any) ([]any, error) {
	shown := make([]any, len(args))
	for i, v := range args {
		switch v := v.(type) {
		case nil:
			shown[i] = scalar("")
		case json.Number:
			shown[i] = scalar(v)
		case map[string]any, []any, map[string]string, *event:
			s, err := out(v)
			if err != nil {
				return nil, err
			}
			shown[i] = s
		default:
			shown[i] = v
		}
	}
	return shown, nil
}

// scalar is a number as it is written, or nothing. It prints by every verb: as
// text, or as the number that the verb is for.
type scalar string

// Format prints it for package fmt.
func (s scalar) Format(f fmt.State, verb rune) {
	var v any = string(s)
	switch verb {
	case 'b', 'c', 'd', 'o', 'O', 'U', 'x', 'X':
		if n, err := strconv.ParseInt(string(s), 10, 64); err == nil {
			v = n
		}
	case 'e', 'E', 'f', 'F', 'g', 'G':
		if x, err := strconv.ParseFloat(string(s), 64); err == nil {
			v = x
		}
	}
	if s == "" && verb != 'q' {
		verb = 's'
	}
	fmt.Fprintf(f, fmt.FormatString(f, verb), v)
}
