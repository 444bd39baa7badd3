package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// chunksOf cuts input up to its end or an error.
func chunksOf(in io.Reader) ([]chunk, error) {
	c := newChunker(in)
	var all []chunk
	for {
		k, err := c.next()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		all = append(all, k)
	}
}

// TestChunks holds that chunks are within bounds, and that they have every
// line that is not blank, in order, under the right number.
func TestChunks(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.OneOf(
			rapid.Just(""), rapid.Just(" \t\r"), rapid.StringMatching(`\{"n":[0-9]{1,9}\}`),
			rapid.Custom(func(t *rapid.T) string { return strings.Repeat("x", rapid.IntRange(1, 600<<10).Draw(t, "long")) }),
		)
		lines := rapid.SliceOfN(line, 0, 30).Draw(t, "lines")
		for range rapid.IntRange(0, 1).Draw(t, "many") * 2100 {
			lines = append(lines, "{}")
		}
		input := strings.Join(lines, "\n")
		if rapid.Bool().Draw(t, "ended") && len(lines) > 0 {
			input += "\n"
		}
		chunks, err := chunksOf(strings.NewReader(input))
		require.NoError(t, err)

		seen := 0
		for _, k := range chunks {
			require.LessOrEqual(t, k.lines, chunkLines)
			require.Positive(t, k.events)
			if k.lines > 1 {
				require.LessOrEqual(t, len(k.body), chunkBytes)
			}
			got := strings.Split(strings.TrimSuffix(string(k.body), "\n"), "\n")
			require.Len(t, got, k.lines)
			require.GreaterOrEqual(t, k.first, seen+1)
			for _, skipped := range lines[seen : k.first-1] {
				require.Empty(t, strings.TrimSpace(skipped))
			}
			require.Equal(t, lines[k.first-1:k.first-1+k.lines], got)
			seen = k.first - 1 + k.lines
		}
		for _, rest := range lines[min(seen, len(lines)):] {
			require.Empty(t, strings.TrimSpace(rest))
		}
	})
}

func FuzzChunks(f *testing.F) {
	f.Add([]byte("{}\n\n{}\r\n"))
	f.Add([]byte("\xff\x00\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		chunks, err := chunksOf(bytes.NewReader(data))
		require.NoError(t, err)
		events := 0
		for _, k := range chunks {
			events += k.events
		}
		want := 0
		for line := range bytes.Lines(data) {
			if len(bytes.TrimSpace(line)) > 0 {
				want++
			}
		}
		require.Equal(t, want, events)
	})
}

func TestALineBeyondEverySourceIsRefused(t *testing.T) {
	t.Parallel()
	first := strings.Repeat("x", maxEvent) + "\n"
	chunks, err := chunksOf(strings.NewReader(first + strings.Repeat("y", maxEvent+1) + "\n"))
	require.ErrorContains(t, err, "more than 10 MiB")
	require.Len(t, chunks, 1)
}

// console is a program that talks to a world.
func console(t *testing.T, stdin io.Reader) (p *program, w *world, stdout, stderr *bytes.Buffer) {
	t.Helper()
	w, err := newWorld()
	require.NoError(t, err)
	t.Cleanup(w.server.Close)
	stdout, stderr = &bytes.Buffer{}, &bytes.Buffer{}
	env := map[string]string{"SLUICE_URL": w.server.URL}
	return &program{
		stdin: stdin, stdout: stdout, stderr: stderr, env: func(name string) string { return env[name] },
		now: w.clock, wait: w.wait, terminal: func(any) bool { return false },
	}, w, stdout, stderr
}

func TestBatchInManyRequests(t *testing.T) {
	t.Parallel()
	const lines = 2500
	p, w, stdout, stderr := console(t, strings.NewReader(strings.Repeat("{}\n", lines)))
	require.Equal(t, exitOK, p.run(t.Context(), []string{"send", "web", "--batch", "--id", "imp"}), stderr)
	require.Equal(t, "2,500 events accepted in 3 requests\n", stdout.String())
	require.Equal(t, []string{
		"POST /v1/sources/web/batch content-type=application/x-ndjson idempotency-key=imp-1 lines=1000 bytes=3000",
		"POST /v1/sources/web/batch content-type=application/x-ndjson idempotency-key=imp-2 lines=1000 bytes=3000",
		"POST /v1/sources/web/batch content-type=application/x-ndjson idempotency-key=imp-3 lines=500 bytes=1500",
	}, w.log)
	stats, err := w.store.Stats(t.Context())
	require.NoError(t, err)
	require.Len(t, stats, 2)
	for _, s := range stats {
		require.EqualValues(t, lines, s.Pending)
	}
}

