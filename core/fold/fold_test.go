package fold_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/core/fold"
)

type input struct {
	body    string
	headers map[string]string
}

func (in input) ID() string                 { return "evt1" }
func (in input) Source() string             { return "orders" }
func (in input) Body() []byte               { return []byte(in.body) }
func (in input) JSON() bool                 { return false }
func (in input) Header(name string) string  { return in.headers[name] }
func (in input) Headers() map[string]string { return in.headers }

// known is an event that is known to be JSON.
type known struct {
	input
	b []byte
}

func (k *known) Body() []byte { return k.b }
func (k *known) JSON() bool   { return true }

var window = fold.Window{Buffer: "usage", StartMs: 1796032800000, EndMs: 1796032860000}

func compile(t require.TestingT, exprs ...string) *fold.Fold {
	columns := make([]fold.Column, len(exprs))
	for i, e := range exprs {
		columns[i] = fold.Column{Name: fmt.Sprintf("c%d", i), Expr: e}
	}
	f, err := fold.Compile(columns)
	require.NoError(t, err)
	return f
}

// columnsOf is the columns' part of a row's body, as JSON text without braces.
func columnsOf(t require.TestingT, r fold.Row) string {
	_, columns, ok := strings.Cut(string(r.Body), `,"c0":`)
	require.True(t, ok, "%s", r.Body)
	return `"c0":` + strings.TrimSuffix(columns, "}")
}

// one folds bodies by one expression, and is what comes out.
func one(t require.TestingT, expr string, bodies ...string) (got string, whole bool) {
	table := compile(t, expr).Table(window)
	whole = true
	for _, b := range bodies {
		whole = table.Add("k", input{body: b}, 1) && whole
	}
	return strings.TrimPrefix(columnsOf(t, table.Rows()[0]), `"c0":`), whole
}

func TestFunctions(t *testing.T) {
	t.Parallel()
	const a, none, null, text = `{"a":2.50}`, `{}`, `{"a":null}`, `a=1`
	for _, tc := range []struct {
		expr   string
		bodies []string
		want   string
	}{
		{"count", []string{a, none, null, text, ``}, "5"},
		{"count .json.a", []string{a, none, null, text, `{"a":"x"}`, `{"a":[]}`}, "3"},
		{"count .json.a", []string{none}, "0"},
		{"count .id", []string{none, none}, "2"},
		{"count .headers.none", []string{none}, "0"},
		{"sum .json.a", []string{a, none, null, text}, "2.5"},
		{"sum .json.a", []string{none, null, text}, "0"},
		{"sum .json", []string{"1", "2", "null", "", "x"}, "3"},
		{"min .json.a", []string{a, none, `{"a":1e1}`}, "2.50"},
		{"max .json.a", []string{a, none, `{"a":1E+1}`, `{"a":10.0}`}, "1E+1"},
		{"min .json.a", []string{none, null, text}, "null"},
		{"max .json.a", []string{none}, "null"},
		{"max .json", []string{"-1", "-2"}, "-1"},
		{"min .json", []string{"-0", "0"}, "-0"},
		{"max .json", []string{"12345678901234567890", "12345678901234567891", "12345678901234567890"}, "12345678901234567891"},
		{"min .json", []string{"0.1234567890123456789", "0.123456789012345678", "0.12345678901234568"}, "0.123456789012345678"},
		{"avg .json.a", []string{none, null}, "null"},
		{"avg .json.a", []string{a, none, `{"a":3}`}, "2.75"},
		{"avg .json", []string{"1", "1", "2"}, "1.3333333333333333"},
		{"avg .json", []string{"0.1", "0.2"}, "0.15"},
		{"avg .json", []string{"1", "-1"}, "0"},
		{"avg .json", []string{"1e22", "1e22"}, "1e+22"},
		{"avg .json", []string{"1e-7"}, "1e-07"},
		{"avg .json", []string{"123456789012345678"}, "123456789012345680"},
		{"avg .json", []string{"1e400", "3e400"}, "2e+400"},
		{"avg .json", []string{"-1e400", "0", "0"}, "-3.3333333333333333e+399"},
		{"avg .json", []string{"1e-400"}, "1e-400"},
		{"first .json.a", []string{none, null, `{"a": {"b": [ 1, "<é>" ]}}`, a}, `{"b":[1,"<é>"]}`},
		{"last .json.a", []string{`{"a":{"b":1}}`, `{"a": true }`, none, null, text}, "true"},
		{"first .json", []string{text, ` {"a" : 1} `}, `{"a":1}`},
		{"last .json.a", []string{`{"a":"x\u00e9\ud800"}`}, `"x\u00e9\ud800"`},
		{"last .json.a", []string{"{\"a\":\"\xff\xfe\"}"}, "\"\ufffd\ufffd\""},
		{"last .json.a", []string{`{"a":""}`}, `""`},
		{"first .json.a", []string{none}, "null"},
		{"last .json.a", []string{none}, "null"},
		{"last .source", []string{none}, `"orders"`},
		{"first .headers.none", []string{none}, "null"},
	} {
		got, whole := one(t, tc.expr, tc.bodies...)
		require.Equal(t, tc.want, got, "%s of %q", tc.expr, tc.bodies)
		require.True(t, whole)
	}
}

