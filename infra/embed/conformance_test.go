package embed

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/core/deadlettertest"
	"sluice/core/storetest"
	"sluice/infra/memory"
)

// conformance runs the suite on stores whose every reopen is a start on what
// the last run left, with or without a checkpoint of its own.
func conformance(name string, opts Options, open func(t testing.TB, was *Store) (dir string, fs FS)) storetest.Harness {
	start := func(t testing.TB, was *Store) core.Store {
		o := opts
		var dir string
		dir, o.FS = open(t, was)
		s, err := Open(dir, o)
		require.NoError(t, err)
		require.Zero(t, s.Lost(), "%+v", s.Report())
		return s
	}
	return storetest.Harness{
		Name: name,
		Open: func(t testing.TB) core.Store { return start(t, nil) },
		Reopen: func(t testing.TB, s core.Store) core.Store {
			kill(t, s.(*Store))
			return start(t, s.(*Store))
		},
		Abandons: true,
		Model:    func() core.Store { return memory.New() },
	}
}

// onDisk gives each store a folder of its own.
func onDisk(t testing.TB, was *Store) (string, FS) {
	if was != nil {
		return was.dir, nil
	}
	return t.TempDir(), nil
}

// inMemory gives each store a file system of its own. A start that is not the
// first is after a crash of the host.
func inMemory(_ testing.TB, was *Store) (string, FS) {
	if was != nil {
		return "data", was.opts.FS.(*memFS).crash(rand.New(rand.NewPCG(1, 2)))
	}
	return "data", newMemFS()
}

// small makes segments so small that the log rolls, is recycled, and is copied
// forward all the time.
func small() Options {
	return Options{Sync: true, SegmentBytes: minSegment, CheckpointBytes: 3 * minSegment}
}

func TestStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, conformance("embed", Options{Sync: true, SegmentBytes: 1 << 20}, onDisk))
}

func TestStoreOfLargeEvents(t *testing.T) {
	t.Parallel()
	storetest.Run(t, conformance("embed, host crashes", Options{Sync: true, SegmentBytes: 2 << 20}, inMemory))
}

func TestHistories(t *testing.T) {
	t.Parallel()
	opts := Options{Sync: true, SegmentBytes: 4 * minSegment, CheckpointBytes: 4 * minSegment}
	storetest.Histories(t, conformance("embed, small segments, host crashes", opts, inMemory))
}

func TestDeadLetters(t *testing.T) {
	t.Parallel()
	open := func(t testing.TB, fs *memFS) deadlettertest.Letters {
		return mustOpen(t, fs, Options{Sync: true, SegmentBytes: 1 << 20}).DeadLetters()
	}
	deadlettertest.Run(t, deadlettertest.Harness{
		Name: "embed",
		Open: func(t testing.TB) deadlettertest.Letters { return open(t, newMemFS()) },
		Reopen: func(t testing.TB, l deadlettertest.Letters) deadlettertest.Letters {
			was := l.(*DeadLetters).s
			kill(t, was)
			return open(t, was.opts.FS.(*memFS).crash(rand.New(rand.NewPCG(1, 2))))
		},
	})
}
