package embed

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

// BenchmarkRestart measures a start with a million 1 KB items waiting, after a
// close and after a crash, and the memory that they take.
func BenchmarkRestart(b *testing.B) {
	for _, groups := range []int{10_000, 100_000} {
		for _, crash := range []bool{false, true} {
			b.Run(fmt.Sprintf("groups=%d/crash=%v", groups, crash), func(b *testing.B) { benchRestart(b, groups, crash) })
		}
	}
}

func benchRestart(b *testing.B, groups int, crash bool) {
	dir := benchDir(b)
	s, err := Open(dir, Options{})
	require.NoError(b, err)
	before := heapBytes()
	fill(b, s, 1_000_000, groups)
	grown := heapBytes() - before
	if crash {
		kill(b, s)
	} else {
		require.NoError(b, s.Close())
	}
	took := time.Duration(0)
	for b.Loop() {
		s, err := Open(dir, Options{})
		require.NoError(b, err)
		require.Equal(b, int64(1_000_000), s.Report().Items)
		took += s.Report().Took
		kill(b, s)
	}
	b.ReportMetric(took.Seconds()/float64(b.N), "s/start")
	b.ReportMetric(float64(grown)/(1<<20), "heap-MB")
}

func fill(b *testing.B, s *Store, items, groups int) {
	policy, body := benchPolicy(), make([]byte, 1000)
	const perGroup = 10
	for i := 0; i < items; {
		var parts []core.Part
		for range 10 {
			p := core.Part{Ref: core.Ref{Buffer: "orders", Key: "customer-" + strconv.Itoa(i/perGroup%groups)}, Life: "01J0000000000000000000000", Policy: policy}
			for range perGroup {
				p.Events = append(p.Events, core.Event{ID: "01J0000000000000000000000" + strconv.Itoa(i), Source: "orders",
					ContentType: "application/json", Body: body, ReceivedAt: 1_700_000_000_000})
				i++
			}
			parts = append(parts, p)
		}
		_, err := s.Append(ctx, 1_700_000_000_000, parts)
		require.NoError(b, err)
	}
}

func heapBytes() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// BenchmarkFirstStart measures a start on an empty folder.
func BenchmarkFirstStart(b *testing.B) {
	took := time.Duration(0)
	for b.Loop() {
		dir := benchDir(b)
		s, err := Open(dir, Options{Sync: true})
		require.NoError(b, err)
		took += s.Report().Took
		kill(b, s)
		require.NoError(b, os.RemoveAll(dir))
	}
	b.ReportMetric(took.Seconds()/float64(b.N), "s/start")
}
