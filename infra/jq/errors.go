package jq

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode"

	"github.com/itchyny/gojq"
)

// fault is an error in words for people, of one line and up to maxReason.
type fault string

func (f fault) Error() string { return string(f) }

// maxReason bounds what an error says, in bytes.
const maxReason = 200

const (
	errDeep   = fault("a value is nested more than 1000 deep")
	errLong   = fault("the result is too long")
	errWork   = fault("the program works on too much data, or makes too much of it")
	errSlow   = fault("the program takes longer than 2 s")
	errSteps  = fault("the program takes too many steps")
	errDigits = fault("a number has more than 1000 digits")
	errIndex  = fault("an index is greater than 65536")
)

func faultf(format string, args ...any) error { return cut(fmt.Sprintf(format, args...)) }

// cut makes one line of up to maxReason of a text.
func cut(s string) error {
	whole := len(s) <= maxReason
	if !whole {
		s = s[:maxReason-len("…")]
	}
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, ""))
	if !whole {
		s += "…"
	}
	return fault(s)
}

// parseFault puts the place in front of what gojq says.
func parseFault(text string, err error) error {
	e, ok := errors.AsType[*gojq.ParseError](err)
	if !ok {
		return cut(err.Error())
	}
	before := text[:min(max(e.Offset-len(e.Token), 0), len(text))]
	line := 1 + strings.Count(before, "\n")
	column := 1 + len([]rune(before[strings.LastIndexByte(before, '\n')+1:]))
	return faultf("%d:%d: %v", line, column, err)
}

// runFault is the error of a program. It goes into logs, so it shows no value,
// which is of the payload or a header: of what the program says by error only a
// text that stands in it, and of gojq's errors only the types of values.
func (p *Program) runFault(err error) error {
	if own, ok := errors.AsType[fault](err); ok {
		return own
	}
	if _, ok := errors.AsType[*gojq.HaltError](err); ok {
		return fault("the program halts")
	}
	if e, ok := errors.AsType[gojq.ValueError](err); ok {
		if said, ok := e.Value().(string); ok && p.says(said) {
			return cut("error: " + said)
		}
		return fault("the program calls error")
	}
	return cut(withoutValues(err))
}

// says reports whether a text stands in the program, between quotes.
func (p *Program) says(text string) bool {
	quoted, err := gojq.Marshal(text)
	return err == nil && strings.Contains(p.text, string(quoted))
}

// withoutValues is gojq's error with the types of the values in it.
func withoutValues(err error) string {
	v := reflect.Indirect(reflect.ValueOf(err))
	text, ok := gojqErrors[v.Type().Name()]
	if !ok {
		return "the program fails"
	}
	var parts []string
	for i := range v.NumField() {
		name, f := v.Type().Field(i).Name, v.Field(i)
		shown := typeOf(f)
		if name == "name" || name == "typ" { // of a function of gojq
			shown = f.String()
		}
		parts = append(parts, "{"+name+"}", shown)
	}
	return strings.NewReplacer(parts...).Replace(text)
}

// typeOf is the type of a value that gojq keeps to itself.
func typeOf(v reflect.Value) string {
	if v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	switch {
	case !v.IsValid():
		return "null"
	case v.Kind() == reflect.Bool:
		return "boolean"
	case v.Kind() == reflect.String && v.Type() != reflect.TypeFor[json.Number]():
		return "string"
	case v.Kind() == reflect.Slice:
		return "array"
	case v.Kind() == reflect.Map:
		return "object"
	}
	return "number"
}

// gojqErrors is what gojq's errors say, by type, with the names of their fields
// in place of values.
var gojqErrors = map[string]string{
	"expectedObjectError":       "expected an object but got: {v}",
	"expectedArrayError":        "expected an array but got: {v}",
	"iteratorError":             "cannot iterate over: {v}",
	"arrayIndexNegativeError":   "array index should not be negative",
	"arrayIndexTooLargeError":   "array index too large",
	"repeatStringTooLargeError": "repeat string result too large",
	"objectKeyNotStringError":   "expected a string for object key but got: {v}",
	"arrayIndexNotNumberError":  "expected a number for indexing an array but got: {v}",
	"stringIndexNotNumberError": "expected a number for indexing a string but got: {v}",
	"expectedStartEndError":     `expected "start" and "end" for slicing but got: {v}`,
	"lengthMismatchError":       "length mismatch",
	"func0TypeError":            "{name} cannot be applied to: {v}",
	"func1TypeError":            "{name}({w}) cannot be applied to: {v}",
	"func2TypeError":            "{name}({w}; {x}) cannot be applied to: {v}",
	"func0WrapError":            "{name} cannot be applied to this {v}",
	"func1WrapError":            "{name}({w}) cannot be applied to this {v}",
	"func2WrapError":            "{name}({w}; {x}) cannot be applied to this {v}",
	"flattenDepthError":         "flatten depth should not be negative",
	"timeArrayError":            "expected an array of 8 numbers",
	"timeEpochError":            "number of seconds is out of range",
	"timeNumberError":           "number is out of range",
	"unaryTypeError":            "cannot {name}: {v}",
	"binopTypeError":            "cannot {name}: {l} and {r}",
	"zeroDivisionError":         "cannot divide {l} by zero",
	"zeroModuloError":           "cannot modulo {l} by zero",
	"formatNotFoundError":       "format not defined",
	"formatRowError":            "@{typ} cannot format an array including: {v}",
	"breakError":                "break without its label",
	"invalidPathError":          "invalid path against: {v}",
	"invalidPathIterError":      "invalid path on iterating against: {v}",
}