func TestBatchStopsAtABadLine(t *testing.T) {
	t.Parallel()
	p, _, stdout, stderr := console(t, strings.NewReader(strings.Repeat("{}\n", 1002)+"{\n{}\n"))
	require.Equal(t, exitFailed, p.run(t.Context(), []string{"send", "web", "--batch"}))
	require.Empty(t, stdout)
	require.Contains(t, stderr.String(), "sluice: 1,000 events accepted, then stopped at lines 1001 to 1004, counted from there: line 3 is not valid JSON")
}

func TestBatchThatCannotBeRead(t *testing.T) {
	t.Parallel()
	p, _, _, stderr := console(t, io.MultiReader(strings.NewReader("{}\n{"), brokenPipe{}))
	require.Equal(t, exitFailed, p.run(t.Context(), []string{"send", "web", "--batch"}))
	require.Contains(t, stderr.String(), "sluice: 1 event accepted, then stopped at lines 2 to 2: the pipe broke")
}

type brokenPipe struct{}

func (brokenPipe) Read([]byte) (int, error) { return 0, errors.New("the pipe broke") }

func TestBatchShowsProgressOnATerminal(t *testing.T) {
	t.Parallel()
	p, w, _, stderr := console(t, strings.NewReader(strings.Repeat("{}\n", 1500)))
	p.terminal = func(rw any) bool { return rw == stderr }
	p.now = func() time.Time { // the world's clock, a second on at each look
		_ = w.wait(context.Background(), time.Second)
		return w.clock()
	}
	require.Equal(t, exitOK, p.run(t.Context(), []string{"send", "web", "--batch"}))
	require.Regexp(t, `^(\r\x1b\[K[0-9,]+ events \(\d+/s\), [0-9.]+ (B|KiB)){2}\r\x1b\[K$`, stderr.String())
}

func TestBarOfAFile(t *testing.T) {
	t.Parallel()
	b := &bar{total: 4000, bytes: 1000, events: 20}
	require.Equal(t, strings.Repeat("█", 7)+strings.Repeat("░", 23)+"  25%  20 events (10/s)", b.line(2*time.Second))
	b = &bar{total: 4000, bytes: 9000, events: 1} // it grew meanwhile
	require.Equal(t, strings.Repeat("█", barWidth)+" 100%  1 event", b.line(0))
}

func TestRetryAfterADate(t *testing.T) {
	t.Parallel()
	p, w, _, stderr := console(t, strings.NewReader("{}"))
	w.script(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Retry-After", epoch.Add(7*time.Second).Format(http.TimeFormat))
		rw.WriteHeader(http.StatusServiceUnavailable)
	})
	require.Equal(t, exitOK, p.run(t.Context(), []string{"send", "web"}), stderr)
	require.Equal(t, "wait 7s", w.log[1])
}

func TestInterruptedWhileItWaits(t *testing.T) {
	t.Parallel()
	p, w, _, stderr := console(t, strings.NewReader("{}\n"))
	w.script(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusServiceUnavailable) })
	ctx, cancel := context.WithCancel(t.Context())
	p.wait = func(ctx context.Context, _ time.Duration) error {
		cancel()
		return ctx.Err()
	}
	require.Equal(t, exitFailed, p.run(ctx, []string{"send", "web", "--batch"}))
	require.Equal(t, "sent again until it is taken, for 5m 0s at most: the server answered 503 Service Unavailable\n"+
		"sluice: 0 events accepted, then stopped at lines 1 to 1: interrupted while waiting for room: the server answered 503 Service Unavailable\n", stderr.String())
}

func TestInterruptedWhileItReads(t *testing.T) {
	t.Parallel()
	in, out := io.Pipe()
	p, _, _, stderr := console(t, in)
	ctx, cancel := context.WithCancel(t.Context())
	code := make(chan int, 1)
	go func() { code <- p.run(ctx, []string{"send", "web"}) }()
	cancel()
	require.Equal(t, exitFailed, <-code)
	require.Equal(t, "sluice: interrupted\n", stderr.String())
	require.NoError(t, out.Close()) // ends the read that was left behind
}
