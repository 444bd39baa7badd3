package embed

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

// windowed is a policy of a time window.
func windowed() *core.Policy {
	p := calm()
	p.ShipAt, p.KeptUntil = now+1000, now+1_000_000
	return p
}

// closeGroup closes a group until a time.
func closeGroup(t testing.TB, s *Store, key string, until core.Millis) {
	t.Helper()
	_, err := s.Update(ctx, ref(key), nil, func(g *core.Group) error { g.Close(until, windowed(), now); return nil })
	require.NoError(t, err)
}

// ship is a window's whole life: an event, the close, a claim and its ack.
func ship(t testing.TB, s *Store, key string, until core.Millis) {
	t.Helper()
	p := request(key, "only")
	p.Policy = windowed()
	_, err := s.Append(ctx, now, []core.Part{p})
	require.NoError(t, err)
	closeGroup(t, s, key, until)
	c, _, err := claim(s, key, 1)
	require.NoError(t, err)
	require.NoError(t, ack(s, key, c))
}

// refuses reports whether a group refuses a window's event at a time; if not,
// the event is in it.
func refuses(t testing.TB, s *Store, key string, at core.Millis) bool {
	t.Helper()
	p := request(key, "late")
	p.Policy = windowed()
	a, err := s.Append(ctx, at, []core.Part{p})
	require.NoError(t, err)
	return a[0].Closed
}

// remembered is how many closed groups without anything are kept, as each of
// its parts counts them.
func remembered(s *Store) (keys, endings int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.index.closed.until {
		keys += len(b)
	}
	return keys, len(s.index.closed.ending)
}

// TestClosedIsKept ships windows beside a stream that fills the log many times
// over, and kills the host: each refuses what comes late, until its time.
func TestClosedIsKept(t *testing.T) {
	t.Parallel()
	const windows = 60
	r := rand.New(rand.NewPCG(1, 3))
	fs := newMemFS()
	s := mustOpen(t, fs, small())
	for i := range windows {
		ship(t, s, fmt.Sprint("w", i), now+core.Millis(1000+i%7*100))
		for j := range 20 {
			_, err := s.Append(ctx, now, []core.Part{request("stream", fmt.Sprint(i, j))})
			require.NoError(t, err)
		}
		c, _, err := claim(s, "stream", 20)
		require.NoError(t, err)
		require.NoError(t, ack(s, "stream", c))
		if i%20 == 10 {
			kill(t, s)
			fs = fs.crash(r)
			s = mustOpen(t, fs, small())
		}
	}
	require.Greater(t, s.log.cur.gen, uint32(10), "the log has rolled")
	require.NoError(t, s.Close())
	s = mustOpen(t, fs, small())
	require.Zero(t, s.Report().Groups)
	require.Empty(t, must(s.Groups(ctx, "b", nil, 0)))
	require.Empty(t, must(s.Stats(ctx)))
	for i := range windows {
		require.True(t, refuses(t, s, fmt.Sprint("w", i), now+999), "window %d", i)
	}
	keys, endings := remembered(s)
	require.Equal(t, []int{windows, windows}, []int{keys, endings})

	require.False(t, refuses(t, s, "w0", now+1000), "its time has come")
	require.True(t, refuses(t, s, "w1", now+1099))
	require.False(t, refuses(t, s, "w1", now+1100))
	_, err := s.Append(ctx, now+1600, []core.Part{request("other", "a")})
	require.NoError(t, err)
	keys, endings = remembered(s)
	require.Equal(t, []int{0, 0}, []int{keys, endings}, "all are forgotten")
	kill(t, s)
	s = mustOpen(t, fs, small())
	require.Equal(t, []string{"late"}, held(t, s, "w0"))
	require.Zero(t, must(s.Group(ctx, ref("w0"))).Closed, "it has begun anew")
}

// TestClosedTwice ships a window, lets another settings' event in, which is
// shipped too, and does so again: it is kept once.
func TestClosedTwice(t *testing.T) {
	t.Parallel()
	fs := newMemFS()
	s := mustOpen(t, fs, small())
	ship(t, s, "w", now+1000)
	for i := range 10 {
		_, err := s.Append(ctx, now, []core.Part{request("w", fmt.Sprint(i))})
		require.NoError(t, err)
		require.True(t, refuses(t, s, "w", now))
		c, _, err := claim(s, "w", 1)
		require.NoError(t, err)
		require.NoError(t, ack(s, "w", c))
		if i == 5 {
			kill(t, s)
			s = mustOpen(t, fs, small())
		}
	}
	keys, endings := remembered(s)
	require.Equal(t, []int{1, 1}, []int{keys, endings})
	require.False(t, refuses(t, s, "w", now+1000))
}

