package jq

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"

	"github.com/itchyny/gojq"

	"sluice/core"
	"sluice/core/jsonbody"
	"sluice/core/render"
)

// Bounds on programs, payloads and results, in bytes unless they say otherwise.
const (
	MaxProgram = 16 << 10 // the text of a program
	MaxInput   = 10 << 20 // a payload, and no less than the largest event
	MaxOutput  = 1 << 20  // a result, or twice the payload if that is more
	MaxDepth   = 1_000    // levels of nesting, of payloads and of all that is compared, written or counted
)

// Program is a compiled program. It is safe for concurrent use.
type Program struct {
	text string
	code *gojq.Code
	vars []string // those of the event that it reads, in the order of their binding
	re   *patterns
}

// Compile compiles a program. The error says what is wrong and, for what can't
// be parsed, where: "1:7: unexpected token \"}\"".
func Compile(text string) (p *Program, err error) {
	defer func() {
		if r := recover(); r != nil {
			p, err = nil, faultf("the program can't be compiled: %v", r)
		}
	}()
	if len(text) > MaxProgram {
		return nil, faultf("a program has at most %d bytes; this one has %d", MaxProgram, len(text))
	}
	q, err := gojq.Parse(text)
	if err != nil {
		return nil, parseFault(text, err)
	}
	w := rewriter{vars: map[string]bool{}}
	if w.query(q); w.err != nil {
		return nil, w.err
	}
	if q.FuncDefs, err = prelude(q.FuncDefs, w.regexps); err != nil {
		return nil, err
	}
	p = &Program{text: text, re: newPatterns()}
	for _, name := range []string{"$id", "$source", "$headers"} {
		if w.vars[name] {
			p.vars = append(p.vars, name)
		}
	}
	options := append(guards(), gojq.WithVariables(append(slices.Clone(p.vars), runVariable)))
	if p.code, err = gojq.Compile(q, options...); err != nil {
		return nil, cut(err.Error())
	}
	return p, nil
}

// Run runs the program on one payload; "." is null when it is no JSON. $id,
// $source and $headers, an object of lower-case names, are the event's.
//
// out is the first result as compact JSON of up to [MaxOutput], or twice
// the payload; ok is false when
// there is none. The error is the program's, without the
// values that it met, or says which bound it ran into.
func (p *Program) Run(ctx context.Context, in render.Input) (out []byte, ok bool, err error) {
	defer func() {
		if r := recover(); r != nil {
			out, ok, err = nil, false, fault("the program fails") // what it panics with may hold values
		}
	}()
	v, err := decoded(in)
	if err != nil {
		return nil, false, err
	}
	m := newMeter(ctx, p.re)
	v, ok = p.code.RunWithContext(m, v, p.bind(in, m)...).Next()
	if m.err != nil { // whatever else came of it
		return nil, false, m.err
	}
	if !ok {
		return nil, false, nil
	}
	if err, failed := v.(error); failed {
		return nil, false, p.runFault(err)
	}
	out, err = encode(v, max(MaxOutput, 2*len(in.Body())))
	return out, err == nil, err
}

// decoded is the payload, which whoever runs several programs on it may keep:
// gojq changes no value that it is given.
func decoded(in render.Input) (any, error) {
	if d, ok := in.(core.Decoder); ok {
		return d.Decoded(func() (any, error) { return payload(in) })
	}
	return payload(in)
}

// bind is the values of the program's variables.
func (p *Program) bind(in render.Input, m *meter) []any {
	values := make([]any, 0, len(p.vars)+1)
	for _, name := range p.vars {
		switch name {
		case "$id":
			values = append(values, in.ID())
		case "$source":
			values = append(values, in.Source())
		case "$headers":
			headers := map[string]any{}
			for k, v := range in.Headers() {
				headers[k] = v
			}
			values = append(values, headers)
		}
	}
	return append(values, m)
}

// payload is the payload as gojq takes it, with numbers as they are written.
func payload(in render.Input) (any, error) {
	body := in.Body()
	if len(body) > MaxInput {
		return nil, faultf("the payload has more than %d bytes", MaxInput)
	}
	if !in.JSON() && !jsonbody.Valid(body) {
		return nil, nil
	}
	if jsonbody.Depth(jsonbody.Trim(body)) > MaxDepth {
		return nil, errDeep
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, fault("the payload can't be read")
	}
	if longDigits(body) { // or a text with many digits in it
		s := size{left: math.MaxInt}
		if s.deep(v, 0); s.err != nil {
			return nil, s.err
		}
	}
	return v, nil
}

// longDigits reports whether there may be a number that is too long.
func longDigits(body []byte) bool {
	run := 0
	for _, c := range body {
		if c-'0' > 9 && c != '.' {
			run = 0
		} else if run++; run > digits/4 { // with fraction and exponent it has three runs
			return true
		}
	}
	return false
}

// encode writes a result. It is measured first: one value may stand in many
// places of another, which is then far longer than the memory that it takes.
func encode(v any, most int) ([]byte, error) {
	s := size{left: most, text: true}
	if s.deep(v, 0); s.err != nil {
		if errors.Is(s.err, errWork) {
			s.err = errLong
		}
		return nil, s.err
	}
	out, err := gojq.Marshal(v)
	if err != nil {
		return nil, fault("the result can't be written")
	}
	if len(out) > most {
		return nil, errLong
	}
	return out, nil
}