func TestSum(t *testing.T) {
	t.Parallel()
	const nines = "999999999999999999"
	for _, tc := range []struct {
		numbers []string
		want    string
	}{
		{[]string{"0.1", "0.2"}, "0.3"},
		{[]string{"0.1", "-0.1"}, "0"},
		{[]string{"-0.0", "-0"}, "0"},
		{[]string{"-1.50", "0e999999999"}, "-1.5"},
		{[]string{"1e2", "1E-2", "1.0e+0"}, "101.01"},
		{[]string{"9223372036854775807", "1"}, "9223372036854775808"},
		{[]string{"-9223372036854775808", "-1"}, "-9223372036854775809"},
		{[]string{nines, nines, nines, nines, nines, nines, nines, nines, nines, nines}, "9999999999999999990"},
		{[]string{"12345678901234567890123456789012345678901", "0.5"}, "12345678901234567890123456789012345678901.5"},
		{[]string{"1e400", "1", "-1e400"}, "1"},
		{[]string{"1e400", "-1e-400", "-1e400"}, "-1e-400"},
		{[]string{"1e20"}, "100000000000000000000"},
		{[]string{"1e21"}, "1e21"},
		{[]string{"-12.5e30"}, "-1.25e31"},
		{[]string{"1e-20"}, "0.00000000000000000001"},
		{[]string{"1.5e-20"}, "1.5e-20"},
		{[]string{"1e-21"}, "1e-21"},
		{[]string{"1" + strings.Repeat("0", 150)}, "1e150"},
		{[]string{"0." + strings.Repeat("0", 399) + "1"}, "1e-400"},
		{[]string{"1." + strings.Repeat("0", 300)}, "1"},
		{[]string{"1e400", "1e400", "1e400", "1e400", "1e400", "1e400", "1e400", "1e400", "1e400", "1e400"}, "1e401"},
	} {
		got, whole := one(t, "sum .json", tc.numbers...)
		require.Equal(t, tc.want, got, "%q", tc.numbers)
		require.True(t, whole)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	const numbers = "; it must be a number, or absent"
	digits := strings.Repeat("1", 101)
	deep := func(n int) string { return `{"a":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}` }
	for _, tc := range []struct{ expr, body, want string }{
		{"sum .json.a", `{"a":1}`, ""},
		{"sum .json.a", `{}`, ""},
		{"sum .json.a", `a=1`, ""},
		{"sum .json.a", `null`, ""},
		{"sum .json.a", `{"a":"1"}`, "column c0: .json.a is a string" + numbers},
		{"min .json.a", `{"a":true}`, "column c0: .json.a is a boolean" + numbers},
		{"max .json.a", `{"a":[1]}`, "column c0: .json.a is an array" + numbers},
		{"avg .json", `{"a":1}`, "column c0: .json is an object" + numbers},
		{"count .json.a.b", `{"a":1}`, "column c0: .json.a.b: can't read field b of a number"},
		{"sum .json.a", `{"a":1` + digits[1:] + `}`, "column c0: .json.a has 101 significant digits; it may have 100"},
		{"sum .json.a", `{"a":0.0` + digits[1:] + `00}`, ""},
		{"sum .json.a", `{"a":1e401}`, "column c0: .json.a is too large; it may be 0, or from 1e-400 to below 1e401 in size"},
		{"sum .json.a", `{"a":-9.99e400}`, ""},
		{"sum .json.a", `{"a":9.99e-401}`, "column c0: .json.a is too small; it may be 0, or from 1e-400 to below 1e401 in size"},
		{"sum .json.a", `{"a":1e99999999999999999999}`, "column c0: .json.a is too large"},
		{"sum .json.a", `{"a":1e-99999999999999999999}`, "column c0: .json.a is too small"},
		{"sum .json.a", `{"a":0e99999999999999999999}`, ""},
		{"sum .json.a", `{"a":0.` + strings.Repeat("0", 511) + `}`, "column c0: .json.a is a number of 513 bytes; it may have 512"},
		{"last .json.a", `{"a":1e401}`, ""},
		{"count .json.a", `{"a":"x"}`, ""},
		{"last .json.a", deep(1000), ""},
		{"first .json.a", deep(1001), "column c0: .json.a is nested more than 1000 deep"},
		{"count .json.a", deep(1001), ""},
	} {
		f, in := compile(t, tc.expr), input{body: tc.body}
		err := f.Check(in)
		if tc.want == "" {
			require.NoError(t, err, "%s of %s", tc.expr, tc.body)
		} else {
			require.ErrorContains(t, err, tc.want, "%s of %s", tc.expr, tc.body)
		}
		require.Equal(t, err == nil, f.Table(window).Add("k", in, 1))
	}
}

// TestCheckNames shows that an error names the column that asks for too much,
// not another of the same path.
func TestCheckNames(t *testing.T) {
	t.Parallel()
	f := compile(t, "count .json.a", "last .json.a", "count", "sum .json.a", "avg .json.a")
	require.ErrorContains(t, f.Check(input{body: `{"a":"x"}`}), "column c3: .json.a is a string")
}

// TestAddWhatCheckRefuses shows what is taken of an event that no longer fits.
func TestAddWhatCheckRefuses(t *testing.T) {
	t.Parallel()
	f := compile(t, "count", "count .json.a", "first .json.a", "last .json.a", "sum .json.a", "min .json.a", "avg .json.a", "sum .json.b", "count .json.a.x")
	for _, tc := range []struct{ body, want string }{
		{`{"a":"x","b":2}`, `"c0":1,"c1":1,"c2":"x","c3":"x","c4":0,"c5":null,"c6":null,"c7":2,"c8":0`},
		{`{"a":1e401,"b":2}`, `"c0":1,"c1":1,"c2":1e401,"c3":1e401,"c4":0,"c5":null,"c6":null,"c7":2,"c8":0`},
		{`{"a":` + strings.Repeat("[", 1001) + strings.Repeat("]", 1001) + `}`, `"c0":1,"c1":1,"c2":null,"c3":null,"c4":0,"c5":null,"c6":null,"c7":0,"c8":0`},
		{`7`, `"c0":1,"c1":0,"c2":null,"c3":null,"c4":0,"c5":null,"c6":null,"c7":0,"c8":0`},
	} {
		table := f.Table(window)
		require.False(t, table.Add("k", input{body: tc.body}, 1))
		require.Equal(t, tc.want, columnsOf(t, table.Rows()[0]), "%s", tc.body)
	}
}

func TestCompileErrors(t *testing.T) {
	t.Parallel()
	const name = `a name is of letters, digits and _, begins with no digit, and has at most 64 characters`
	long := strings.Repeat("x", 65)
	for _, tc := range []struct{ name, expr, want string }{
		{"", "count", `column "": ` + name},
		{"1a", "count", name},
		{"a-b", "count", name},
		{"a\"b", "count", name},
		{"é", "count", name},
		{long, "count", name},
		{"id", "count", `column "id": every row has id by itself; choose another name`},
		{"windowEnd", "count", `every row has windowEnd by itself`},
		{"total", "", `column "total": it has no function; it is such as "count" or "sum .json.amount"`},
		{"total", "summ .json.a", `there is no function "summ"; it is one of count, sum, min, max, avg, first, last`},
		{"total", "sum", `column "total": sum needs a path, such as "sum .json.amount"`},
		{"total", "sum .json.a .json.b", `sum takes one path, such as "sum .json.amount"`},
		{"total", "count {{ .json.a }}", `count takes one path, such as "count .json.amount"`},
		{"total", "sum .id", `sum reads numbers, and .id is a text; only .json has numbers`},
		{"total", "avg .headers.n", `avg reads numbers, and .headers.n is a text`},
		{"total", "last .amount", `an event has no field .amount`},
		{"total", "last json.a", `"json.a" is no path`},
	} {
		c := fold.Column{Name: tc.name, Expr: tc.expr}
		require.ErrorContains(t, fold.CheckColumn(c), tc.want)
		_, err := fold.Compile([]fold.Column{{Name: "a", Expr: "count"}, c})
		require.ErrorContains(t, err, tc.want)
	}
	require.NoError(t, fold.CheckColumn(fold.Column{Name: long[1:], Expr: "  max   .json.a.b "}))
	require.NoError(t, fold.CheckColumn(fold.Column{Name: "_Z9", Expr: "first .headers.x-team"}))

	_, err := fold.Compile([]fold.Column{{Name: "a", Expr: "count"}, {Name: "a", Expr: "count .id"}})
	require.EqualError(t, err, `column "a": there are two of that name`)
	many := make([]fold.Column, fold.MaxColumns+1)
	_, err = fold.Compile(many)
	require.EqualError(t, err, "a fold has at most 32 columns; these are 33")
}
