package jq

import (
	"strconv"
	"strings"

	"github.com/itchyny/gojq"
)

// rewriter puts guards into a program, and refuses what programs must not do.
type rewriter struct {
	vars    map[string]bool // what is read
	regexps bool            // there are regular expressions
	writes  int             // where it is, indices may be written to, if above 0
	err     error           // the first
}

func (w *rewriter) failf(format string, args ...any) {
	if w.err == nil {
		w.err = faultf(format, args...)
	}
}

// name checks a name that the program gives or takes.
func (w *rewriter) name(s string) {
	if strings.HasPrefix(s, "_") || strings.HasPrefix(s, "$__") {
		w.failf("%s is no name for programs: those that begin with _ are taken", s)
	}
	w.vars[s] = true
}

func (w *rewriter) queries(qs ...*gojq.Query) {
	for _, q := range qs {
		if q != nil {
			w.query(q)
		}
	}
}

func (w *rewriter) query(q *gojq.Query) {
	if len(q.Imports) > 0 || q.Meta != nil {
		w.failf("there are no modules")
	}
	for _, def := range q.FuncDefs {
		w.name(def.Name)
		for _, arg := range def.Args {
			w.name(arg)
		}
		w.written(def.Body, true)
	}
	w.patterns(q.Patterns)
	w.written(q.Left, q.Op >= gojq.OpAssign)
	w.queries(q.Right)
	if q.Term != nil {
		w.term(q.Term)
		return
	}
	w.operator(q)
}

// written walks through what may be a path to write to.
func (w *rewriter) written(q *gojq.Query, is bool) {
	if is {
		w.writes++
		defer func() { w.writes-- }()
	}
	w.queries(q)
}

// operator guards the operands of an operator.
func (w *rewriter) operator(q *gojq.Query) {
	l, r := q.Left, q.Right
	switch q.Op { //nolint:exhaustive // the others cost nothing themselves
	case gojq.OpAdd, gojq.OpMod:
		q.Left, q.Right = guard(l, guardFlat), guard(r, guardFlat)
	case gojq.OpDiv: // of strings, it splits
		q.Left, q.Right = guard(l, guardMany), guard(r, guardFlat)
	case gojq.OpMul:
		w.pair(q, guardTimes)
	case gojq.OpSub:
		w.pair(q, guardCompare)
	case gojq.OpEq, gojq.OpNe, gojq.OpLt, gojq.OpLe, gojq.OpGt, gojq.OpGe:
		if literal(l) || literal(r) {
			return // the literal is all that is compared
		}
		q.Left, q.Right = guard(l, guardDeep), guard(r, guardDeep)
	case gojq.OpModify:
		*q = *pipe(call(guardDeep, variable(runVariable)),
			&gojq.Query{FuncDefs: q.FuncDefs, Left: l, Op: q.Op, Right: guard(r, guardDeep)})
	case gojq.OpUpdateAdd, gojq.OpUpdateSub, gojq.OpUpdateMul, gojq.OpUpdateDiv, gojq.OpUpdateMod:
		// l op= r is r as $x | l |= . op $x
		inner := &gojq.Query{Left: identity(), Op: plain[q.Op], Right: variable("$__x")}
		w.operator(inner)
		defs := q.FuncDefs
		*q = *bind(r, "$__x", &gojq.Query{Left: l, Op: gojq.OpModify, Right: inner})
		q.FuncDefs = defs
	}
}

// plain is the operator of an update.
var plain = map[gojq.Operator]gojq.Operator{
	gojq.OpUpdateAdd: gojq.OpAdd, gojq.OpUpdateSub: gojq.OpSub, gojq.OpUpdateMul: gojq.OpMul,
	gojq.OpUpdateDiv: gojq.OpDiv, gojq.OpUpdateMod: gojq.OpMod,
}

