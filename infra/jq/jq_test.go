package jq_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/itchyny/gojq"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"sluice/infra/jq"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// event is an event of source "shop", id "e1" and one header.
type event string

func (event) ID() string                  { return "e1" }
func (event) Source() string              { return "shop" }
func (e event) Body() []byte              { return []byte(e) }
func (event) JSON() bool                  { return false }
func (e event) Header(name string) string { return e.Headers()[name] }
func (event) Headers() map[string]string  { return map[string]string{"x-kind": "big"} }

// none is what a run says that puts out nothing.
const none = "(nothing)"

func run(t testing.TB, program, body string) (string, error) {
	t.Helper()
	p, err := jq.Compile(program)
	require.NoError(t, err, program)
	out, ok, err := p.Run(t.Context(), event(body))
	if err == nil && !ok {
		return none, nil
	}
	return string(out), err
}

func TestRun(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, program, body, want string }{
		{"a filter", `.type == "order"`, `{"type":"order"}`, `true`},
		{"a transform", `{b: .a, id: $id}`, `{"a":[1]}`, `{"b":[1],"id":"e1"}`},
		{"keys are sorted", `.`, `{"b":1,"a":2}`, `{"a":2,"b":1}`},
		{"the last of two keys", `.`, `{"a":1,"a":2}`, `{"a":2}`},
		{"nothing", `empty`, `1`, none},
		{"nothing selected", `select(.a)`, `{}`, none},
		{"the first of many", `.[]`, `[3,4]`, `3`},
		{"the first before an error", `1, error`, ``, `1`},
		{"the variables", `[$id, $source, $headers["x-kind"], $headers.none]`, ``, `["e1","shop","big",null]`},
		{"variables in objects", `{$id, $source}`, ``, `{"id":"e1","source":"shop"}`},
		{"variables in functions", `def f: $id; f`, ``, `"e1"`},
		{"no JSON", `.`, `k=v`, `null`},
		{"no body", `.`, ``, `null`},
		{"two values are no JSON", `.`, `1 2`, `null`},
		{"spaces around", `.`, " [1 ,\n2] ", `[1,2]`},
		{"a big integer", `.`, `123456789012345678901234567890`, `123456789012345678901234567890`},
		{"a big integer in sums", `. + 1`, `123456789012345678901234567890`, `123456789012345678901234567891`},
		{"a decimal as written", `.a`, `{"a":1.50}`, `1.50`},
		{"an exponent as written", `.`, `[1E5,-0.0,1e999]`, `[1E5,-0.0,1e999]`},
		{"a decimal in sums", `.a + 0`, `{"a":1.50}`, `1.5`},
		{"many decimals in sums", `. + 0`, `0.1234567890123456789`, `0.12345678901234568`},
		{"too great for sums", `. + 0`, `1e999`, `1.7976931348623157e+308`},
		{"a number of 1000 digits", `.`, strings.Repeat("1", 1000), strings.Repeat("1", 1000)},
		{"a text of 5000 digits", `.a`, `{"a":"` + strings.Repeat("1", 5000) + `"}`, `"` + strings.Repeat("1", 5000) + `"`},
		{"text as it is", `.`, `"<é\u0000😀>"`, `"<é\u0000😀>"`},
		{"text that is not UTF-8", `.`, "\"\xff\"", `"` + "\uFFFD" + `"`},
		{"no environment", `[$ENV, env]`, ``, `[{},{}]`},
		{"an error that is caught", `try error("x") catch .`, ``, `"x"`},
		{"a time", `.t | todate`, `{"t":0}`, `"1970-01-01T00:00:00Z"`},
		{"a own function of a known name", `def gsub(a; b): "mine"; gsub("a"; "b")`, `"a"`, `"mine"`},
		{"deep", `.`, deep(1000), deep(1000)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := run(t, c.program, c.body)
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
}

func TestRunFails(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, program, body, want string }{
		{"the program's own", `error("no")`, ``, `error: no`},
		{"an object", `error({a: 1})`, ``, `the program calls error`},
		{"halt", `halt`, ``, `the program halts`},
		{"halt_error", `"x" | halt_error`, ``, `the program halts`},
		{"a wrong type", `.a`, `"x"`, `expected an object but got: string`},
		{"a long text", `error("` + strings.Repeat("é", 300) + `")`, ``, `error: ` + strings.Repeat("é", 95) + `…`},
		{"two lines", `error("a\nb")`, ``, `error: a b`},
		{"words of the payload", `error`, `"a"`, `the program calls error`},
		{"an integer that is great", `.[]`, `123456789012345678901234567890`, `cannot iterate over: number`},
		{"two types", `.a + .b`, `{"a":{},"b":[1]}`, `cannot add: object and array`},
		{"arguments", `startswith(1)`, `"x"`, `startswith(number) cannot be applied to: string`},
		{"an error within one", `fromjson`, `"s3cret"`, `fromjson cannot be applied to this string`},
		{"too deep", `.`, deep(1001), `a value is nested more than 1000 deep`},
		{"a number of 1001 digits", `.`, "[" + strings.Repeat("1", 1001) + "]", `a number has more than 1000 digits`},
		{"a pattern", `test("(")`, `"x"`, "a regular expression can't be parsed: missing closing )"},
		{"flags", `test("a"; "x")`, `"x"`, `the flags of a regular expression are g, i and m`},
		{"no string to match", `test("a")`, `1`, `test cannot be applied to: number`},
		{"an array as index", `. as $x | [1] | .[$x]`, `[1]`, `an array can't be an index; indices finds one in another`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := run(t, c.program, c.body)
			require.EqualError(t, err, c.want)
			require.LessOrEqual(t, len(err.Error()), 200)
		})
	}
}

