package embed

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

// last is the name of the newest segment with records, and the log's end in it.
func last(s *Store) (string, int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.cur.name, s.log.off
}

func count(total int, each func(i int) string) (ids []string) {
	for i := range total {
		ids = append(ids, each(i))
	}
	return ids
}

// TestTornTail tears the last record at every byte: zeros, or stale bytes,
// where the disk did not get.
func TestTornTail(t *testing.T) {
	t.Parallel()
	fs := newMemFS()
	s := mustOpen(t, fs, small())
	for i := range 3 {
		_, err := s.Append(ctx, now, []core.Part{request("k", fmt.Sprint(i))})
		require.NoError(t, err)
	}
	name, from := last(s)
	_, err := s.Append(ctx, now, []core.Part{request("k", "a", "b"), request("other", "c")})
	require.NoError(t, err)
	_, to := last(s)
	kill(t, s)

	r := rand.New(rand.NewPCG(1, 1))
	for at := from; at < to; at++ {
		for _, stale := range []bool{false, true} {
			torn := fs.crash(r)
			torn.edit(name, func(b []byte) []byte {
				for i := at; i < to; i++ {
					if b[i] = 0; stale {
						b[i] = byte(i*7) | 1
					}
				}
				return b
			})
			checkTorn(t, torn, fmt.Sprintf("torn at %d of %d, stale: %v", at-from, to-from, stale))
		}
	}
}

func checkTorn(t *testing.T, fs *memFS, what string) {
	t.Helper()
	s := mustOpen(t, fs, small())
	ids := held(t, s, "k")
	if len(ids) == 5 { // torn within the zeros at its end
		require.Equal(t, []string{"0", "1", "2", "a", "b"}, ids, what)
		require.Equal(t, []string{"c"}, held(t, s, "other"), what)
	} else {
		require.Equal(t, []string{"0", "1", "2"}, ids, what)
		require.Empty(t, held(t, s, "other"), what)
	}
	require.Empty(t, s.Report().Losses, what)
	require.Empty(t, s.Report().Damaged, what)
	_, err := s.Append(ctx, now, []core.Part{request("k", "next")})
	require.NoError(t, err, what)
	kill(t, s)

	s = mustOpen(t, fs, small())
	require.Equal(t, append(ids, "next"), held(t, s, "k"), what)
	require.Zero(t, s.Report().Cut, what)
	require.Empty(t, s.Report().Damaged, what)
	kill(t, s)
}

// TestGarbageTail is case 11: the log's last bytes are garbage.
func TestGarbageTail(t *testing.T) {
	t.Parallel()
	fs := newMemFS()
	s := mustOpen(t, fs, small())
	_, err := s.Append(ctx, now, []core.Part{request("k", "a", "b")})
	require.NoError(t, err)
	name, end := last(s)
	kill(t, s)
	fs.edit(name, func(b []byte) []byte { return append(b[:end], strings.Repeat("garbage!!!", 10)...) })
	s = mustOpen(t, fs, small())
	require.Equal(t, []string{"a", "b"}, held(t, s, "k"))
	require.Equal(t, int64(100), s.Report().Cut)
}

