package core_test

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

// Ten thousand groups leave through one destination, as many at a time as it
// takes, and always as many.
func TestFlushOfManyGroups(t *testing.T) {
	t.Parallel()
	const groups, atATime = 10_000, 16
	synctest.Test(t, func(t *testing.T) {
		d := newDock(t)
		c := docked()
		c.Destinations[0].Concurrency = atATime
		p := d.process(c)
		keys := make([]string, groups)
		for i := range keys {
			keys[i] = fmt.Sprint(i)
		}
		p.keys(keys...)
		d.answer = func(*core.Batch) core.Response {
			<-time.After(s)
			return core.Response{Status: 200}
		}
		begin := time.Now()
		r := p.flush(core.FlushOptions{})
		require.Equal(t, core.BufferFlush{Buffer: "b", Rows: groups}, r)
		require.Equal(t, (groups+atATime-1)/atATime*s, time.Since(begin))
		require.Equal(t, atATime, d.peak)
		require.Len(t, d.taken(), groups)
		require.Empty(t, d.busyGroups())
	})
}

// Folding a million items takes no more memory than their rows.
func TestFoldOfAMillionItems(t *testing.T) { //nolint:paralleltest // it measures the heap, which is everybody's
	const rows = 1000
	items := uint64(1_000_000)
	if underRace() {
		items = 50_000
	}
	d := newDock(t)
	p := d.process(docked(windowed, func(b *core.Buffer) {
		b.Batch.MaxItems = 100
		b.Fold = []core.FoldColumn{{Name: "count", Expr: "count"}, {Name: "total", Expr: "sum .json.v"}}
	}))
	w := core.Ref{Buffer: "b", Key: "2023-11-14T22:00:00.000Z/2023-11-14T22:01:00.000Z"}
	_, err := d.memory.Update(context.Background(), w, nil, func(g *core.Group) error {
		g.Life, g.Tail, g.TailBytes, g.FirstAt, g.LastAt, g.CheckAt = "life", items, int64(items), noon, noon, noon
		return nil
	})
	require.NoError(t, err)
	var begin, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&begin)
	pages, most := 0, uint64(0)
	d.page = func(span core.Span) core.Page {
		require.LessOrEqual(t, span.MaxItems, 1000)
		if pages++; pages%100 == 0 {
			runtime.GC()
			runtime.ReadMemStats(&now)
			most = max(most, now.HeapAlloc)
		}
		page := core.Page{End: min(span.To, span.From+uint64(span.MaxItems)-1)}
		for seq := span.From; seq <= page.End; seq++ {
			page.Items = append(page.Items, core.Item{Seq: seq, Event: core.Event{ID: "e", JSON: true, ReceivedAt: noon,
				Body: fmt.Appendf(nil, `{"k":"%d","v":%d}`, seq%rows, seq)}})
		}
		page.Through = int64(page.End)
		return page
	}
	r := p.flush(core.FlushOptions{})
	require.NoError(t, r.Err)
	require.Equal(t, rows, r.Rows)
	require.Equal(t, 1, r.Buckets)
	sent := d.taken()
	require.Len(t, sent, rows/100)
	n := items / rows // in the row of the numbers 1, 1001, 2001, ...
	require.Contains(t, string(sent[0].Items[0].Body), fmt.Sprintf(
		`"key":"1","windowStart":"2023-11-14T22:00:00.000Z","windowEnd":"2023-11-14T22:01:00.000Z","count":%d,"total":%d}`, n, n+rows*(n*(n-1)/2)))
	require.Less(t, most, begin.HeapAlloc+8<<20, "bytes of heap while folding")
}

// underRace reports whether the race detector is on, which is many times slower.
func underRace() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}