func TestCompileFails(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ program, want string }{
		{``, `missing query (try ".")`},
		{`.a | }`, `1:6: unexpected token "}"`},
		{".a |\n  (1", `2:5: unexpected EOF`},
		{`foo(1)`, `function not defined: foo/1`},
		{`$x`, `variable not defined: $x`},
		{`now`, `now can't be used: the answer would be another on every try`},
		{`[.[] | {a: (now - 1)}]`, `now can't be used: the answer would be another on every try`},
		{`"\(now)"`, `now can't be used: the answer would be another on every try`},
		{`def f: localtime; f`, `localtime can't be used: the answer would depend on where the program runs`},
		{`input`, `input can't be used: a program sees one payload`},
		{`first(inputs)`, `inputs can't be used: a program sees one payload`},
		{`input_filename`, `input_filename can't be used: a program sees one payload`},
		{`debug`, `debug can't be used: there is nowhere to write to`},
		{`import "a" as a; .`, `there are no modules`},
		{`include "a"; .`, `there are no modules`},
		{`$__run`, `$__run is no name for programs: those that begin with _ are taken`},
		{`1 as $__run | .`, `$__run is no name for programs: those that begin with _ are taken`},
		{`. as {$__run} | .`, `$__run is no name for programs: those that begin with _ are taken`},
		{`def _deep(r): .; .`, `_deep is no name for programs: those that begin with _ are taken`},
		{`_multiply(1; 2)`, `_multiply is no name for programs: those that begin with _ are taken`},
		{strings.Repeat(" ", jq.MaxProgram) + ".", `a program has at most 16384 bytes; this one has 16385`},
	} {
		t.Run(c.program[:min(len(c.program), 20)], func(t *testing.T) {
			t.Parallel()
			_, err := jq.Compile(c.program)
			require.EqualError(t, err, c.want)
		})
	}
}

// TestEqualsGojq shows that guards and our own regular expressions change no result.
func TestEqualsGojq(t *testing.T) {
	t.Parallel()
	body := `{"a":[3,1,2,1],"o":[{"k":"x","v":1},{"k":"y","v":[2]},{"k":"x","v":null}],"s":"foo bär, foo","n":-1.5,
		"d":{"e":{"f":"g"}},"t":true,"z":null,"b":123456789012345678901234567890,"m":[[1,2],[3],[]],"kv":[{"name":"p","value":7}]}`
	for _, program := range equal {
		t.Run(program, func(t *testing.T) {
			t.Parallel()
			var payload any // gojq writes to it
			dec := json.NewDecoder(strings.NewReader(body))
			dec.UseNumber()
			require.NoError(t, dec.Decode(&payload))
			q, err := gojq.Parse("[" + program + "]")
			require.NoError(t, err)
			want, _ := q.Run(payload).Next()
			got, gotErr := run(t, "["+program+"]", body)
			if err, ok := want.(error); ok {
				require.EqualError(t, gotErr, jq.FaultOf(program, err).Error())
				return
			}
			require.NoError(t, gotErr)
			text, err := gojq.Marshal(want)
			require.NoError(t, err)
			require.Equal(t, string(text), got)
		})
	}
}