// TestRot flips bits all over a log: what is not in the damaged record is kept,
// and nothing goes without being told of.
func TestRot(t *testing.T) {
	t.Parallel()
	fs := newMemFS()
	s := mustOpen(t, fs, small())
	for i := range 30 {
		_, err := s.Append(ctx, now, []core.Part{
			request(fmt.Sprint(i%3), fmt.Sprint(i), fmt.Sprint(i, "+")), request("all", fmt.Sprint(i))})
		require.NoError(t, err)
	}
	name, end := last(s)
	kill(t, s)
	want := map[string][]string{}
	for key := range map[string]bool{"0": true, "1": true, "2": true, "all": true} {
		s := mustOpen(t, fs.crash(rand.New(rand.NewPCG(1, 1))), small())
		want[key] = held(t, s, key)
		kill(t, s)
	}
	for at := int64(0); at < end; at += 13 {
		rotten := fs.crash(rand.New(rand.NewPCG(1, 1)))
		rotten.edit(name, func(b []byte) []byte { b[at] ^= 1 << (at % 8); return b })
		s := mustOpen(t, rotten, small())
		rep := s.Report()
		gone := 0
		for key, ids := range want {
			left := held(t, s, key)
			if rep.Cut == 0 && slices.Contains(left, ids[len(ids)-1]) {
				require.Equal(t, len(ids)-len(left), numbers(rep.Losses, key), "at %d: %+v", at, rep)
			}
			require.Subset(t, ids, left)
			require.True(t, slices.IsSortedFunc(left, func(a, b string) int { return slices.Index(ids, a) - slices.Index(ids, b) }))
			gone += len(ids) - len(left)
		}
		require.LessOrEqual(t, gone, 3, "at %d: more than one record is gone", at)
		if gone > 0 {
			require.True(t, len(rep.Damaged) > 0 || rep.Cut > 0, "at %d: %d items have gone silently", at, gone)
		}
		kill(t, s)
	}
}

// numbers is how many numbers of a group losses name.
func numbers(losses []Loss, key string) (n int) {
	for _, l := range losses {
		if l.Ref == ref(key) {
			n += int(l.To - l.From + 1)
		}
	}
	return n
}

// TestRotRead finds rot in what a checkpoint has spared a start from reading.
func TestRotRead(t *testing.T) {
	t.Parallel()
	fs := newMemFS()
	s := mustOpen(t, fs, small())
	_, err := s.Append(ctx, now, []core.Part{request("k", "a", "rotten", "b")})
	require.NoError(t, err)
	require.NoError(t, s.DeadLetters().Put(ctx, []core.DeadLetter{letter1("rotten too"), letter1("fine")}))
	name, _ := last(s)
	require.NoError(t, s.Close())
	for _, mark := range []string{"rotten  ", "rotten too"} {
		fs.edit(name, func(b []byte) []byte {
			i := strings.LastIndex(string(b), mark)
			b[i+1] ^= 4
			return b
		})
	}
	var told []Loss
	o := small()
	o.OnLoss = func(l Loss) { told = append(told, l) }
	s = mustOpen(t, fs, o)
	require.Equal(t, []string{"a", "b"}, held(t, s, "k"))
	require.Equal(t, []string{"a", "b"}, held(t, s, "k"))
	page, err := s.Items(ctx, ref("k"), nil, core.Span{From: 2, To: 2})
	require.NoError(t, err)
	require.Empty(t, page.Items)
	require.Equal(t, uint64(2), page.End)
	require.Equal(t, int64(200), page.Through)

	letters, _, err := s.DeadLetters().List(ctx, core.DeadLetterFilter{}, "", 10)
	require.NoError(t, err)
	require.Len(t, letters, 1)
	require.Equal(t, []Loss{{Ref: ref("k"), Life: "lifek", From: 2, To: 2}, {Letter: "rotten too"}}, told)
	require.Equal(t, uint64(2), s.Lost())
}

func letter1(id string) core.DeadLetter {
	return core.DeadLetter{ID: id, Batch: "batch", Buffer: "b", Group: "k", Destination: "d", Reason: core.DeadPermanent,
		Status: 400, Answer: "no", Attempts: 3, FirstErrorAt: now, LastErrorAt: now + 1, LastError: "400",
		Item: core.Item{Seq: 7, Event: request("k", id).Events[0]}}
}

