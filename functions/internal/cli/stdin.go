package cli

import (
	"context"
	"fmt"
	"io"
	"os"
)

// open opens a file, or standard input if it has no name or is "-". total is
// the file's size in bytes; 0: not known.
func (p *program) open(ctx context.Context, name string) (in io.ReadCloser, total int64, err error) {
	if name == "" || name == "-" {
		if p.terminal(p.stdin) {
			fmt.Fprintln(p.stderr, "reading from the terminal; Ctrl-D ends it")
		}
		return io.NopCloser(&interruptible{ctx: ctx, r: p.stdin}), 0, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, 0, err
	}
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
		total = info.Size()
	}
	return f, total, nil
}

// interruptible is a reader whose reads end with ctx: a read of a terminal or
// a pipe cannot be ended, only left behind.
type interruptible struct {
	ctx context.Context //nolint:containedctx // io.Reader has no place for it
	r   io.Reader
}

// Read reads, or gives up when ctx ends.
func (i *interruptible) Read(p []byte) (int, error) {
	type result struct {
		data []byte
		err  error
	}
	done := make(chan result, 1)
	go func() {
		data := make([]byte, len(p)) // p is the caller's again once it has given up
		n, err := i.r.Read(data)
		done <- result{data[:n], err}
	}()
	select {
	case r := <-done:
		return copy(p, r.data), r.err
	case <-i.ctx.Done():
		return 0, i.ctx.Err()
	}
}