var equal = []string{
	`.a | sort, unique, min, max, add, reverse, length, sort_by(-.), any, all, flatten, tojson, join("-")`,
	`.o | group_by(.k), unique_by(.k), min_by(.v), max_by(.v), map(.v), map_values(.k), INDEX(.k), (.[] | to_entries)`,
	`.o[] | with_entries(.value |= tostring), del(.v), has("k"), keys, "\(.k)=\(.v)", @json "x\(.)", @base64 "\(.k)"`,
	`.kv | from_entries`, `.s | @html, @uri, @csv "\([.])", @sh, @base64, ascii_downcase, explode, (explode | implode)`,
	`.s | test("FOO"), test("FOO"; "i"), test(["FOO", "i"]), match("o"), match("o"; "g"), match(["O", "gi"]), match("(?<x>b)(ä)?(q)?"; "g")`,
	`.s | capture("(?<f>f)(?<q>q)?"), capture("(?<f>f)"; "g"), scan("o+"), scan("(f)(o)"), scan("F"; "i"), splits(", *"), split(", *"; null)`,
	`.s | sub("o"; "0"), gsub("o"; "0"), gsub("(?<x>o+)"; "<\(.x)>"), gsub("O"; "0"; "i"), sub("q"; "x"), gsub("ä|$"; "e"), gsub(""; "-")`,
	`.s | gsub("o"; "0", "1"), sub("o"; empty), gsub("o"; empty), sub("^"; "x"), (try gsub("o"; 1) catch .)`,
	`.s | split(", "), split(""), index("foo"), rindex("foo"), indices("foo"), contains("bar"), startswith("foo"), ltrimstr("foo"), .[2:4], ascii_upcase`,
	`.a + [1], .a - [1], .n + 1, .n - 1, .n * 2, .n / 2, (.b * .b), (.b % 7), .s + "x", .s * 2, 2 * .s, .s * 0, .s / ",", .d * {e: {h: 1}}, .d + {x: 1}`,
	`(1, 2) + (10, 20), (1, 2) * (10, 20), (1, 2) - (10, 20), [(1, 2) == (1, 2)], (.a[] < 2)`,
	`.a == .m, .a < .m, .d != .d, .s == "x", .z == null, .t == true, .n > 1, .n >= .n`,
	`.a |= map(. + 1), .a += [9], .n *= 2, .n -= 1, .n /= 2, .s *= 2, .z //= 4, .a[1] = 7, .a[0] |= empty, .d.e.f |= ascii_upcase, .a[1:] = [0]`,
	`(.a[] | select(. > 1)) += 10, (.a[] |= (., .)), (.a += ([1], [2])), (.n += (.n, 1)), (.a[.a[1]] = 0), (.o[] |= del(.k))`,
	`.m | transpose, flatten, flatten(1), (try flatten(-1) catch .), map(add), .[0], .[-1], first, last, nth(1)`,
	`paths, [paths(type == "number")], path(..), getpath(["d", "e", "f"]), setpath(["d", "x"]; 1), delpaths([["a"], ["d", "e"]]), pick(.d.e), tostream`,
	`walk(if type == "number" then . + 1 else . end), [limit(2; .a[])], [range(5)], [range(0; 9; 3)], first(.a[]), [.a[] | until(. > 50; . * 2)], isempty(.a[])`,
	`reduce .a[] as $x (0; . + $x), [foreach .a[] as $x (0; . + $x; [$x, .])], [.a[] as [$x] ?// $x | $x], (label $out | .a[] | ., break $out)`,
	`.a | contains([1]), inside([1, 2, 3, 4]), indices([1, 2]), indices(1), index(1), IN(2), any(. == 2), all(. < 9), combinations(2)?`,
	`try error("x") catch ., (.s | tonumber? // "no"), ("12" | tonumber), (.n | floor, fabs), (.a | @csv, @tsv), ([1, 2] | tojson | fromjson)`,
	`.["a"], ."s", .d["e"].f, .a[1:3], .a[-1:], .o[0].k, .a["x"]?, (.q | .w), ..?, [.. | scalars], {(.s): 1, "x\(.n)": 2, "s"}, {a, s}, {a: (1, 2)}`,
	`. as {a: [$x, $y], $s} | [$x, $y, $s]`, `def f(g): g | g; .a[0] | f(. * 2)`, `def f($x; g): $x + g; f(1; 2)`, `def fac: if . < 2 then 1 else . * (. - 1 | fac) end; 30 | fac`,
	`.a | first(.[] | select(. == 2)) |= 5`, `.o | (.[] | select(.k == "x") | .v) = 0`, `path(.a[0], .d.e)`, `del(.a[0, 1], .d.e)`, `to_entries | map(.key) | join(",")`,
	`0 | todate, (strftime("%Y")), gmtime, ("2020-01-01T00:00:00Z" | fromdate, strptime("%Y-%m-%dT%H:%M:%SZ"))`, `[.[] | numbers, strings, nulls, booleans]`, `-(.n), -.n, +1`,
	`.a[0] + .s`, `.s - 1`, `.d | .[0]`, `[1] | .["x"]`, `{} | keys | .[0] * 2`, `.a | implode | explode`, `"x" | error`, `ltrimstr(1)`,
}

