package render

import (
	"cmp"
	"encoding/json"
	"reflect"
	"strconv"

	"sluice/core/jsonbody"
)

// The comparisons of templates. Numbers compare as numbers, whole ones of up to
// 64 bits exactly and others as float64 does; beside a string, a number is equal
// to its text. Nothing and null equal each other alone, and are neither less nor
// greater than anything. All other pairs of kinds are an error.

// eq reports whether a equals b, or one of the others.
func eq(a, b any, others ...any) (bool, error) {
	same, err := equal(a, b)
	for i := 0; i < len(others) && err == nil && !same; i++ {
		same, err = equal(a, others[i])
	}
	return same, err
}

func ne(a, b any) (bool, error) {
	same, err := equal(a, b)
	return !same && err == nil, err
}

func lt(a, b any) (bool, error) { return less(a, b) }

func gt(a, b any) (bool, error) { return less(b, a) }

func le(a, b any) (bool, error) {
	if is, err := less(a, b); is || err != nil {
		return is, err
	}
	return equal(a, b)
}

func ge(a, b any) (bool, error) { return le(b, a) }

func equal(a, b any) (bool, error) {
	ka, kb := kindOf(a), kindOf(b)
	switch {
	case ka == jsonbody.Null || kb == jsonbody.Null:
		return ka == kb, nil
	case ka == jsonbody.Number && kb == jsonbody.Number:
		return compareNumbers(a, b) == 0, nil
	case isText(ka) && isText(kb):
		return textOf(a) == textOf(b), nil
	case ka == jsonbody.Bool && kb == jsonbody.Bool:
		return a == b, nil
	}
	return false, incomparable(ka, kb)
}

func less(a, b any) (bool, error) {
	ka, kb := kindOf(a), kindOf(b)
	switch {
	case ka == jsonbody.Null || kb == jsonbody.Null:
		return false, nil
	case ka == jsonbody.Number && kb == jsonbody.Number:
		return compareNumbers(a, b) < 0, nil
	case ka == jsonbody.String && kb == jsonbody.String:
		return textOf(a) < textOf(b), nil
	}
	return false, incomparable(ka, kb)
}

func incomparable(a, b jsonbody.Kind) error {
	return faultf("can't compare %s with %s", Named(a), Named(b))
}

func isText(k jsonbody.Kind) bool { return k == jsonbody.String || k == jsonbody.Number }

// textOf is a string or number as templates print it, which does not fail.
func textOf(v any) string {
	s, _ := out(v)
	return s
}

// number is a number to compare with.
type number struct {
	float float64
	exact int64
	whole bool // exact is the number
}

// numberOf is v, one of an event, a literal or a function's result, as a number.
func numberOf(v any) (number, bool) {
	if n, ok := v.(json.Number); ok {
		if i, err := strconv.ParseInt(string(n), 10, 64); err == nil {
			return number{float: float64(i), exact: i, whole: true}, true
		}
		f, _ := strconv.ParseFloat(string(n), 64) // beyond its range it is an infinity, which does
		return number{float: f}, true
	}
	switch r := reflect.ValueOf(v); {
	case r.CanInt():
		return number{float: float64(r.Int()), exact: r.Int(), whole: true}, true
	case r.CanUint():
		return number{float: float64(r.Uint())}, true
	case r.CanFloat():
		return number{float: r.Float()}, true
	}
	return number{}, false
}

func compareNumbers(a, b any) int {
	x, _ := numberOf(a)
	y, _ := numberOf(b)
	if x.whole && y.whole {
		return cmp.Compare(x.exact, y.exact)
	}
	return cmp.Compare(x.float, y.float)
}
