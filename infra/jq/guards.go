package jq

import (
	"math"

	"github.com/itchyny/gojq"
)

// runVariable holds the meter of a run, for the guards.
const runVariable = "$__run"

// The guards are functions that pass their input on, if what is about to be done
// with it is within the bounds. The last argument of all is the meter.
const (
	guardFlat    = "_flat"    // it is copied, but what is in its members is not
	guardDeep    = "_deep"    // all of it is gone through
	guardText    = "_text"    // and a text is made of it, or as much
	guardMany    = "_many"    // and values are made of its bytes
	guardNumber  = "_number"  // it is read as a number
	guardIndex   = "_at"      // it is an index
	guardWritten = "_written" // and perhaps of an array that is written to
	guardPath    = "_path"    // it is a path, or an array of them
	guardSquare  = "_square"  // every row of it gets as long as the longest
	guardTimes   = "_times"   // it is multiplied by the first argument
	guardJoin    = "_join"    // it stands between the members of the first argument
	guardCompare = "_compare" // its members are compared with those of the first argument
	guardContain = "_contain" // all that is in it is compared with all in the first argument
)

// Weights of guards, in bytes that are made of one.
const (
	textWeight = 8  // "\u0001" of one, with room to grow into
	manyWeight = 32 // a string and its place in an array

	compareWeight = 4 // of one step of a comparison, in bytes that are copied meanwhile
)

// guards are the options that define the guards, and what the prelude calls.
func guards() []gojq.CompilerOption {
	options := []gojq.CompilerOption{gojq.WithFunction(matchFunction, 4, 4, match)}
	one := func(name string, f func(*meter, any) error) {
		options = append(options, gojq.WithFunction(name, 1, 1, func(v any, args []any) any {
			if err := f(args[0].(*meter), v); err != nil {
				return err
			}
			return v
		}))
	}
	two := func(name string, f func(m *meter, v, with any) error) {
		options = append(options, gojq.WithFunction(name, 2, 2, func(v any, args []any) any {
			if err := f(args[1].(*meter), v, args[0]); err != nil {
				return err
			}
			return v
		}))
	}
	deep := func(weight int) func(*meter, any) error {
		return func(m *meter, v any) error {
			_, err := m.deep(v, weight)
			return err
		}
	}
	one(guardFlat, chargeFlat)
	one(guardDeep, deep(1))
	one(guardText, deep(textWeight))
	one(guardMany, deep(manyWeight))
	one(guardNumber, chargeNumber)
	one(guardIndex, chargeIndex)
	one(guardWritten, chargeWritten)
	one(guardPath, chargePath)
	one(guardSquare, chargeSquare)
	two(guardTimes, chargeTimes)
	two(guardJoin, chargeJoin)
	two(guardCompare, chargeCompare)
	two(guardContain, chargeContain)
	return options
}

func chargeFlat(m *meter, v any) error {
	if err := short(v); err != nil {
		return m.fail(err)
	}
	return m.charge(flat(v))
}

func chargeNumber(m *meter, v any) error {
	if s, ok := v.(string); ok && len(s) > digits {
		return m.fail(errDigits)
	}
	return chargeFlat(m, v)
}

// chargeIndex refuses what gojq takes for a search.
func chargeIndex(m *meter, v any) error {
	if _, ok := v.([]any); ok {
		return fault("an array can't be an index; indices finds one in another")
	}
	return chargeFlat(m, v)
}

// chargeWritten is for an array of so many, as there may be none of that length yet.
func chargeWritten(m *meter, v any) error {
	if err := chargeIndex(m, v); err != nil {
		return err
	}
	i, ok := gojq.ToInt(v)
	switch {
	case !ok || i < lowIndex:
		return nil
	case i > maxIndex:
		return m.fail(errIndex)
	}
	return m.charge(element * i)
}

func chargePath(m *meter, v any) error {
	if _, err := m.deep(v, 1); err != nil {
		return err
	}
	path, _ := v.([]any)
	if len(path) > MaxDepth && isPath(path) {
		return m.fail(errDeep)
	}
	for _, e := range path {
		if steps, ok := e.([]any); ok && !isPath(path) {
			if err := chargePath(m, steps); err != nil {
				return err
			}
		} else if err := chargeWritten(m, e); err != nil {
			return err
		}
	}
	return nil
}

// isPath tells a path from an array of paths.
func isPath(v []any) bool {
	for _, e := range v {
		if _, ok := e.([]any); !ok {
			return true
		}
	}
	return false
}

func chargeSquare(m *meter, v any) error {
	rows, _ := v.([]any)
	longest := 0
	for _, r := range rows {
		row, _ := r.([]any)
		longest = max(longest, len(row))
	}
	return m.product(element*len(rows), longest)
}

func chargeTimes(m *meter, v, with any) error {
	if s, ok := with.(string); ok {
		v, with = s, v
	}
	s, isString := v.(string)
	n, isNumber := gojq.ToFloat64(shorten(with))
	if isString && isNumber {
		return m.product(len(s), int(math.Ceil(min(max(n, 1), maxWork+1)))) // NaN is one, too
	}
	if _, err := m.deep(v, 1); err != nil {
		return err
	}
	_, err := m.deep(with, 1)
	return err
}

// shorten is v unless it is a number that takes long to read.
func shorten(v any) any {
	if short(v) != nil {
		return nil
	}
	return v
}

func chargeJoin(m *meter, v, with any) error {
	n, err := m.deep(with, textWeight)
	if err != nil {
		return err
	}
	s, _ := v.(string)
	return m.product(n, len(s))
}

// chargeCompare is for comparing every member of one with those of the other.
func chargeCompare(m *meter, v, with any) error {
	n, err := m.deep(v, 1)
	if err != nil {
		return err
	}
	times, err := m.deep(with, 1)
	if err != nil {
		return err
	}
	if count(v) > maxWork/times || count(with) > maxWork/n {
		return m.fail(errWork)
	}
	return m.product(min(count(v)*times, count(with)*n), compareWeight)
}

// count is how many values or bytes there are to begin a comparison at.
func count(v any) int {
	switch v := v.(type) {
	case string:
		return len(v)
	case []any:
		return len(v)
	}
	return 1
}

// chargeContain is for comparing all that is in one with all that is in the other.
func chargeContain(m *meter, v, with any) error {
	n, err := m.deep(v, 1)
	if err != nil {
		return err
	}
	times, err := m.deep(with, 1)
	if err != nil {
		return err
	}
	_, isString := v.(string)
	if _, areStrings := with.(string); isString && areStrings {
		return nil // this is as fast as reading them
	}
	return m.product(n, times)
}