func TestConcurrent(t *testing.T) {
	t.Parallel()
	p, err := jq.Compile(`{n: (.n + 1), s: (.s | gsub("(?<x>a)"; "<\(.x)>")), d: ("a\(.n)" | test("^a(\($id))?")), h: $headers} | .n |= . * 2 | del(.h)`)
	require.NoError(t, err)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				out, ok, err := p.Run(t.Context(), event(`{"n":1,"s":"banana"}`))
				if err != nil || !ok || string(out) != `{"d":true,"n":4,"s":"b<a>n<a>n<a>"}` {
					t.Errorf("%s %v %v", out, ok, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// TestConcurrentConstants shows that no run writes to what others read: gojq
// deletes in place, and keeps constants from run to run.
func TestConcurrentConstants(t *testing.T) {
	t.Parallel()
	for _, program := range []string{
		`{a: {b: 1}, c: 2, d: [1, {e: 1}]} | del(.c)`, `{a: ({b: 1}), c: -2} | del(.c)`, `[{a: {b: {}}}, [[1]], 3] | del(.[2])`,
		`{a: {"b": 1}, c: 1} | .c |= empty`, `{a: {b: "x"}, c: 1} | map_values(select(. != 1))`, `{c: 1} | .a = {b: [1]} | del(.c)`,
		`({a: (1 | {b: (. | 2)}), c: null} | delpaths([["c"]]))`, `{a: {b: @text "x"}, c: 1} | del(.c)`, `[[1, 2], [(3 | 4)], 5] | .[2] |= empty`,
	} {
		t.Run(program, func(t *testing.T) {
			t.Parallel()
			p, err := jq.Compile(program)
			require.NoError(t, err)
			var wg sync.WaitGroup
			for range 4 {
				wg.Go(func() {
					for range 100 {
						if _, ok, err := p.Run(t.Context(), event(`1`)); err != nil || !ok {
							t.Error(err)
						}
					}
				})
			}
			wg.Wait()
		})
	}
}

func TestCanceled(t *testing.T) {
	t.Parallel()
	p, err := jq.Compile(`.`)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err = p.Run(ctx, event(`1`))
	require.ErrorIs(t, err, context.Canceled)
}

func deep(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

func BenchmarkRun(b *testing.B) {
	body := event(`{"type":"order","customer":{"id":"c-1","name":"Ada"},"total":12.50,"items":[{"sku":"a","n":1},{"sku":"b","n":2}],"pad":"` + strings.Repeat("x", 850) + `"}`)
	for _, program := range []string{`.type == "order"`, `{id: .customer.id, total, n: ([.items[].n] | add)}`} {
		b.Run(program, func(b *testing.B) {
			p, err := jq.Compile(program)
			require.NoError(b, err)
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, ok, err := p.Run(b.Context(), body); err != nil || !ok {
					b.Fatal(err)
				}
			}
		})
	}
}