// pair guards the left operand by the right one: l op r is r as $r | guard(l) op $r.
func (w *rewriter) pair(q *gojq.Query, name string) {
	guarded := pipe(q.Left, call(name, variable("$__r"), variable(runVariable)))
	defs := q.FuncDefs
	*q = *bind(q.Right, "$__r", &gojq.Query{Left: guarded, Op: q.Op, Right: variable("$__r")})
	q.FuncDefs = defs
}

func (w *rewriter) term(t *gojq.Term) {
	for _, s := range t.SuffixList {
		w.index(s.Index)
	}
	w.index(t.Index)
	w.text(t.Str)
	switch t.Type { //nolint:exhaustive // the others have no parts
	case gojq.TermTypeFunc:
		w.function(t)
	case gojq.TermTypeFormat:
		if t.Str == nil {
			guardInput(t, guardText)
		}
	case gojq.TermTypeObject:
		w.object(t.Object)
	case gojq.TermTypeArray:
		w.array(t.Array)
	case gojq.TermTypeUnary:
		w.term(t.Unary.Term)
	case gojq.TermTypeIf:
		w.queries(t.If.Cond, t.If.Then, t.If.Else)
		for _, e := range t.If.Elif {
			w.queries(e.Cond, e.Then)
		}
	case gojq.TermTypeTry:
		w.queries(t.Try.Body, t.Try.Catch)
	case gojq.TermTypeReduce:
		w.patterns(t.Reduce.Patterns)
		w.queries(t.Reduce.Query, t.Reduce.Start, t.Reduce.Update)
	case gojq.TermTypeForeach:
		w.patterns(t.Foreach.Patterns)
		w.queries(t.Foreach.Query, t.Foreach.Start, t.Foreach.Update, t.Foreach.Extract)
	case gojq.TermTypeLabel:
		w.query(t.Label.Body)
	case gojq.TermTypeQuery:
		w.query(t.Query)
	}
}

// function guards a call.
func (w *rewriter) function(t *gojq.Term) {
	f := t.Func
	w.name(f.Name)
	for _, arg := range f.Args {
		w.written(arg, f.Name == "pick")
	}
	if why, ok := refused[f.Name]; ok {
		w.failf("%s can't be used: %s", f.Name, why)
	}
	w.regexps = w.regexps || strings.Contains(regexpFunctions, " "+f.Name+" ")
	r := ruleOf(f.Name, len(f.Args))
	for i, arg := range f.Args {
		switch {
		case r.with:
			f.Args[i] = pipe(arg, call(r.args, variable("$__in"), variable(runVariable)))
		case f.Name == "setpath" && i == 1:
		case r.args != "":
			f.Args[i] = guard(arg, r.args)
		}
	}
	if r.in != "" {
		guardInput(t, r.in)
	}
	if r.out != "" {
		enclose(t, func(q *gojq.Query) *gojq.Query { return guard(q, r.out) })
	}
	if r.with {
		enclose(t, func(q *gojq.Query) *gojq.Query {
			return bind(identity(), "$__in", q)
		})
	}
}

// index guards indices.
func (w *rewriter) index(x *gojq.Index) {
	if x == nil {
		return
	}
	w.text(x.Str)
	w.queries(x.Start, x.End)
	if x.Start != nil && !x.IsSlice && !isLow(x.Start) {
		name := guardIndex
		if w.writes > 0 {
			name = guardWritten
		}
		x.Start = pipe(x.Start, call(name, variable(runVariable)))
	}
}

// isLow is of literal indices that no guard is needed for.
func isLow(q *gojq.Query) bool {
	if !literal(q) || q.Term.Type != gojq.TermTypeNumber {
		return literal(q)
	}
	i, err := strconv.Atoi(q.Term.Number)
	return err == nil && i < lowIndex
}

// text guards what strings are made of.
func (w *rewriter) text(s *gojq.String) {
	if s == nil {
		return
	}
	for i, q := range s.Queries {
		if w.query(q); !literal(q) {
			s.Queries[i] = term(&gojq.Term{Type: gojq.TermTypeQuery, Query: guard(q, guardText)})
		}
	}
}

