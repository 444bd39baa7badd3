package embed

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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

// formatTwo is the same of the version after that, with windows and rows, and
// two checkpoints.
func formatTwo(t testing.TB, dir string) *Store {
	t.Helper()
	s := formatOne(t, dir)
	retry := func(key string, sent int) {
		c, _, err := claim(s, key, 2)
		require.NoError(t, err)
		_, err = s.Update(ctx, ref(key), nil, func(g *core.Group) error {
			return errors.Join(g.Advance(c.ID, c.Lease, "rows", sent, calm(), now),
				g.Release(c.ID, c.Lease, now+90, "no answer", calm(), now))
		})
		require.NoError(t, err)
	}
	ship(t, s, "shipped", now+1_000_000)
	closeGroup(t, s, "of ten 6", now+1_000_000)
	retry("of ten 7", 1)
	require.NoError(t, s.checkpoint())
	ship(t, s, "shipped behind", now+1_000_000)
	closeGroup(t, s, "behind", now+1_000_000)
	retry("of ten 8", 2)
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
	for _, key := range []string{"shipped", "shipped behind"} {
		all = append(all, must(s.Group(ctx, ref(key))).Closed)
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

// TestFormats opens what an earlier version has left, goes on, and delivers it all.
func TestFormats(t *testing.T) {
	t.Parallel()
	for folder, life := range map[string]func(testing.TB, string) *Store{"format1": formatOne, "format2": formatTwo} {
		fresh := t.TempDir()
		kill(t, life(t, fresh))
		for _, checkpoint := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, checkpoint: %v", folder, checkpoint), func(t *testing.T) {
				t.Parallel()
				dirs := []string{t.TempDir(), t.TempDir()}
				require.NoError(t, os.CopyFS(dirs[0], os.DirFS(fresh)))
				require.NoError(t, os.CopyFS(dirs[1], os.DirFS(filepath.Join("testdata", folder))))
				if !checkpoint {
					require.NoError(t, errors.Join(os.RemoveAll(checkpointFile(dirs[1], 0)), os.RemoveAll(checkpointFile(dirs[1], 1))))
				}
				s := reopened(t, dirs[0], true)
				want := stored(t, s)
				kill(t, s)
				goesOn(t, dirs[1], checkpoint, want)
			})
		}
	}
}

// reopened opens a store in which nothing is to be wrong.
func reopened(t testing.TB, dir string, checkpoint bool) *Store {
	t.Helper()
	s, err := Open(dir, Options{SegmentBytes: minSegment})
	require.NoError(t, err)
	rep := s.Report()
	require.Equal(t, checkpoint, rep.Checkpoint)
	require.Empty(t, rep.Broken)
	require.Zero(t, s.Lost(), "%+v", rep)
	require.Zero(t, rep.Cut)
	require.Empty(t, rep.Damaged)
	return s
}

// goesOn opens a store that an earlier version has left, and another time with
// what this one has added, and delivers all that is in it.
func goesOn(t *testing.T, dir string, checkpoint bool, want []any) {
	t.Helper()
	s := reopened(t, dir, checkpoint)
	sameStored(t, want, stored(t, s))
	require.Equal(t, uint32(format), formatOf(t, s.log.cur), "no version before this one is to open it now")
	closeGroup(t, s, "many", now+1000)
	require.Zero(t, doubles(t, s, now, onceOnly("new", "a", "b")))
	c, _, err := claim(s, "new", 1)
	require.NoError(t, err)
	_, err = s.Update(ctx, ref("new"), nil, func(g *core.Group) error {
		g.Hold = now + 20
		return errors.Join(g.Fall(c.ID, c.Lease, calm(), now), g.Postpone(c.ID, c.Lease, now+30, true, calm(), now))
	})
	require.NoError(t, err)
	want = stored(t, s)
	kill(t, s)

	s = reopened(t, dir, checkpoint)
	sameStored(t, want, stored(t, s))
	require.Equal(t, core.Millis(1_700_000_001_000), must(s.Group(ctx, ref("many"))).Closed)
	require.Equal(t, now+20, must(s.Group(ctx, ref("new"))).Hold)
	c = must(s.Group(ctx, ref("new"))).Claims[0]
	require.True(t, c.Hop == 1 && c.Token, "%+v", c)
	require.Equal(t, 2, doubles(t, s, now, onceOnly("new", "a", "b")))
	for _, g := range must(s.Groups(ctx, "b", nil, 0)) {
		deliver(t, s, g.Ref.Key)
	}
	require.Empty(t, must(s.Groups(ctx, "b", nil, 0)))
	require.NoError(t, s.Close())

	s = reopened(t, dir, true)
	require.Empty(t, must(s.Groups(ctx, "b", nil, 0)))
	require.Equal(t, 2, doubles(t, s, now, onceOnly("new", "a", "b")))
	kill(t, s)
}

