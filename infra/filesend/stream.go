package filesend

import (
	"io"
	"slices"
)

// stream is an output that takes nothing back.
type stream struct {
	w    io.Writer
	rest []byte // of a batch that was written in part
}

// append writes the batch, behind the rest of an earlier one. That one was
// reported as failed, so it may arrive twice, but no line of it is torn.
func (s *stream) append(batch []byte) error {
	if len(s.rest) > 0 {
		n, err := write(s.w, s.rest)
		s.rest = s.rest[n:]
		if err != nil {
			return err
		}
	}
	n, err := write(s.w, batch)
	if 0 < n && n < len(batch) {
		s.rest = slices.Clone(batch[n:])
	}
	return err
}

func (s *stream) close() error { return nil }

// write is one Write, in which a short one is an error whatever w says.
func write(w io.Writer, p []byte) (int, error) {
	n, err := w.Write(p)
	if n < len(p) && err == nil {
		err = io.ErrShortWrite
	}
	return n, err
}