// Arrays and objects of constants are made by gojq when it compiles, and shared by
// all runs; but it deletes in place, which would be a data race. So none may be one.

func (w *rewriter) array(a *gojq.Array) {
	if a.Query != nil {
		w.query(a.Query)
		a.Query = pipe(a.Query, identity()) // no instruction, but no constant to gojq
	}
}

func (w *rewriter) object(o *gojq.Object) {
	for _, kv := range o.KeyVals {
		if strings.HasPrefix(kv.Key, "$") {
			w.name(kv.Key)
		}
		w.text(kv.KeyString)
		w.queries(kv.KeyQuery, kv.Val)
	}
	for _, kv := range o.KeyVals {
		if kv.Val == nil || kv.Val.Term != nil && kv.Val.Term.Type == gojq.TermTypeIndex {
			return // it varies already
		}
	}
	if len(o.KeyVals) > 0 {
		val := &o.KeyVals[0].Val
		*val = pipe(*val, call(guardFlat, variable(runVariable)))
	}
}

func (w *rewriter) patterns(ps []*gojq.Pattern) {
	for _, p := range ps {
		if p == nil {
			continue
		}
		w.name(p.Name)
		w.patterns(p.Array)
		for _, o := range p.Object {
			if strings.HasPrefix(o.Key, "$") {
				w.name(o.Key)
			}
			w.text(o.KeyString)
			w.queries(o.KeyQuery)
			w.patterns([]*gojq.Pattern{o.Val})
		}
	}
}

// literal reports whether a query is a number, string or other plain constant.
func literal(q *gojq.Query) bool {
	if q.Term == nil || len(q.FuncDefs) > 0 || len(q.Term.SuffixList) > 0 {
		return false
	}
	switch q.Term.Type { //nolint:exhaustive // the others are no literals
	case gojq.TermTypeNumber, gojq.TermTypeNull, gojq.TermTypeTrue, gojq.TermTypeFalse:
		return true
	case gojq.TermTypeString:
		return len(q.Term.Str.Queries) == 0
	}
	return false
}

// guard pipes a query through a guard.
func guard(q *gojq.Query, name string) *gojq.Query {
	if literal(q) && name != guardWritten {
		return q
	}
	return pipe(q, call(name, variable(runVariable)))
}

// enclose puts a term without its suffixes into what wrap makes of it.
func enclose(t *gojq.Term, wrap func(*gojq.Query) *gojq.Query) {
	inner := *t
	inner.SuffixList = nil
	*t = gojq.Term{Type: gojq.TermTypeQuery, SuffixList: t.SuffixList, Query: wrap(term(&inner))}
}

// guardInput pipes the input of a term through a guard.
func guardInput(t *gojq.Term, name string) {
	enclose(t, func(q *gojq.Query) *gojq.Query { return pipe(call(name, variable(runVariable)), q) })
}

func term(t *gojq.Term) *gojq.Query { return &gojq.Query{Term: t} }

func identity() *gojq.Query { return term(&gojq.Term{Type: gojq.TermTypeIdentity}) }

func pipe(l, r *gojq.Query) *gojq.Query { return &gojq.Query{Left: l, Op: gojq.OpPipe, Right: r} }

// bind is q as name | body.
func bind(q *gojq.Query, name string, body *gojq.Query) *gojq.Query {
	return &gojq.Query{Left: q, Op: gojq.OpPipe, Patterns: []*gojq.Pattern{{Name: name}}, Right: body}
}

func call(name string, args ...*gojq.Query) *gojq.Query {
	return term(&gojq.Term{Type: gojq.TermTypeFunc, Func: &gojq.Func{Name: name, Args: args}})
}

func variable(name string) *gojq.Query { return call(name) }
