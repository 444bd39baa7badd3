package embed

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

// SLUICE_BENCH_DIR is a folder on the disk to measure; a temporary one is in
// memory on many machines.
func benchDir(b *testing.B) string {
	root := os.Getenv("SLUICE_BENCH_DIR")
	if root == "" {
		return b.TempDir()
	}
	dir, err := os.MkdirTemp(root, "embed-bench") //nolint:usetesting // it has to lie on that disk
	require.NoError(b, err)
	b.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func benchPolicy() *core.Policy {
	return &core.Policy{MaxItems: 50, MaxBytes: 1 << 20, IdleTimeout: 5 * time.Second, MaxWait: 15 * time.Second,
		CapBytes: 1 << 20, Concurrency: 1, Lease: time.Minute, MaxHold: time.Minute}
}

func benchStore(b *testing.B) *Store {
	s, err := Open(benchDir(b), Options{Sync: true})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, s.Close()) })
	return s
}

// BenchmarkAppend is 64 writers of 1 KB events, with an fsync behind every
// answer, alone and with everything drained beside it.
func BenchmarkAppend(b *testing.B) {
	for _, items := range []int{1, 100} {
		for _, drained := range []bool{false, true} {
			b.Run(fmt.Sprintf("items=%d/drained=%v", items, drained), func(b *testing.B) {
				benchAppend(b, items, drained)
			})
		}
	}
}

func benchAppend(b *testing.B, items int, drained bool) {
	const writers, keys = 64, 1000
	s, policy, ctx := benchStore(b), benchPolicy(), context.Background()
	due := make(chan core.Ref, 4*writers)
	var settled atomic.Int64
	var drainers, appenders sync.WaitGroup
	for range 4 {
		drainers.Go(func() {
			for ref := range due {
				if drained {
					settled.Add(drain(b, s, ref, policy))
				}
			}
		})
	}
	body := make([]byte, 1000)
	var next atomic.Int64
	b.ResetTimer()
	for w := range writers {
		appenders.Go(func() {
			events := make([]core.Event, items)
			for i := range events {
				events[i] = core.Event{ID: fmt.Sprintf("event-%d-%d", w, i), Source: "orders", ContentType: "application/json", ReceivedAt: 1, Body: body}
			}
			for {
				n := next.Add(1)
				if n > int64(b.N) {
					return
				}
				ref := core.Ref{Buffer: "orders", Key: strconv.Itoa(int(n*7919) % keys)}
				a, err := s.Append(ctx, 1000, []core.Part{{Ref: ref, Life: "01J0000000000000000000000", Events: events, Policy: policy}})
				if err != nil {
					b.Error(err)
					return
				}
				if a[0].Reached {
					due <- ref
				}
			}
		})
	}
	appenders.Wait()
	close(due)
	drainers.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N*items)/b.Elapsed().Seconds(), "items/s")
	b.ReportMetric(float64(settled.Load())/b.Elapsed().Seconds(), "drained/s")
}

// drain delivers full batches of a group, as a deliverer does, to nowhere.
func drain(b *testing.B, s *Store, ref core.Ref, policy *core.Policy) (n int64) {
	ctx := context.Background()
	for {
		g, err := s.Group(ctx, ref)
		if err != nil || g.Pending() < uint64(policy.MaxItems) {
			return n
		}
		page, err := s.Items(ctx, ref, nil, core.Span{From: g.Head + 1, To: g.Head + uint64(policy.MaxItems), MaxBytes: policy.CapBytes})
		if err != nil {
			b.Error(err)
			return n
		}
		var c core.Claim
		_, err = s.Update(ctx, ref, nil, func(g *core.Group) (err error) {
			c, err = g.Claim(core.Taking{From: page.Items[0].Seq, To: page.End, Through: page.Through, Items: len(page.Items),
				NextAt: page.NextAt, Reason: core.ReasonItems}, policy, 1000)
			return err
		})
		if core.CodeOf(err) == core.Conflict && err != nil {
			return n
		}
		if err == nil {
			_, err = s.Update(ctx, ref, nil, func(g *core.Group) error { return g.Ack(c.ID, c.Lease, policy, 1000) })
		}
		if err != nil {
			b.Error(err)
			return n
		}
		n += int64(len(page.Items))
	}
}

// BenchmarkDisk is what all of it rests on: 64 KB and an fdatasync, in a file
// that was written before.
func BenchmarkDisk(b *testing.B) {
	f, err := osFS{}.Create(benchDir(b) + "/f")
	require.NoError(b, err)
	defer f.Close()
	buf := make([]byte, 64<<10)
	for off := range int64(1 << 10) {
		_, err := f.WriteAt(buf, off<<16)
		require.NoError(b, err)
	}
	require.NoError(b, f.Sync())
	n := int64(0)
	for b.Loop() {
		n++
		_, err := f.WriteAt(buf, n%(1<<10)<<16)
		require.NoError(b, err)
		require.NoError(b, f.Sync())
	}
}
