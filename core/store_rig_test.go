package core_test

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/infra/embed"
	"sluice/infra/memory"
)

var onEmbed = flag.Bool("rig.embed", false, "run rigs on the embedded store instead of the one in memory")

// rigStore is a rig's store.
type rigStore interface {
	core.Store
	Stats(ctx context.Context) ([]core.BufferStats, error)
	DeadLetters() rigLetters
	Reopen() rigStore // is what a crash leaves
}

type rigLetters interface {
	core.DeadLetterSink
	core.DeadLetterQueue
}

func newStore(t *testing.T) rigStore {
	if *onEmbed {
		return embedded{nil, t, t.TempDir()}.Reopen()
	}
	return inMemory{memory.New()}
}

type inMemory struct{ *memory.Store }

func (s inMemory) DeadLetters() rigLetters { return s.Store.DeadLetters() }
func (s inMemory) Reopen() rigStore        { return inMemory{s.Store.Reopen(true)} }

type embedded struct {
	*embed.Store
	t   *testing.T
	dir string
}

func (s embedded) DeadLetters() rigLetters { return s.Store.DeadLetters() }

func (s embedded) Reopen() rigStore {
	if s.Store != nil {
		require.NoError(s.t, s.Close())
	}
	store, err := embed.Open(s.dir, embed.Options{SegmentBytes: core.MiB})
	require.NoError(s.t, err)
	return embedded{store, s.t, s.dir}
}

// What a rig shows of deliveries, order, delay and shadow holds on the embedded
// store, too, in a process of its own.
func TestOnTheEmbeddedStore(t *testing.T) {
	t.Parallel()
	if *onEmbed {
		return // it is this process
	}
	const tests = "^Test(A|Crash|Deliver|Endpoint|Held|Many|Order|PartialSuccess|Retry|Stops|Trouble|Unordered)"
	out, err := exec.CommandContext(t.Context(), os.Args[0], "-rig.embed", "-test.run", tests).CombinedOutput()
	require.NoError(t, err, "%s", out)
}