// deliver takes all claims of a group over, then what is pending, and acks them.
func deliver(t *testing.T, s *Store, key string) {
	t.Helper()
	for _, c := range must(s.Group(ctx, ref(key))).Claims {
		_, err := s.Update(ctx, ref(key), nil, func(g *core.Group) error {
			mine, err := g.Recover(c.ID, calm(), now+1000)
			return errors.Join(err, g.Ack(mine.ID, mine.Lease, calm(), now+1000))
		})
		require.NoError(t, err)
	}
	if c, _, err := claim(s, key, 1000); c.ID != "" {
		require.NoError(t, errors.Join(err, ack(s, key, c)))
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

// stays checks that a folder cannot be opened, and that nothing in it changes.
func stays(t *testing.T, fs *memFS, why string) {
	t.Helper()
	contents := func() map[string]string {
		all := map[string]string{}
		for name, f := range fs.names {
			all[name] = string(f.data)
		}
		return all
	}
	before := contents()
	_, err := Open("data", Options{FS: fs})
	require.ErrorContains(t, err, why)
	require.Equal(t, core.Unavailable, core.CodeOf(err))
	require.Equal(t, before, contents())
}

// fullFolder is one with a checkpoint, a log behind it and a file left half made,
// and the log's last segment.
func fullFolder(t *testing.T) (fs *memFS, segment string) {
	t.Helper()
	fs = newMemFS()
	s := mustOpen(t, fs, small())
	for _, id := range []string{"a", "b"} {
		_, err := s.Append(ctx, now, []core.Part{request("k", id)})
		require.NoError(t, err)
		require.NoError(t, s.DeadLetters().Put(ctx, []core.DeadLetter{letter1(id)}))
		if id == "a" {
			require.NoError(t, s.checkpoint())
		}
	}
	segment, _ = last(s)
	kill(t, s)
	f, err := fs.Create("data/segment" + tempSuffix)
	require.NoError(t, errors.Join(err, f.Close()))
	return fs, segment
}

// TestFormatAhead refuses what a later version has written.
func TestFormatAhead(t *testing.T) {
	t.Parallel()
	fs, segment := fullFolder(t)
	fs.edit(segment, func(b []byte) []byte {
		binary.LittleEndian.PutUint32(b[8:], format+1)
		binary.LittleEndian.PutUint32(b[28:], sumOf(b[:28]))
		return b
	})
	stays(t, fs, "has format 4, and this version reads formats 1 to 3")

	fs, _ = fullFolder(t)
	fs.edit(checkpointFile("data", 1), func(b []byte) []byte {
		b[blockHeader] = format + 1
		binary.LittleEndian.PutUint32(b[4:], checksum(b[blockHeader:firstBlock], position(1, 0)))
		return b
	})
	stays(t, fs, "checkpoint 1 has format 4, and this version reads formats 1 to 3")
}

// TestUnreadable refuses what is intact and yet cannot be read: it is no damage,
// and cut for it nobody would miss what it says.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	fs, segment := fullFolder(t)
	log := slices.Clone(fs.names[segment].data)
	for rec, ok := nextRecord(log, 1, dataStart, 0); ok; rec, ok = nextRecord(log, 1, rec.at.off()+int64(rec.size), 0) {
		k, n := rec.kind, len(rec.meta)
		for what, spoil := range map[string]func(b []byte){
			"of an unknown kind": func(b []byte) { seal(b, 99, rec.size, n, rec.commit, rec.at) },
			"a byte short":       func(b []byte) { seal(b, k, rec.size, n-1, rec.commit, rec.at) },
			"a byte long":        func(b []byte) { seal(b, k, rec.size, n+1, rec.commit, rec.at) },
		} {
			if headerLen+n == rec.size && what == "a byte long" {
				continue // has no room for it
			}
			fs, segment := fullFolder(t)
			require.NoError(t, fs.Remove(checkpointFile("data", 1)))
			fs.edit(segment, func(b []byte) []byte { spoil(b[rec.at.off():]); return b })
			t.Log(what, "kind", k)
			stays(t, fs, fmt.Sprintf("%s has a record at %d, of kind ", segment, rec.at.off()))
		}
	}

	fs, _ = fullFolder(t)
	fs.edit(checkpointFile("data", 1), func(b []byte) []byte {
		block := b[firstBlock:]
		block[blockHeader] = 99
		block = block[:blockHeader+binary.LittleEndian.Uint32(block)]
		binary.LittleEndian.PutUint32(block[4:], checksum(block[blockHeader:], position(1, firstBlock)))
		return b
	})
	stays(t, fs, "checkpoint 1 is intact, but none that this version reads")
}
