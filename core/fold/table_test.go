package fold_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/core/fold"
)

// TestRows holds the rows to their bytes, and their ids to what they always are.
func TestRows(t *testing.T) {
	t.Parallel()
	f, err := fold.Compile([]fold.Column{
		{Name: "count", Expr: "count"},
		{Name: "total", Expr: "sum .json.amount"},
		{Name: "peak", Expr: "max .json.ms"},
		{Name: "plan", Expr: "last .json.plan"},
		{Name: "team", Expr: "first .headers.team"},
	})
	require.NoError(t, err)
	table := f.Table(window)
	headers := map[string]string{"team": "b<&\xff"}
	require.True(t, table.Add("acme", input{`{"amount":0.1,"ms":12,"plan":{"name": "free"}}`, nil}, 1796032801500))
	require.True(t, table.Add("a\xff\"b", input{`{"amount":7}`, headers}, 1796032802000))
	require.True(t, table.Add("acme", input{`{"amount":0.2,"ms":9.50,"plan":{"name": "pro"}}`, headers}, 1796032801000))
	rows := table.Rows()
	require.Equal(t, []fold.Row{
		{
			ID: "d31cad677b0489f4997e62d004bbf631", Key: "acme", FirstAt: 1796032801000, Events: 2,
			Body: []byte(`{"id":"d31cad677b0489f4997e62d004bbf631","key":"acme","windowStart":"2026-11-30T10:00:00.000Z","windowEnd":"2026-11-30T10:01:00.000Z",` +
				`"count":2,"total":0.3,"peak":12,"plan":{"name":"pro"},"team":"b<&\ufffd"}`),
		},
		{
			ID: "ec07aa698121eaa540675c0a793731a3", Key: "a\xff\"b", FirstAt: 1796032802000, Events: 1,
			Body: []byte(`{"id":"ec07aa698121eaa540675c0a793731a3","key":"a\ufffd\"b","windowStart":"2026-11-30T10:00:00.000Z","windowEnd":"2026-11-30T10:01:00.000Z",` +
				`"count":1,"total":7,"peak":null,"plan":null,"team":"b<&\ufffd"}`),
		},
	}, rows)
	require.Equal(t, rows, table.Rows(), "asked again")
	require.Empty(t, f.Table(window).Rows())
}

// TestRowID shows that no two of buffer, key and window have one id.
func TestRowID(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, w := range []fold.Window{
		{Buffer: "ab", StartMs: 1, EndMs: 2}, {Buffer: "a", StartMs: 1, EndMs: 2}, {StartMs: 1, EndMs: 2}, {Buffer: "ab", StartMs: 2, EndMs: 1},
		{Buffer: "ab", StartMs: 1, EndMs: 3}, {Buffer: "ab", EndMs: 2}, {Buffer: "ab\x00", StartMs: 1, EndMs: 2}, {Buffer: "ab", Shard: 1, StartMs: 1, EndMs: 2},
	} {
		for _, key := range []string{"", "b", "bc", "c", "\xff", "\xfe", "\ufffd", "\x00"} {
			table := compile(t, "count").Table(w)
			table.Add(key, input{}, 1)
			id := table.Rows()[0].ID
			require.Regexp(t, "^[0-9a-f]{32}$", id)
			require.False(t, seen[id], "%v %q", w, key)
			seen[id] = true
		}
	}
}

// TestAddKeepsCopies shows that a table holds nothing of its caller's bytes.
func TestAddKeepsCopies(t *testing.T) {
	t.Parallel()
	table := compile(t, "first .json.a", "last .json.a", "max .json.n").Table(window)
	in := &known{b: []byte(`{"a":"one","n":1234567890123456789012}`)}
	require.True(t, table.Add("k", in, 1))
	for i := range in.b {
		in.b[i] = 'x'
	}
	require.Equal(t, `"c0":"one","c1":"one","c2":1234567890123456789012`, columnsOf(t, table.Rows()[0]))
}

// TestAddWrongly shows that a body which is wrongly known to be JSON does no
// harm: rows are JSON all the same.
func TestAddWrongly(t *testing.T) {
	t.Parallel()
	f := compile(t, "count", "sum .json.a", "max .json.a", "first .json.a", "last .json", "min .json", "count .json.a")
	for _, body := range []string{
		``, `x`, `{`, `{"a`, `{"a"`, `{"a":`, `{"a":1`, `{"a":-}`, `{"a":0x1}`, `{"a":1e}`, `{"a":01}`, `"`, `-`, `nul`, `[[[`, `}`, `{"a":tru}`, `1.`, `.`,
	} {
		table := f.Table(window)
		table.Add("k", &known{b: []byte(body)}, 1)
		_ = f.Check(&known{b: []byte(body)})
		require.True(t, json.Valid(table.Rows()[0].Body), "%q: %s", body, table.Rows()[0].Body)
	}
}

// TestMemory shows that a table does not grow with what is added.
func TestMemory(t *testing.T) {
	table := compile(t, "count", "sum .json.n", "avg .json.x", "min .json.x", "max .json.n", "first .json.s", "last .json.s").Table(window)
	keys := make([]string, 10)
	for i := range keys {
		keys[i] = fmt.Sprintf("key%d", i)
	}
	bodies := make([]*known, 100)
	for i := range bodies {
		bodies[i] = &known{b: fmt.Appendf(nil, `{"n":%d,"x":0.12345678901234%d,"s":{"v":"%s"}}`, i*999_999_999_999, i, strings.Repeat("x", i))}
	}
	add := func(n int) {
		for i := range n {
			table.Add(keys[i%len(keys)], bodies[i/len(keys)%len(bodies)], int64(i))
		}
	}
	add(10_000)
	before := heap()
	add(1_000_000)
	after := heap()
	rows := table.Rows()
	require.Len(t, rows, len(keys))
	require.EqualValues(t, 101_000, rows[0].Events)
	require.Less(t, after, before+256<<10)
}

// heap is how many bytes are in use.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
