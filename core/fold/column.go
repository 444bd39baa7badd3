package fold

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"sluice/core/render"
)

// MaxColumns is how many columns a fold has at most.
const MaxColumns = 32

// maxName is how long a column's name is at most, in bytes.
const maxName = 64

// Column is one folded column.
type Column struct {
	Name string // [A-Za-z_][A-Za-z0-9_]{0,63}
	Expr string // a function and a path, such as "sum .json.amount"; or "count"
}

// reserved are the names of what every row has.
var reserved = []string{"id", "key", "windowStart", "windowEnd"}

// function is what a column does with the values of its path.
type function struct {
	name    string
	numbers bool // it reads numbers, and nothing else
	keeps   bool // it keeps a value of any kind
	alone   bool // it needs no path
	cell    func() cell
}

var functions = []function{
	{name: "count", alone: true, cell: func() cell { return new(count) }},
	{name: "sum", numbers: true, cell: func() cell { return new(sum) }},
	{name: "min", numbers: true, cell: func() cell { return &extreme{sign: -1} }},
	{name: "max", numbers: true, cell: func() cell { return &extreme{sign: 1} }},
	{name: "avg", numbers: true, cell: func() cell { return new(avg) }},
	{name: "first", keeps: true, cell: func() cell { return new(first) }},
	{name: "last", keeps: true, cell: func() cell { return new(last) }},
}

// expr is a compiled expression.
type expr struct {
	function

	path *render.Path // nil: of the event itself
}

// CheckColumn says what is wrong with a column, and what would be right.
func CheckColumn(c Column) error {
	_, err := compile(c)
	return err
}

func compile(c Column) (expr, error) {
	if !validName(c.Name) {
		return expr{}, fmt.Errorf("column %q: a name is of letters, digits and _, begins with no digit, and has at most %d characters", c.Name, maxName)
	}
	if slices.Contains(reserved, c.Name) {
		return expr{}, fmt.Errorf("column %q: every row has %s by itself; choose another name", c.Name, c.Name)
	}
	e, err := parseExpr(c.Expr)
	if err != nil {
		return expr{}, fmt.Errorf("column %q: %w", c.Name, err)
	}
	return e, nil
}

func parseExpr(text string) (expr, error) {
	words := strings.Fields(text)
	if len(words) == 0 {
		return expr{}, errors.New(`it has no function; it is such as "count" or "sum .json.amount"`)
	}
	at := slices.IndexFunc(functions, func(f function) bool { return f.name == words[0] })
	if at < 0 {
		return expr{}, fmt.Errorf("there is no function %q; it is one of count, sum, min, max, avg, first, last", words[0])
	}
	e := expr{function: functions[at]}
	switch {
	case len(words) == 1 && e.alone:
		return e, nil
	case len(words) == 1:
		return expr{}, fmt.Errorf("%s needs a path, such as %q", e.name, e.name+" .json.amount")
	case len(words) > 2:
		return expr{}, fmt.Errorf("%s takes one path, such as %q", e.name, e.name+" .json.amount")
	}
	var err error
	if e.path, err = render.CompilePath(words[1]); err != nil {
		return expr{}, err
	}
	if e.numbers && !e.path.JSON() {
		return expr{}, fmt.Errorf("%s reads numbers, and %s is a text; only .json has numbers", e.name, e.path)
	}
	return e, nil
}

func validName(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_'
		if digit := c-'0' <= 9; !letter && (!digit || i == 0) {
			return false
		}
	}
	return s != "" && len(s) <= maxName
}