func TestMissingSegment(t *testing.T) {
	t.Parallel()
	for _, checkpoint := range []bool{false, true} {
		t.Run(fmt.Sprintf("checkpoint=%v", checkpoint), func(t *testing.T) {
			t.Parallel()
			fs := newMemFS()
			o := small()
			o.CheckpointBytes = 1 << 30
			s := mustOpen(t, fs, o)
			ids := count(300, func(i int) string { return fmt.Sprint(i) })
			for _, id := range ids {
				_, err := s.Append(ctx, now, []core.Part{request("k", id)})
				require.NoError(t, err)
			}
			if kill(t, s); checkpoint {
				s = mustOpen(t, fs, o)
				require.NoError(t, s.Close())
			}
			require.NoError(t, fs.Remove(segmentName("data", 2)))

			s = mustOpen(t, fs, o)
			rep := s.Report()
			require.Equal(t, []uint32{2}, rep.Missing)
			require.Len(t, rep.Losses, 1, "%+v", rep)
			lost := rep.Losses[0]
			left := held(t, s, "k")
			require.Equal(t, slices.Concat(ids[:lost.From-1], ids[lost.To:]), left)
			require.Equal(t, s.Lost(), lost.To-lost.From+1)
			require.Equal(t, int64(len(left)), rep.Items)
			for must(s.Group(ctx, ref("k"))).Life != "" {
				c, _, err := claim(s, "k", 1000)
				require.NoError(t, err)
				require.NoError(t, ack(s, "k", c))
			}
			require.Empty(t, must(s.Stats(ctx)))
		})
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestBrokenCheckpoint(t *testing.T) {
	t.Parallel()
	fs := newMemFS()
	s := mustOpen(t, fs, small())
	var left []string
	for i := range 400 {
		_, err := s.Append(ctx, now, []core.Part{request("k", fmt.Sprint(i)), request("old"+fmt.Sprint(i%50), fmt.Sprint(i))})
		require.NoError(t, err)
		if left = append(left, fmt.Sprint(i)); len(left) == 20 {
			c, _, err := claim(s, "k", 20)
			require.NoError(t, err)
			require.NoError(t, ack(s, "k", c))
			left = nil
		}
	}
	_, err := s.Append(ctx, now, []core.Part{request("k", "last")})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	name := checkpointFile("data", s.checkpoints)
	size := int(must(must(fs.Open(name)).Size()))
	for at := 0; at < size; at += 97 {
		for _, cut := range []bool{false, true} {
			broken := fs.crash(rand.New(rand.NewPCG(1, 1)))
			broken.edit(name, func(b []byte) []byte {
				if cut {
					return b[:at]
				}
				b[at] ^= 16
				return b
			})
			s := mustOpen(t, broken, small())
			if at >= firstBlock { // else there is no checkpoint at all
				require.NotEmpty(t, s.Report().Broken, "at %d, cut: %v", at, cut)
			}
			require.Contains(t, held(t, s, "k"), "last")
			for i := range 50 {
				require.Len(t, held(t, s, "old"+fmt.Sprint(i)), 8, "nothing that waits is lost")
			}
			kill(t, s)
		}
	}
}

// TestFailedWrite ends the store for good; what was answered for is there after
// the next start.
func TestFailedWrite(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"write", "sync"} {
		t.Run(op, func(t *testing.T) {
			t.Parallel()
			fs := newMemFS()
			s := mustOpen(t, fs, small())
			_, err := s.Append(ctx, now, []core.Part{request("k", "a")})
			require.NoError(t, err)
			require.NoError(t, s.Failed())
			fs.setFail(func(o, name string) error {
				if o == op {
					return fmt.Errorf("%s: %w", name, syscall.EIO)
				}
				return nil
			})
			_, err = s.Append(ctx, now, []core.Part{request("k", "b")})
			require.Equal(t, core.Unavailable, core.CodeOf(err))
			require.ErrorIs(t, err, syscall.EIO)
			require.NotContains(t, core.DetailOf(err), "EIO")
			fs.setFail(nil)
			_, err = s.Append(ctx, now, []core.Part{request("k", "c")})
			require.Equal(t, core.Unavailable, core.CodeOf(err), "a later fsync that works proves nothing")
			_, err = s.Items(ctx, ref("k"), nil, core.Span{From: 1, To: 1})
			require.Equal(t, core.Unavailable, core.CodeOf(err))
			require.ErrorIs(t, s.Failed(), syscall.EIO)
			require.Error(t, s.Close())

			s = mustOpen(t, fs.crash(rand.New(rand.NewPCG(1, 1))), small())
			require.Subset(t, []string{"a", "b"}, held(t, s, "k"))
			require.Contains(t, held(t, s, "k"), "a")
		})
	}
}

// TestFullDisk fills a disk: appends are refused, delivery goes on, and what it
// settles makes room.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	fs := newMemFS()
	fs.room = 20 * minSegment
	s := mustOpen(t, fs, small())
	for cycle := range 3 {
		var full error
		for i := 0; full == nil; i++ {
			_, full = s.Append(ctx, now, []core.Part{request(fmt.Sprint(i%10), fmt.Sprint(cycle, "-", i))})
			require.Less(t, i, 10_000)
		}
		require.Equal(t, core.Full, core.CodeOf(full))
		require.Positive(t, core.RetryAfterOf(full))
		for i := range 10 {
			for must(s.Group(ctx, ref(fmt.Sprint(i)))).Life != "" {
				settleOne(t, s, fmt.Sprint(i))
			}
		}
		require.NoError(t, s.Failed())
		require.Eventually(t, func() bool {
			_, err := s.Append(ctx, now, []core.Part{request("room", "again")})
			return err == nil
		}, eventually, tick)
	}
	require.NoError(t, s.Close())
	s = mustOpen(t, fs, small())
	require.Len(t, held(t, s, "room"), 3)
	require.NoError(t, s.Failed())
}

