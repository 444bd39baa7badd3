package core_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

// A window of five rows, of which two are settled and two are refused, goes on
// under other settings: from its first row, unless its rows are the same.
func TestFoldGoesOnUnderOtherSettings(t *testing.T) {
	t.Parallel()
	count := func(b *core.Buffer) { b.Fold = []core.FoldColumn{{Name: "n", Expr: "count"}} }
	for _, tc := range []struct {
		name  string
		then  func(*core.Buffer)
		sizes []int
		first string // what the first row then begins with
		ids   string // the ends of the batch ids
		fresh bool   // they are new ones
	}{
		{"the same", count, []int{2, 1}, `"key":"2"`, "3-4 5-5", false},
		{"larger batches", func(b *core.Buffer) { count(b); b.Batch.MaxItems = 10 }, []int{3}, `"key":"2"`, "3-5", false},
		{"smaller batches", func(b *core.Buffer) { count(b); b.Batch.MaxItems = 1 }, []int{1, 1, 1}, `"key":"2"`, "3-3 4-4 5-5", false},
		{"another column", func(b *core.Buffer) { b.Fold = []core.FoldColumn{{Name: "m", Expr: "count"}} }, []int{2, 2, 1}, `"key":"0"`, "1-2 3-4 5-5", true},
		{"another row key", func(b *core.Buffer) { count(b); b.GroupBy = "" }, []int{1}, `"key":""`, "1-1", true},
		{"no fold", func(b *core.Buffer) { b.Fold = nil }, []int{2, 2, 2}, `"k":"0"`, "1-2 3-4 5-6", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			d := newDock(t)
			p := d.process(docked(windowed, count))
			for _, key := range []int{0, 1, 2, 0, 3, 4} {
				p.put(fmt.Sprintf(`{"ts":"2023-11-14T22:01:00Z","k":"%d"}`, key))
			}
			n := 0
			d.answer = func(*core.Batch) core.Response {
				if n++; n == 2 {
					return core.Response{Status: 500}
				}
				return core.Response{Status: 200}
			}
			r := p.flush(core.FlushOptions{})
			require.Equal(t, &core.Shipped{Rows: 2}, r.Written)
			require.Equal(t, 4, r.Rows)
			was := d.taken()
			d.answer = nil

			r = d.process(docked(windowed, tc.then)).flush(core.FlushOptions{Force: true})
			require.NoError(t, r.Err)
			require.Equal(t, 1, r.Buckets)
			var sizes []int
			var ends []string
			for _, b := range d.taken() {
				if len(sizes) == 0 {
					require.Contains(t, string(b.Items[0].Body), tc.first)
				}
				sizes = append(sizes, len(b.Items))
				ends = append(ends, b.ID[strings.LastIndexByte(b.ID, '.')+1:])
				same := b.ID[:strings.LastIndexByte(b.ID, '.')] == was[0].ID[:strings.LastIndexByte(was[0].ID, '.')]
				require.Equal(t, !tc.fresh, same, "%s after %s", b.ID, was[0].ID)
			}
			require.Equal(t, tc.sizes, sizes)
			require.Equal(t, tc.ids, strings.Join(ends, " "))
			require.Empty(t, d.busyGroups())
		})
	}
}

// What other settings have settled stays settled, when they fail in their turn.
func TestFoldKeepsWhatOtherSettingsSettled(t *testing.T) {
	t.Parallel()
	columns := func(name string) *core.Config {
		return docked(windowed, func(b *core.Buffer) { b.Fold = []core.FoldColumn{{Name: name, Expr: "count"}} })
	}
	d := newDock(t)
	p, q := d.process(columns("n")), d.process(columns("m"))
	for key := range 5 {
		p.put(fmt.Sprintf(`{"ts":"2023-11-14T22:01:00Z","k":"%d"}`, key))
	}
	n := 0
	d.answer = func(*core.Batch) core.Response {
		if n++; n%2 == 0 {
			return core.Response{Status: 500}
		}
		return core.Response{Status: 200}
	}
	require.Error(t, p.flush(core.FlushOptions{}).Err)
	require.Error(t, q.flush(core.FlushOptions{Force: true}).Err)
	d.answer = nil
	require.Equal(t, 3, q.flush(core.FlushOptions{Force: true}).Rows, "two of five were taken as they are now")
}

// A window that a flush has closed goes on by itself, if the flush does not.
func TestClosedWindowGoesOnWithoutAFlush(t *testing.T) {
	t.Parallel()
	d := newDock(t)
	c := docked(windowed, func(b *core.Buffer) { b.FlushEvery = time.Minute })
	p := d.process(c)
	p.put(`{"ts":"2023-11-14T22:01:00Z"}`, `{"ts":"2023-11-14T22:01:01Z"}`, `{"ts":"2023-11-14T22:01:02Z"}`)
	require.NoError(t, p.deliverAll())
	require.Empty(t, d.taken(), "only a flush begins it")
	while, end := context.WithCancel(context.Background())
	d.answer = func(*core.Batch) core.Response {
		end()
		return core.Response{Status: 200}
	}
	require.Equal(t, 2, p.flush(core.FlushOptions{While: while}).Rows)
	require.NoError(t, p.deliverAll())
	require.Len(t, d.taken(), 2)
	require.Empty(t, d.busyGroups())
}
