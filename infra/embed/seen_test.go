package embed

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

// onceOnly is a request whose events are left out when they were stored within
// a minute.
func onceOnly(key string, ids ...string) core.Part {
	p := request(key, ids...)
	p.Dedupe = time.Minute
	return p
}

// doubles is how many of a request's events are left out.
func doubles(t testing.TB, s *Store, at core.Millis, p core.Part) int {
	t.Helper()
	a, err := s.Append(ctx, at, []core.Part{p})
	require.NoError(t, err)
	return len(a[0].Doubles)
}

// known is how many ids a store knows, and in how many pieces.
func known(s *Store) (ids, pieces int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.index.seeing {
		for _, some := range b.seen.all {
			ids += len(some.at)
			pieces++
		}
	}
	return ids, pieces
}

// TestSeenIsKept delivers events while the log is filled and recycled many
// times over, and kills the host: each is known until its window has passed.
func TestSeenIsKept(t *testing.T) {
	t.Parallel()
	const events = 300
	r := rand.New(rand.NewPCG(1, 4))
	fs := newMemFS()
	s := mustOpen(t, fs, small())
	for i := range events {
		at := now + core.Millis(i*100)
		require.Zero(t, doubles(t, s, at, onceOnly("k", fmt.Sprint(i))))
		_, err := s.Append(ctx, at, []core.Part{request("stream", "1", "2", "3", "4", "5")})
		require.NoError(t, err)
		for _, key := range []string{"k", "stream"} {
			c, _, err := claim(s, key, 5)
			require.NoError(t, err)
			require.NoError(t, ack(s, key, c))
		}
		if i%100 == 50 {
			kill(t, s)
			fs = fs.crash(r)
			s = mustOpen(t, fs, small())
		}
	}
	require.Greater(t, s.log.cur.gen, uint32(10), "the log has rolled")
	require.Positive(t, s.checkpoints)
	require.NoError(t, s.Close())
	s = mustOpen(t, fs, small())
	ids, _ := known(s)
	require.Equal(t, events, ids)
	for i := range events {
		require.Equal(t, 1, doubles(t, s, now+59_999, onceOnly("k", fmt.Sprint(i))), "event %d", i)
	}
	require.Empty(t, must(s.Groups(ctx, "b", nil, 0)))
	require.Zero(t, doubles(t, s, now+60_000, onceOnly("k", "0")))
	require.Equal(t, 1, doubles(t, s, now+60_000, onceOnly("k", "1")))
}

// TestSeenIsForgotten sends ever new events: what is known does not grow with
// time, whether the buffer goes on to look for doubles or not.
func TestSeenIsForgotten(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, newMemFS(), Options{})
	most, pieces := 0, 0
	for i := range 10_000 {
		require.Zero(t, doubles(t, s, now+core.Millis(i*50), onceOnly("k", fmt.Sprint(i))))
		ids, n := known(s)
		most, pieces = max(most, ids), max(pieces, n)
	}
	require.GreaterOrEqual(t, most, 1200, "a minute's worth")
	require.LessOrEqual(t, most, 1200*9/8+1)
	require.LessOrEqual(t, pieces, 10)
	_, err := s.Append(ctx, now+600_000, []core.Part{request("k", "without")})
	require.NoError(t, err)
	ids, _ := known(s)
	require.Zero(t, ids)
}

// TestSeenForLonger makes the window longer, and shorter: the longest of now is
// what ids are kept for.
func TestSeenForLonger(t *testing.T) {
	t.Parallel()
	fs := newMemFS()
	s := mustOpen(t, fs, small())
	require.Zero(t, doubles(t, s, now, onceOnly("k", "a")))
	longer, shorter := onceOnly("k", "b"), onceOnly("k", "c")
	longer.Dedupe, shorter.Dedupe = 6*time.Minute, time.Second
	require.Zero(t, doubles(t, s, now+50_000, longer))
	require.Zero(t, doubles(t, s, now+50_000, shorter))
	longer.Events = append(longer.Events, onceOnly("k", "a").Events...)
	for range 2 {
		require.Equal(t, 2, doubles(t, s, now+359_999, longer), "a minute would have forgotten both")
		require.NoError(t, s.Close())
		s = mustOpen(t, fs, small())
	}
	require.Equal(t, 1, doubles(t, s, now+360_000, longer))
}

// TestSeenRollsBack refuses requests in every way: none of their ids is known.
func TestSeenRollsBack(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, newMemFS(), small())
	ship(t, s, "w", now+100_000)
	closed, shed, full := request("w", "late"), onceOnly("k", "1", "2"), request("full", "1", "2")
	closed.Policy = windowed()
	shed.Size, shed.Shed = 1, true
	full.Size = 1
	for _, parts := range [][]core.Part{{onceOnly("k", "1", "2"), closed}, {onceOnly("k", "1", "2"), full}, {shed, closed}} {
		_, err := s.Append(ctx, now, parts)
		require.True(t, err == nil || core.CodeOf(err) == core.Full, "%v", err)
		ids, _ := known(s)
		require.Zero(t, ids)
	}
	require.Zero(t, doubles(t, s, now, onceOnly("k", "1")))
	expired := onceOnly("k", "1", "2")
	expired.Dedupe = time.Second
	_, err := s.Append(ctx, now+2000, []core.Part{expired, full})
	require.Equal(t, core.Full, core.CodeOf(err))
	require.Equal(t, 1, doubles(t, s, now+30_000, onceOnly("k", "1", "2")), "of 1 it is known as before")
	require.Equal(t, []string{"1", "2"}, held(t, s, "k"))
}