// settleOne claims and settles a batch of a group. On a full disk it may have
// to wait until what was settled before has made room.
func settleOne(t *testing.T, s *Store, key string) {
	t.Helper()
	var c core.Claim
	var err error
	tried := func(try func() error) func() bool {
		return func() bool {
			err = try()
			return core.CodeOf(err) != core.Full || err == nil
		}
	}
	require.Eventually(t, tried(func() error { c, _, err = claim(s, key, 50); return err }), eventually, tick)
	require.NoError(t, err)
	require.Eventually(t, tried(func() error { return ack(s, key, c) }), eventually, tick)
	require.NoError(t, err)
}

// TestFullDiskKeepsTheReserve: once an update has opened a segment of the
// reserve on a full disk, appends are refused although they would fit in, and
// what makes room is not.
func TestFullDiskKeepsTheReserve(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, newMemFS(), small())
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.log
	spares := l.spares
	l.full, l.spares = true, nil
	defer func() { l.full, l.spares = false, spares }()
	require.Equal(t, core.Full, core.CodeOf(l.makeRoom(100, leaveForAppend)))
	require.NoError(t, l.makeRoom(100, leaveForUpdate))
	require.NoError(t, l.makeRoom(100, leaveForCopy))
}

func TestSegmentNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"0000000001.log": true, "4294967295.log": true,
		"1.log": false, "00000000001.log": false, "0000000000.log": false, "+000000001.log": false,
		"0000000001": false, "0000000001.log.tmp": false, "4294967296.log": false, "checkpoint.0": false,
	} {
		_, ok := segmentGen(name)
		require.Equal(t, want, ok, name)
	}
}

// TestFullDiskElsewhere is a disk that something else fills, and frees again.
func TestFullDiskElsewhere(t *testing.T) {
	t.Parallel()
	fs := newMemFS()
	s := mustOpen(t, fs, small())
	_, err := s.Append(ctx, now, []core.Part{request("k", "first")})
	require.NoError(t, err)
	fs.setRoom(1)
	for i := 0; err == nil; i++ {
		_, err = s.Append(ctx, now, []core.Part{request("k", fmt.Sprint(i))})
	}
	require.Equal(t, core.Full, core.CodeOf(err))
	fs.setRoom(0)
	require.Eventually(t, func() bool {
		_, err := s.Append(ctx, now, []core.Part{request("k", "again")})
		return err == nil
	}, eventually, tick)
}

// TestFullDiskAtStart cannot begin a log.
func TestFullDiskAtStart(t *testing.T) {
	t.Parallel()
	fs := newMemFS()
	fs.room = 100
	_, err := Open("data", Options{FS: fs})
	require.Equal(t, core.Full, core.CodeOf(err))
	require.ErrorIs(t, err, syscall.ENOSPC)
	fs.room = 0
	s := mustOpen(t, fs, small())
	require.True(t, s.Report().Fresh)
}
