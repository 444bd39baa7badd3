package bench

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// The exit codes of [Main].
const (
	exitMet    = 0
	exitMissed = 1
	exitFailed = 2
)

// referenceCommand is how this program starts itself as a reference:
// bench -reference KIND ADDR FILE.
const referenceCommand = "-reference"

// Main is the command: it measures what args say, prints the report to stdout
// and its progress to stderr, and returns the exit code. ctx ends it early.
func Main(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) == 4 && args[0] == referenceCommand {
		return exitOf(serveReference(ctx, args[1], args[2], args[3]), stderr)
	}
	self, err := os.Executable()
	if err != nil {
		return exitOf(err, stderr)
	}
	o, err := parseOptions(args, self, stderr)
	if err != nil {
		return exitOf(err, stderr)
	}
	report, err := measure(ctx, o, stderr)
	if err != nil {
		return exitOf(err, stderr)
	}
	write := report.WriteTable
	if o.json {
		write = report.WriteJSON
	}
	if err := write(stdout); err != nil {
		return exitOf(err, stderr)
	}
	if !report.Met() {
		return exitMissed
	}
	return exitMet
}

func exitOf(err error, stderr io.Writer) int {
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return exitMet
	default:
		fmt.Fprintln(stderr, "bench:", err)
		return exitFailed
	}
}

// bench is one run.
type bench struct {
	*options
	dir      string
	report   Report
	progress io.Writer
	rate     float64 // events a second that sluice takes one by one; 0: not measured yet
}

// measure runs the scenarios that o names.
func measure(ctx context.Context, o *options, progress io.Writer) (*Report, error) {
	dir, err := os.MkdirTemp(o.dir, "sluice-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	b := &bench{options: o, dir: dir, progress: progress}
	run := map[string]func(context.Context) error{
		"a": b.single, "b": b.batches, "c": b.acks, "d": b.deadlines, "e": b.backlog, "f": b.start, "g": b.killed,
	}
	for _, s := range scenarios {
		if !o.wants(s) {
			continue
		}
		if err := run[s](ctx); err != nil {
			return nil, fmt.Errorf("scenario %s: %w", s, err)
		}
	}
	return &b.report, ctx.Err()
}

func (b *bench) sayf(format string, args ...any) { fmt.Fprintf(b.progress, format+"\n", args...) }

// reference starts one of the references, and returns when it is ready.
func (b *bench) reference(ctx context.Context, kind string) (*process, error) {
	addr, err := freeAddr(ctx)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(b.dir, kind)
	p, err := launch(ctx, kind, addr, file+".log", b.self, referenceCommand, kind, addr, file)
	if err != nil {
		return nil, err
	}
	if _, err = p.ready(ctx); err != nil {
		p.kill()
		return nil, err
	}
	return p, nil
}

// stage is what one sluice needs: a sink to deliver to, an address, and a
// folder for its configuration, log and data.
type stage struct {
	b    *bench
	sink *Sink
	stop func()
	addr string
	dir  string
}

// stage sets up for a sluice whose buffer has these settings. clear it when
// its sluice has ended.
func (b *bench) stage(ctx context.Context, set settings) (*stage, error) {
	s := &stage{b: b, sink: NewSink(set.idle, set.wait)}
	var err error
	if s.addr, err = freeAddr(ctx); err != nil {
		return nil, err
	}
	if s.dir, err = os.MkdirTemp(b.dir, "stage-"); err != nil {
		return nil, err
	}
	var url string
	if url, s.stop, err = s.sink.Serve(ctx); err != nil {
		return nil, err
	}
	if err := os.WriteFile(s.path("sluice.yaml"), []byte(set.config(url)), 0o600); err != nil {
		s.clear()
		return nil, err
	}
	return s, nil
}

func (s *stage) path(name string) string { return filepath.Join(s.dir, name) }

func (s *stage) clear() {
	s.stop()
	_ = os.RemoveAll(s.dir) // the whole run's folder goes in the end
}

// serve starts the stage's sluice, and returns when it is ready, and how long
// that took.
func (s *stage) serve(ctx context.Context) (*process, time.Duration, error) {
	p, err := launch(ctx, sluice, s.addr, s.path("log"), s.b.binary, "serve",
		"--config", s.path("sluice.yaml"), "--data", s.path("data"), "--listen", s.addr)
	if err != nil {
		return nil, 0, err
	}
	took, err := p.ready(ctx)
	if err != nil {
		p.kill()
		return nil, 0, err
	}
	return p, took, nil
}

// settings are a buffer's batch settings.
type settings struct {
	items int
	bytes int
	idle  time.Duration
	wait  time.Duration
}

// config is a configuration of one source, `in`, and one buffer, grouped by
// the events' key.
func (s settings) config(sink string) string {
	return fmt.Sprintf(`sources:
  in:
    type: http
destinations:
  sink:
    type: http
    url: %s/
    allowPrivate: true
buffers:
  bench:
    from: [in]
    to: sink
    groupBy: "{{ .json.key }}"
    batch: {maxItems: %d, maxBytes: %d, idleTimeoutMs: %d, maxWaitFromFirstMs: %d}
`, sink, s.items, s.bytes, s.idle.Milliseconds(), s.wait.Milliseconds())
}

// pathOf is where to POST so many events at a time.
func pathOf(perPost int) string {
	if perPost > 1 {
		return "/v1/sources/in/batch"
	}
	return "/v1/sources/in"
}
