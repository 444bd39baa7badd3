package jq_test

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core/jsonbody"
	"sluice/infra/jq"
)

// Payloads of 1 MiB.
var (
	letters = `"` + strings.Repeat("a", 1<<20-2) + `"`
	zeros   = "[" + strings.Repeat("0,", 1<<19-1) + "0]"
	objects = "[" + strings.Repeat("{},", 1<<20/3-1) + "{}]"
)

// hostile are programs and payloads that would take all time or memory.
var hostile = []struct{ program, body string }{
	{`[range(1e9)]`, ``},
	{`[range(1e9) | {a: .}]`, ``},
	{`[range(1e9) | null | .[60000] = 1]`, ``},
	{`[range(1e9) | null | .[63] = 1]`, ``},
	{`[range(1e9) | {a: 1, b: 2, c: 3, d: 4, e: 5, f: 6, g: 7, h: 8, i: .}]`, ``},
	{`.[100000000] = 1`, ``},
	{`100000000 as $i | .[$i] = 1`, ``},
	{`def f: .[100000000]; f = 1`, ``},
	{`.[range(1e9)] = 1`, ``},
	{`setpath([100000000]; 1)`, ``},
	{`delpaths([[100000000]]) | pick(.[100000000])`, ``},
	{`(nth(100000000)) = 1`, ``},
	{`"x" * 1000000000`, ``},
	{`1000000000 as $n | ($n * $id)`, ``},
	{`$id | . *= 1000000000`, ``},
	{`reduce range(100) as $i ("x"; . + .)`, ``},
	{`reduce range(100) as $i ("x"; . += .)`, ``},
	{`reduce range(100) as $i ("x"; "\(.)\(.)")`, ``},
	{`reduce range(100) as $i ("x"; [., .] | add)`, ``},
	{`reduce range(100) as $i ("x"; [., .] | join("y"))`, ``},
	{`reduce range(100) as $i ([1]; . + .)`, ``},
	{`reduce range(100) as $i (3; . * .)`, ``},
	{`reduce range(100) as $i (0; [., .])`, ``},
	{`reduce range(100) as $i (0; [., .]) | tojson`, ``},
	{`reduce range(100) as $i (0; [., .]) | error`, ``},
	{`reduce range(100) as $i (0; [., .]) | . == [.[0], 1]`, ``},
	{`reduce range(100) as $i (0; [., .]) | flatten`, ``},
	{`reduce range(100) as $i (0; [., .]) | .[0] |= empty`, ``},
	{`reduce range(100) as $i (0; [., .]) | sort_by(.)`, ``},
	{`reduce range(1e9) as $i (0; [.])`, ``},
	{`reduce range(30) as $i ([0]; . + .) | . as $p | null | setpath($p; 1)`, ``},
	{`[[range(8000)]] + [range(8000) | []] | transpose`, ``},
	{`def f: f; f`, ``},
	{`def f: [f]; f`, ``},
	{`def f: f, f; f`, ``},
	{`def f: 1 + f; f`, ``},
	{`def f(g): f(g | g); f(.)`, ``},
	{`last(repeat(1))`, ``},
	{`try ("x" * 1000000000) catch "caught"`, ``},
	{`[.[] as $x | .[] as $y | .[] as $z | 1]`, zeros},
	{`. - .`, zeros},
	{`join("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")`, zeros},
	{`[range(1e9) as $i | reverse]`, zeros},
	{`contains(.)`, zeros},
	{`map(.a = 1) | tojson | fromjson | tojson`, objects},
	{`gsub("a"; "b")`, letters},
	{`[match("a"; "g")]`, letters},
	{`[splits("a")]`, letters},
	{`test("(a{500}){2}b")`, letters},
	{`.[:500000] as $x | index($x)`, letters},
	{`[., ., ., .] | map(explode)`, letters},
	{`[range(1e9) as $i | . + "b"]`, letters},
	{`. > 5`, strings.Repeat("1", 1<<20)},
	{`. == "x"`, "[" + strings.Repeat("1", 1<<20) + "]"},
	{`fromjson > 5`, `"` + strings.Repeat("1", 1<<20) + `"`},
	{`tonumber`, `"` + strings.Repeat("1", 1<<20) + `"`},
	{`.`, deep(9000)},
}

