package filesend

import (
	"context"
	"errors"
	"io"
	"syscall"
	"time"

	"sluice/core"
	"sluice/core/format"
)

// defaultTimeout is how long one batch may take without [Timeout].
const defaultTimeout = 15 * time.Second

// statusWritten is the status of a batch that was written; there is no
// protocol here that would have one of its own.
const statusWritten = 200

// output takes one batch at a time: all of it, or an error.
type output interface {
	append(batch []byte) error
	close() error
}

// Sender writes to one file or stream. It is safe for concurrent use.
type Sender struct {
	format  format.Format
	timeout time.Duration
	out     output
	buf     []byte
	turn    chan struct{} // who has put a value in may use out and buf
	closed  chan struct{}
}

var _ core.Sender = (*Sender)(nil)

// Option is a setting of a sender.
type Option func(*Sender)

// Timeout bounds how long one batch may take, waiting for others included;
// above 0. The default is 15 seconds.
func Timeout(d time.Duration) Option { return func(s *Sender) { s.timeout = d } }

// NewFile makes a sender that appends to the file at path, which it creates
// for its owner alone when there is none. core.Invalid: the folder is missing,
// or what stands there is not a regular file that may be written;
// core.Unavailable: it cannot be opened now.
//
// A last line without an end, which a crash leaves behind, is cut off unless
// it is whole but for the line break. The batch it was of was never reported
// as delivered.
func NewFile(path string, f format.Format, opts ...Option) (*Sender, error) {
	out, err := openFile(path, openHandle)
	if err != nil {
		return nil, err
	}
	return newSender(out, f, opts), nil
}

// NewWriter makes a sender that writes to w, such as standard output. w stays
// open when the sender is closed.
func NewWriter(w io.Writer, f format.Format, opts ...Option) *Sender {
	return newSender(&stream{w: w}, f, opts)
}

func newSender(out output, f format.Format, opts []Option) *Sender {
	s := &Sender{format: f, timeout: defaultTimeout, out: out, turn: make(chan struct{}, 1), closed: make(chan struct{})}
	for _, set := range opts {
		set(s)
	}
	return s
}

// Send writes the batch. A write that outlives the timeout or ctx goes on
// behind it and keeps its turn: its batch may arrive although it is sent again.
func (s *Sender) Send(ctx context.Context, b *core.Batch) core.Response {
	if ctx.Err() != nil {
		return s.ended(ctx)
	}
	sending, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	select {
	case s.turn <- struct{}{}:
	case <-s.closed:
		return core.Response{Err: core.Errorf(core.Unavailable, "the destination is closed")}
	case <-sending.Done():
		return s.ended(ctx)
	}
	s.encode(b)
	done := make(chan error, 1)
	go func() {
		err := s.out.append(s.buf)
		<-s.turn
		done <- err
	}()
	select {
	case err := <-done:
		return written(err)
	case <-sending.Done():
		return s.ended(ctx)
	}
}

// encode puts the batch into buf, as whole lines.
func (s *Sender) encode(b *core.Batch) {
	s.buf = format.Append(s.buf[:0], s.format, b)
	if n := len(s.buf); n > 0 && s.buf[n-1] != '\n' {
		s.buf = append(s.buf, '\n')
	}
}

// ended is the response of a send that was not waited for. ctx is the caller's own.
func (s *Sender) ended(ctx context.Context) core.Response {
	if err := ctx.Err(); err != nil {
		return core.Response{Err: core.Wrap(core.Canceled, err, "the send was stopped")}
	}
	return core.Response{Err: core.Errorf(core.Unavailable, "not written within %v", s.timeout)}
}

// written is the one place where a write's error gets its code. Whatever it
// is, it may pass: space is freed, a folder comes back.
func written(err error) core.Response {
	switch {
	case err == nil:
		return core.Response{Status: statusWritten}
	case errors.Is(err, syscall.ENOSPC):
		return core.Response{Err: core.Wrap(core.Unavailable, err, "the disk is full")}
	}
	return core.Response{Err: core.Wrap(core.Unavailable, err, "the batch could not be written")}
}

// Close waits for the write under way and closes the file. Later sends are
// core.Unavailable. It waits no longer than a send may take, and then returns
// core.Unavailable. It must be called once.
func (s *Sender) Close() error {
	timer := time.NewTimer(s.timeout)
	defer timer.Stop()
	close(s.closed)
	select {
	case s.turn <- struct{}{}: // and kept
		return s.out.close()
	case <-timer.C:
		return core.Errorf(core.Unavailable, "a write is still under way")
	}
}
