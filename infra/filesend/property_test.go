package filesend

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sluice/core"
	"sluice/core/format"
)

// TestNoTornLineIsFollowed lets a disk and a stream fail at random: every
// batch that was delivered is there, and every line but the last is whole.
func TestNoTornLineIsFollowed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		f := rapid.SampledFrom([]format.Format{format.NDJSON, format.Envelope}).Draw(rt, "format")
		run++
		path := fmt.Sprintf("%s/%d", dir, run)
		var stream bytes.Buffer
		fault := func() (stop int, err error) { // where the next write stops
			if rapid.Bool().Draw(rt, "fails") {
				return rapid.IntRange(0, 300).Draw(rt, "written"), errFault
			}
			return 1 << 20, nil
		}
		flaky := func() error {
			if rapid.IntRange(0, 3).Draw(rt, "flaky") == 0 {
				return errFault
			}
			return nil
		}
		d := &disk{sync: flaky, truncate: flaky, write: func(f *os.File, p []byte) (int, error) {
			n, err := fault()
			return torn(n, err)(f, p)
		}}
		out, err := openFile(path, d.open)
		if err != nil {
			return // the first sync failed
		}
		toFile := newSender(out, f, nil)
		toStream := NewWriter(writerFunc(func(p []byte) (int, error) {
			n, err := fault()
			n, _ = stream.Write(p[:min(n, len(p))])
			return n, err
		}), f)

		lines, inFile, inStream := map[string]bool{}, map[string]bool{}, map[string]bool{}
		for i := range rapid.IntRange(1, 12).Draw(rt, "batches") {
			b := batchOf(fmt.Sprintf("b%d", i), 1+i%3)
			for line := range strings.Lines(strings.TrimSuffix(encoded(f, b), "\n") + "\n") {
				lines[line] = true
			}
			note(t, toFile, b, f, inFile)
			note(t, toStream, b, f, inStream)
		}
		d.set(func(d *disk) { d.sync, d.truncate = nil, nil })
		require.NoError(rt, toFile.Close())
		require.NoError(rt, toStream.Close())
		got, err := os.ReadFile(path)
		require.NoError(rt, err)
		requireLines(rt, string(got), lines, inFile)
		requireLines(rt, stream.String(), lines, inStream)
	})
}

// note sends a batch, and notes its lines as delivered when they are.
func note(t *testing.T, s *Sender, b *core.Batch, f format.Format, delivered map[string]bool) {
	t.Helper()
	outcome, err := send(t, s, b)
	if outcome != core.Delivered {
		require.Equal(t, core.Unavailable, core.CodeOf(err))
		return
	}
	for line := range strings.Lines(strings.TrimSuffix(encoded(f, b), "\n") + "\n") {
		delivered[line] = true
	}
}

func requireLines(t *rapid.T, got string, known, delivered map[string]bool) {
	t.Helper()
	seen := map[string]bool{}
	for line := range strings.Lines(got) {
		if strings.HasSuffix(line, "\n") {
			require.True(t, known[line], "torn: %q", line)
			seen[line] = true
		}
	}
	for line := range delivered {
		require.True(t, seen[line], "lost: %q", line)
	}
}
