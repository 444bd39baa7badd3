package core

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"sluice/core/fold"
)

func (v *validation) window(path string, w *WindowConfig) {
	if w == nil {
		return
	}
	v.number(path+".every", int64(w.Every), WindowEveryRange)
	v.number(path+".grace", int64(w.Grace), WindowGraceRange)
	v.template(path+".time", w.Time, `"{{ .json.ts }}"`)
	v.number(path+".maxAhead", int64(w.MaxAhead), WindowAheadRange)
}

// inRange reports whether every number of a window is what it may be.
func (w *WindowConfig) inRange() bool {
	return WindowEveryRange.Has(int64(w.Every)) && WindowGraceRange.Has(int64(w.Grace)) && WindowAheadRange.Has(int64(w.MaxAhead))
}

func (v *validation) fold(path string, b *Buffer) {
	if b.Fold == nil {
		return
	}
	if b.Window == nil {
		v.add(path, "needs a window: rows are made of the events of one", "add window: {every: 1m}, or remove it")
	}
	switch n := len(b.Fold); {
	case n == 0:
		v.add(path, "is empty", "name at least one column, such as count: count")
	case n > MaxColumns:
		v.add(path, fmt.Sprintf("has %d columns", n), fmt.Sprintf("must have at most %d", MaxColumns))
	}
	seen := make(map[string]bool, len(b.Fold))
	for _, c := range b.Fold {
		at := FieldPath(path, c.Name)
		if seen[c.Name] {
			v.add(at, "is there twice", "give each column a name of its own")
			continue
		}
		seen[c.Name] = true
		v.column(at, c)
	}
}

// column checks the name and the expression of a column, each for itself.
func (v *validation) column(path string, c FoldColumn) {
	if problem, right := columnFault(c.Name, "count"); problem != "" {
		if right == "" { // it says what a name is
			problem, right = "is not the name of a column", problem
		}
		v.add(path, problem, right)
	}
	switch problem, right := columnFault("column", c.Expr); {
	case problem == "":
	case slices.ContainsFunc(strings.Fields(c.Expr), secretLooking):
		v.add(path, "is something that looks like a secret", `must be like "sum .json.amount"`)
	default:
		v.add(path, Cut(problem, maxProblem), Cut(cmp.Or(right, "write one function and one path"), maxProblem))
	}
}

// maxProblem bounds what a fault says about a column, in bytes: it quotes from it.
const maxProblem = 200

// columnFault is what package fold says of a column: what is wrong and, mostly,
// what would be right.
func columnFault(name, expr string) (problem, right string) {
	err := fold.CheckColumn(fold.Column{Name: name, Expr: expr})
	if err == nil {
		return "", ""
	}
	said := strings.TrimPrefix(err.Error(), fmt.Sprintf("column %q: ", name))
	problem, right, _ = strings.Cut(said, "; ")
	return problem, right
}