// TestClosedEmpty closes a group that nothing has come to.
func TestClosedEmpty(t *testing.T) {
	t.Parallel()
	fs := newMemFS()
	s := mustOpen(t, fs, small())
	closeGroup(t, s, "w", now+1000)
	require.Empty(t, must(s.Groups(ctx, "b", nil, 0)))
	kill(t, s)
	s = mustOpen(t, fs, small())
	require.True(t, refuses(t, s, "w", now))
	require.Empty(t, must(s.Groups(ctx, "b", nil, 0)))
}

// TestClosedRollsBack appends beside a closed part: nothing of the request is
// stored, nor counted in its buffer.
func TestClosedRollsBack(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, newMemFS(), small())
	ship(t, s, "w", now+1000)
	before := must(s.Stats(ctx))
	closed := request("w", "late")
	closed.Policy = windowed()
	for range 3 {
		a, err := s.Append(ctx, now, []core.Part{request("a", "1", "2"), closed, request("a", "3")})
		require.NoError(t, err)
		require.Equal(t, []core.Appended{{}, {Closed: true}, {}}, a)
	}
	require.Equal(t, before, must(s.Stats(ctx)))
	require.Empty(t, must(s.Group(ctx, ref("a"))).Life)
}

// TestKilledWindows is a process that is killed while it ships windows: the
// next one refuses what comes late for those that it was told are shipped.
func TestKilledWindows(t *testing.T) {
	t.Parallel()
	const victim = "SLUICE_EMBED_SHIPPER"
	opts := Options{Sync: true, SegmentBytes: minSegment, CheckpointBytes: minSegment}
	if dir := os.Getenv(victim); dir != "" {
		s, err := Open(dir, opts)
		require.NoError(t, err)
		for i := 0; ; i++ {
			ship(t, s, fmt.Sprint("w", i), now+1000)
			fmt.Fprintln(os.Stdout, "shipped", i)
		}
	}
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilledWindows$")
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
	shipped := strings.Count(string(said), "\n")
	require.Positive(t, shipped)
	for i := range shipped {
		require.True(t, refuses(t, s, fmt.Sprint("w", i), now+999), "window %d of %d", i, shipped)
	}
}

// TestEveryFieldCounts changes each field of a record: a transition that does
// is never taken for one that changes nothing.
func TestEveryFieldCounts(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 6))
	var was core.Group
	fillAll(reflect.ValueOf(&was).Elem(), r)
	changes := func(field string, change func(g *core.Group)) {
		next := was.Clone()
		change(&next)
		changed, _ := differ(&was, &next)
		switch field {
		case "Void", "VoidBytes", "Mark": // of no use here
			require.False(t, changed, field)
		default:
			require.True(t, changed, field)
		}
	}
	for i := range reflect.TypeFor[core.Group]().NumField() {
		changes(reflect.TypeFor[core.Group]().Field(i).Name, func(g *core.Group) {
			reflect.ValueOf(g).Elem().Field(i).SetZero()
		})
	}
	for i := range reflect.TypeFor[core.Claim]().NumField() {
		changes(reflect.TypeFor[core.Claim]().Field(i).Name, func(g *core.Group) {
			reflect.ValueOf(&g.Claims[1]).Elem().Field(i).SetZero()
		})
	}
}

// BenchmarkClosed measures what it takes to keep 100,000 windows that are
// shipped: memory, and a start with them in the checkpoint.
func BenchmarkClosed(b *testing.B) {
	const windows = 100_000
	for b.Loop() {
		dir := benchDir(b)
		s, err := Open(dir, Options{})
		require.NoError(b, err)
		ship(b, s, "first", now+1000)
		before := heapBytes()
		for i := range windows {
			start := (now + core.Millis(i)*60_000).Time().Format("2006-01-02T15:04:05.000Z07:00")
			end := (now + core.Millis(i+1)*60_000).Time().Format("2006-01-02T15:04:05.000Z07:00")
			ship(b, s, start+"/"+end, now+core.Millis(i+1)*60_000)
		}
		b.ReportMetric(float64(heapBytes()-before)/windows, "B/window")
		require.NoError(b, s.Close())
		s, err = Open(dir, Options{})
		require.NoError(b, err)
		b.ReportMetric(float64(s.Report().Took.Milliseconds()), "ms/start")
		keys, _ := remembered(s)
		require.Equal(b, windows+1, keys)
		require.NoError(b, s.Close())
		require.NoError(b, os.RemoveAll(dir))
	}
}