// TestHostile shows that each of these ends with an error, and soon, and takes
// memory within bounds. It does not run beside other tests, as it looks at what
// the process allocates.
func TestHostile(t *testing.T) { //nolint:paralleltest // see above
	for _, c := range hostile {
		t.Run(c.program, func(t *testing.T) {
			p, err := jq.Compile(c.program)
			require.NoError(t, err)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := time.Now()
			_, _, err = p.Run(t.Context(), event(c.body))
			took := time.Since(start)
			runtime.ReadMemStats(&after)
			require.Error(t, err)
			require.Less(t, (after.TotalAlloc-before.TotalAlloc)>>20, uint64(256), "MiB that were allocated")
			require.Less(t, took, 10*time.Second, "on the slowest of machines") // it is about 0.05 s
		})
	}
}

// TestLarge shows that the bounds leave room for what programs do with payloads
// of the greatest size that most events have.
func TestLarge(t *testing.T) {
	t.Parallel()
	item := `{"sku":"a-1234567","n":3,"price":12.50,"tags":["x","y"],"note":"` + strings.Repeat("n", 100) + `"},`
	body := `{"items":[` + strings.Repeat(item, 1499) + item[:len(item)-1] + `],"type":"order"}` // 256 KB
	for _, c := range []struct{ program, want string }{
		{`.type == "order"`, `true`},
		{`.items | length`, `1500`},
		{`[.items[].n] | add`, `4500`},
		{`.items | map(select(.n > 2)) | length`, `1500`},
		{`[.items[] | .n * .price] | add`, `56250`},
		{`.items | group_by(.sku) | length`, `1`},
		{`[.items[:100][].note | gsub("n"; "m")] | .[99] | length`, `100`},
		{`[.items[] | "\(.sku): \(.note)"] | join(", ") | length`, `169498`},
		{`. as $e | [range(.items | length) as $i | $e.items[$i].n] | add`, `4500`},
		{`reduce .items[] as $x ([]; . + [$x.n]) | length`, `1500`},
		{`.items[] |= del(.note) | .items | length`, `1500`},
		{`tojson | fromjson | .type`, `"order"`},
		{`.items[1499] | .price`, `12.50`},
	} {
		t.Run(c.program, func(t *testing.T) {
			t.Parallel()
			got, err := run(t, c.program, body)
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
}

// FuzzCompile shows that no text makes the compiler or a run panic.
func FuzzCompile(f *testing.F) {
	for _, p := range equal {
		f.Add(p)
	}
	for _, h := range hostile {
		f.Add(h.program)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := jq.Compile(text)
		if err != nil {
			requirePlain(t, err)
			return
		}
		_, _, err = p.Run(t.Context(), event(`{"a":[1,{"b":"x"}],"s":"abc","n":1.5}`))
		if err != nil {
			requirePlain(t, err)
		}
	})
}

// FuzzRun shows that no payload makes programs panic, or put out what is no JSON.
func FuzzRun(f *testing.F) {
	for _, s := range []string{
		`{"a":{"b":"x"},"b":[1,null]}`, `[1,"x",{},[2,[3]]]`, `"x\ud800"`, "{\"a\":\"\xff\"}", `k=v`, ``, `null`, `1e999999`, `-0.0`, deep(1001), `"2020-01-01T00:00:00Z"`,
	} {
		f.Add([]byte(s))
	}
	var programs []*jq.Program
	for _, text := range append([]string{`.`, `.a |= .b`, `.. |= .`, `[.[]?] | sort | unique`, `walk(.)`, `fromjson`, `tonumber`, `fromdate`}, equal...) {
		p, err := jq.Compile(text)
		require.NoError(f, err)
		programs = append(programs, p)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, p := range programs {
			out, ok, err := p.Run(t.Context(), event(body))
			if err != nil {
				requirePlain(t, err)
			} else if ok {
				require.True(t, jsonbody.Valid(out), "%q", out)
			}
		}
	})
}

// requirePlain holds errors to one short line, and panics to none.
func requirePlain(t *testing.T, err error) {
	t.Helper()
	require.LessOrEqual(t, len(err.Error()), 200)
	require.NotContains(t, err.Error(), "\n")
	require.NotContains(t, err.Error(), "runtime error")
	require.NotContains(t, err.Error(), "can't be compiled")
}
