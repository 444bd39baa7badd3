package embed

import (
	"encoding/binary"
	"fmt"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"sluice/core"
)

// formatOne is a store whose life testdata/format1 holds, as the version that
// wrote it left it when it was killed: a checkpoint, and a log behind it.
func formatOne(t testing.TB, dir string) *Store {
	t.Helper()
	s, err := Open(dir, Options{SegmentBytes: minSegment, CheckpointBytes: 1 << 20})
	require.NoError(t, err)
	do := func(_ any, err error) { require.NoError(t, err) }
	claims := map[string]core.Claim{}
	take := func(key string, n uint64) {
		c, _, err := claim(s, key, n)
		require.NoError(t, err)
		claims[key] = c
	}
	settle := func(key string, fn func(g *core.Group, c core.Claim) error) {
		do(s.Update(ctx, ref(key), nil, func(g *core.Group) error { return fn(g, claims[key]) }))
	}
	for i := range 40 {
		id := fmt.Sprint(i)
		do(s.Append(ctx, now, []core.Part{request("many", id), request(fmt.Sprint("of ten ", i%10), id, id+"b")}))
	}
	do(nil, s.DeadLetters().Put(ctx, []core.DeadLetter{letter1("one"), letter1("two")}))
	take("many", 7)
	take("of ten 3", 2)
	take("of ten 4", 2)
	take("of ten 5", 2)
	settle("of ten 3", func(g *core.Group, c core.Claim) error { return g.Ack(c.ID, c.Lease, calm(), now) })
	require.NoError(t, s.checkpoint())

	settle("many", func(g *core.Group, c core.Claim) error {
		return g.Shrink(c.ID, c.Lease, core.Bits(nil).With(1).With(4), now+9, "refused", calm(), now)
	})
	take("many", 3)
	settle("of ten 4", func(g *core.Group, c core.Claim) error {
		return g.Release(c.ID, c.Lease, now+70, "no answer", calm(), now)
	})
	settle("of ten 5", func(g *core.Group, c core.Claim) error { return g.Ack(c.ID, c.Lease, calm(), now) })
	do(s.Append(ctx, now+1, []core.Part{request("behind", "a", "b")}))
	do(nil, s.DeadLetters().Put(ctx, []core.DeadLetter{letter1("three")}))
	return s
}

// stored is all that a store holds.
func stored(t testing.TB, s *Store) (all []any) {
	t.Helper()
	groups, err := s.Groups(ctx, "b", nil, 0)
	require.NoError(t, err)
	for _, g := range groups {
		page, err := s.Items(ctx, g.Ref, nil, core.Span{From: 1, To: g.Tail})
		require.NoError(t, err)
		all = append(all, g, page)
	}
	letters, _, err := s.DeadLetters().List(ctx, core.DeadLetterFilter{}, "", 100)
	require.NoError(t, err)
	stats, err := s.Stats(ctx)
	require.NoError(t, err)
	return append(all, letters, stats)
}

func sameStored(t testing.TB, want, got []any) {
	t.Helper()
	require.Empty(t, cmp.Diff(want, got, cmpopts.EquateEmpty()))
}

// TestFormatOne opens what a version before windows has left, and goes on.
func TestFormatOne(t *testing.T) {
	t.Parallel()
	fresh := t.TempDir()
	kill(t, formatOne(t, fresh))
	s, err := Open(fresh, Options{SegmentBytes: minSegment})
	require.NoError(t, err)
	want := stored(t, s)
	kill(t, s)

	for _, checkpoint := range []bool{true, false} {
		dir := t.TempDir()
		require.NoError(t, os.CopyFS(dir, os.DirFS("testdata/format1")))
		if !checkpoint {
			require.NoError(t, os.Remove(checkpointFile(dir, 1)))
		}
		open := func() *Store {
			s, err := Open(dir, Options{SegmentBytes: minSegment})
			require.NoError(t, err)
			require.Equal(t, checkpoint, s.Report().Checkpoint)
			require.Zero(t, s.Lost(), "%+v", s.Report())
			require.Empty(t, s.Report().Damaged)
			return s
		}
		s := open()
		sameStored(t, want, stored(t, s))
		require.Equal(t, uint32(format), formatOf(t, s.log.cur), "no version before this one is to open it now")
		closeGroup(t, s, "many", now+1000)
		now := stored(t, s)
		kill(t, s)
		s = open()
		sameStored(t, now, stored(t, s))
		require.Equal(t, core.Millis(1_700_000_001_000), must(s.Group(ctx, ref("many"))).Closed)
		kill(t, s)
	}
}

// formatOf is the format that a segment's header says.
func formatOf(t testing.TB, seg *segment) uint32 {
	t.Helper()
	var h [segmentHeader]byte
	_, err := seg.file.ReadAt(h[:], 0)
	require.NoError(t, err)
	return binary.LittleEndian.Uint32(h[8:])
}

// TestFormatAhead refuses what a later version has written.
func TestFormatAhead(t *testing.T) {
	t.Parallel()
	fs := newMemFS()
	s := mustOpen(t, fs, small())
	_, err := s.Append(ctx, now, []core.Part{request("k", "a")})
	require.NoError(t, err)
	name := s.log.cur.name
	kill(t, s)
	fs.edit(name, func(b []byte) []byte {
		binary.LittleEndian.PutUint32(b[8:], format+1)
		binary.LittleEndian.PutUint32(b[28:], sumOf(b[:28]))
		return b
	})
	_, err = Open("data", Options{FS: fs})
	require.ErrorContains(t, err, "has format 3, and this version reads formats 1 to 2")
}
