package embed

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

// TestLock is two stores in one folder, and a lock file that is left over.
func TestLock(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	require.NoError(t, os.MkdirAll(dir, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, lockName), []byte("4194305\n"), 0o600))
	s, err := Open(dir, Options{Sync: true})
	require.NoError(t, err, "a stale lock file is no obstacle")
	_, err = Open(dir, Options{})
	require.Equal(t, core.Unavailable, core.CodeOf(err))
	require.Contains(t, err.Error(), dir)
	require.Contains(t, err.Error(), fmt.Sprintf("process %d;", os.Getpid()))
	require.NoError(t, s.Close())
	require.NoError(t, s.Close(), "closed twice")
	s, err = Open(dir, Options{})
	require.NoError(t, err)
	require.NoError(t, s.Close())
}

// TestKilledProcess is a process that is killed in the middle of appends: the
// next one has all that the first was told of, and more at most.
func TestKilledProcess(t *testing.T) {
	t.Parallel()
	const victim = "SLUICE_EMBED_VICTIM"
	if dir := os.Getenv(victim); dir != "" {
		s, err := Open(dir, Options{Sync: true, SegmentBytes: 1 << 20})
		require.NoError(t, err)
		for i := 0; ; i++ {
			_, err := s.Append(ctx, now, []core.Part{request("k", fmt.Sprint(i))})
			require.NoError(t, err)
			fmt.Fprintln(os.Stdout, "accepted", i)
		}
	}
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilledProcess$")
	cmd.Env = append(os.Environ(), victim+"="+dir)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	said := make([]byte, 0, 1<<12)
	for buf := make([]byte, 512); len(said) < 1<<11; {
		n, err := out.Read(buf)
		require.NoError(t, err)
		said = append(said, buf[:n]...)
	}
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())

	s, err := Open(dir, Options{Sync: true, SegmentBytes: 1 << 20})
	require.NoError(t, err)
	defer kill(t, s)
	accepted := strings.Count(string(said), "\n")
	require.Positive(t, accepted)
	ids := held(t, s, "k")
	require.GreaterOrEqual(t, len(ids), accepted)
	require.Equal(t, count(len(ids), func(i int) string { return fmt.Sprint(i) }), ids)
	require.Zero(t, s.Lost())
}

// TestCopiedForward keeps items and dead letters for long, beside a stream that
// fills the log many times over: the log stays small, and they stay readable.
func TestCopiedForward(t *testing.T) {
	t.Parallel()
	fs := newMemFS()
	s := mustOpen(t, fs, small())
	kept := map[string][]string{}
	var letters []core.DeadLetter
	for i := range 4000 {
		key, id := "stream", fmt.Sprint(i)
		if i%100 == 0 {
			key = "old" + fmt.Sprint(i%7)
			kept[key] = append(kept[key], id)
			letters = append(letters, letter1(id))
			require.NoError(t, s.DeadLetters().Put(ctx, letters[len(letters)-1:]))
		}
		_, err := s.Append(ctx, now, []core.Part{request(key, id)})
		require.NoError(t, err)
		if i%20 == 19 {
			c, _, err := claim(s, "stream", 20)
			require.NoError(t, err)
			require.NoError(t, ack(s, "stream", c))
		}
	}
	check := func() {
		for key, ids := range kept {
			require.Equal(t, ids, held(t, s, key))
		}
		got, next, err := s.DeadLetters().List(ctx, core.DeadLetterFilter{}, "", 1000)
		require.NoError(t, err)
		require.Empty(t, next)
		require.Equal(t, letters, got)
		require.Zero(t, s.Lost())
	}
	check()
	s.mu.Lock()
	old, end := s.log.segs.byGen[1], s.log.cur.gen
	s.mu.Unlock()
	require.Nil(t, old, "the first segment, which held one of each, is used again")
	require.Greater(t, end, uint32(60))
	require.Eventually(t, func() bool { return fs.used() < 25*minSegment }, eventually, tick)
	kill(t, s)
	s = mustOpen(t, fs, small())
	check()
	require.NoError(t, s.Close())
	s = mustOpen(t, fs, small())
	check()
}

// TestSegmentSize opens a log with segments of another size.
func TestSegmentSize(t *testing.T) {
	t.Parallel()
	fs := newMemFS()
	var ids []string
	for i, size := range []int64{minSegment, 3 * minSegment, 2 * minSegment} {
		s := mustOpen(t, fs, Options{Sync: true, SegmentBytes: size, CheckpointBytes: 2 * size})
		require.Subset(t, held(t, s, "k"), ids)
		for j := range 400 {
			ids = append(ids, fmt.Sprint(i, "-", j))
			_, err := s.Append(ctx, now, []core.Part{request("k", ids[len(ids)-1])})
			require.NoError(t, err)
		}
		require.Equal(t, ids, held(t, s, "k"))
		if i == 1 {
			require.NoError(t, s.Close())
		} else {
			kill(t, s)
		}
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	for _, size := range []int64{-1, 1, minSegment - 1, maxSegment + 1} {
		_, err := Open("data", Options{FS: newMemFS(), SegmentBytes: size})
		require.Equal(t, core.Invalid, core.CodeOf(err), "%d", size)
	}
	s := mustOpen(t, newMemFS(), small())
	big := request("k", "big")
	big.Events[0].Body = make([]byte, minSegment)
	_, err := s.Append(ctx, now, []core.Part{big})
	require.Equal(t, core.TooLarge, core.CodeOf(err))
	require.Empty(t, must(s.Group(ctx, ref("k"))).Life, "nothing of it is there")
	_, err = s.Update(ctx, ref("k"), nil, func(g *core.Group) error {
		_, err := g.Append(1, 1, "made up", calm(), now)
		return err
	})
	require.Equal(t, core.Internal, core.CodeOf(err))
}