// TestDoubleWaits shows that a double is not answered for before the event is
// durable that it doubles: here that never comes to be.
func TestDoubleWaits(t *testing.T) {
	t.Parallel()
	fs := newMemFS()
	s := mustOpen(t, fs, Options{Sync: true})
	gate, stored := make(chan struct{}), make(chan error)
	fs.setFail(func(op, _ string) error {
		if op != "sync" {
			return nil
		}
		<-gate
		return errors.New("broken")
	})
	go func() {
		_, err := s.Append(ctx, now, []core.Part{onceOnly("k", "a")})
		stored <- err
	}()
	require.Eventually(t, func() bool { ids, _ := known(s); return ids == 1 }, eventually, tick)

	p := &payloads{items: make([]payload, 1), ids: []idHash{hashID("a")}}
	var answers []core.Appended
	var c *commit
	_, err := s.change(ctx, func() (err error) {
		c, err = s.append(now, []core.Part{onceOnly("k", "a")}, p, &answers)
		return err
	})
	require.NoError(t, err)
	require.Equal(t, []core.Appended{{Doubles: []int{0}}}, answers)
	close(gate)
	require.Error(t, c.wait())
	require.Error(t, <-stored)
}

// TestSeenUnderLoad takes what a host crash leaves at moments in the middle of
// everything. Every event that was sent by then is sent again: each is there
// once, and in the place of none that is gone is a double.
func TestSeenUnderLoad(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	fs := newMemFS()
	s := mustOpen(t, fs, small())
	var mu sync.Mutex
	var sent []string
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for w := range 4 {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				id := fmt.Sprint(w%2, "-", i) // two send the same
				mu.Lock()
				sent = append(sent, id)
				mu.Unlock()
				if _, err := s.Append(ctx, now, []core.Part{onceOnly("k", id, id)}); err != nil {
					return
				}
			}
		})
	}
	type crash struct {
		left *memFS
		sent []string
	}
	var crashes []crash
	for range 5 {
		commits(s, 1+r.IntN(30))
		left := fs.crash(r)
		mu.Lock()
		crashes = append(crashes, crash{left, append([]string(nil), sent...)})
		mu.Unlock()
	}
	close(stop)
	wg.Wait()
	for _, c := range crashes {
		again := c.sent
		after := mustOpen(t, c.left, small())
		require.Zero(t, after.Lost())
		for _, id := range again {
			doubles(t, after, now, onceOnly("k", id))
		}
		there := map[string]int{}
		for _, id := range held(t, after, "k") {
			there[id]++
		}
		for _, id := range again {
			require.Equal(t, 1, there[id], "%s, of %+v", id, after.Report())
		}
		kill(t, after)
	}
}

// TestKilledSeen is a process that is killed while it stores and delivers
// events: the next one knows those of which it was told, and of the last no
// more than one copy is stored.
func TestKilledSeen(t *testing.T) {
	t.Parallel()
	const victim = "SLUICE_EMBED_DEDUPER"
	opts := Options{Sync: true, SegmentBytes: minSegment, CheckpointBytes: minSegment}
	if dir := os.Getenv(victim); dir != "" {
		s, err := Open(dir, opts)
		require.NoError(t, err)
		for i := 0; ; i++ {
			require.Zero(t, doubles(t, s, now, onceOnly("k", fmt.Sprint(i))))
			fmt.Fprintln(os.Stdout, "stored", i)
			c, _, err := claim(s, "k", 1)
			require.NoError(t, err)
			require.NoError(t, ack(s, "k", c))
		}
	}
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilledSeen$")
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

	s, err := Open(dir, opts)
	require.NoError(t, err)
	defer kill(t, s)
	stored := strings.Count(string(said), "\n")
	require.Positive(t, stored)
	for i := range stored {
		require.Equal(t, 1, doubles(t, s, now, onceOnly("k", fmt.Sprint(i))), "event %d of %d", i, stored)
	}
	require.LessOrEqual(t, len(held(t, s, "k")), 1)
}

// BenchmarkSeen measures what it takes to know a million ids: memory, a
// checkpoint, and a start with them.
func BenchmarkSeen(b *testing.B) {
	const million, each = 1_000_000, 1000
	for b.Loop() {
		dir := benchDir(b)
		s, err := Open(dir, Options{})
		require.NoError(b, err)
		require.NoError(b, s.checkpoint())
		before := heapBytes()
		for i := 0; i < million; i += each {
			p := core.Part{Ref: ref("k"), Life: "life", Policy: calm(), Dedupe: 10 * time.Minute}
			for j := range each {
				p.Events = append(p.Events, core.Event{ID: fmt.Sprintf("0197f6e4-5a3c-7000-8000-%012d", i+j), ReceivedAt: now})
			}
			require.Zero(b, doubles(b, s, now+core.Millis(i/2), p))
			c, _, err := claim(s, "k", each)
			require.NoError(b, err)
			require.NoError(b, ack(s, "k", c))
		}
		b.ReportMetric(float64(heapBytes()-before)/million, "B/id")
		require.NoError(b, s.checkpoint())
		f, err := os.Stat(checkpointFile(dir, s.checkpoints))
		require.NoError(b, err)
		b.ReportMetric(float64(f.Size())/million, "checkpoint-B/id")
		require.NoError(b, s.Close())
		s, err = Open(dir, Options{})
		require.NoError(b, err)
		b.ReportMetric(float64(s.Report().Took.Milliseconds()), "ms/start")
		ids, _ := known(s)
		require.Equal(b, million, ids)
		require.NoError(b, s.Close())
		require.NoError(b, os.RemoveAll(dir))
	}
}
