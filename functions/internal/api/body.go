package api

import (
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/klauspost/compress/gzip"

	"sluice/core"
)

const (
	// upfront bounds the memory that a request gets for a body it has only
	// announced. It is free of the ration: requests that send nothing must not
	// use up what others need.
	upfront = 16 << 10
	// wireSlack is by how much gzip may make what can't be compressed larger.
	wireSlack = 64 << 10
)

// limit is a bound on a body, and how to say so.
type limit struct {
	bytes int64
	whose string // reads on after "N bytes, the most "
}

func (l limit) exceeded() error {
	return core.Errorf(core.TooLarge, "the body has more than %d bytes, the most %s", l.bytes, l.whose)
}

// receive reads the body of a request to a source, and makes sure that the
// source lets its sender in: before reading wherever the headers allow.
func (h *handler) receive(r *http.Request, s *source, l limit, m *ration) ([]byte, error) {
	signed := s.gate.signed(r.Header)
	var err error
	if signed {
		err = fresh(r.Header, h.Clock.Now())
	} else {
		err = s.gate.admit(r)
	}
	if err != nil {
		return nil, err
	}
	body, err := h.payload(r, l, m)
	if err == nil && signed {
		err = s.gate.verify(r.Header, body)
	}
	return body, err
}

// payload is a request's body, decoded. It never reads more than a byte
// beyond the limit.
func (h *handler) payload(r *http.Request, l limit, m *ration) ([]byte, error) {
	zipped, err := gzipped(r.Header)
	if err != nil {
		return nil, err
	}
	length := r.ContentLength
	switch {
	case r.Body == nil:
		return nil, nil
	case length == 0 && r.Body != http.NoBody:
		length = -1 // net/http's clients leave it at 0 when they don't know
	}
	if zipped {
		return h.inflated(r.Body, length, l, m)
	}
	if length > l.bytes {
		return nil, l.exceeded()
	}
	body, err := read(r.Body, length, l, m)
	if err != nil && core.CodeOf(err) == core.Internal {
		err = core.Wrap(core.Invalid, err, "the body could not be read to its end")
	}
	return body, err
}

// gzipped reports whether a request's body is compressed.
func gzipped(h http.Header) (bool, error) {
	codings := h["Content-Encoding"]
	switch {
	case len(codings) == 0:
		return false, nil
	case len(codings) > 1:
		return false, unsupportedEncoding()
	}
	switch strings.ToLower(codings[0]) {
	case "", "identity":
		return false, nil
	case "gzip", "x-gzip":
		return true, nil
	}
	return false, unsupportedEncoding()
}

// read reads a body of a length, -1 when that is not known.
func read(src io.Reader, length int64, l limit, m *ration) ([]byte, error) {
	want := length // the body is whole with so many bytes, or too large
	if length < 0 {
		want = l.bytes + 1
	}
	room := int64(upfront)
	if length < 0 {
		room = 4 << 10
	}
	buf := make([]byte, 0, min(want, room))
	for int64(len(buf)) < want {
		if len(buf) == cap(buf) {
			room = min(want, 2*int64(cap(buf)))
			if room > upfront {
				if err := m.take(room - upfront); err != nil {
					return nil, err
				}
			}
			more := make([]byte, len(buf), room)
			copy(more, buf)
			buf = more
		}
		n, err := src.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		switch {
		case errors.Is(err, io.EOF) && length < 0 && int64(len(buf)) < want:
			return buf, nil
		case errors.Is(err, io.EOF) && int64(len(buf)) < want:
			return nil, io.ErrUnexpectedEOF
		case err != nil && !errors.Is(err, io.EOF):
			return nil, err
		}
	}
	if length < 0 {
		return nil, l.exceeded()
	}
	return buf, nil
}

// inflated reads a compressed body. Both what is read and what it inflates to
// are bounded, so neither a bomb nor endless empty blocks cost more than an
// honest body.
func (h *handler) inflated(src io.Reader, length int64, l limit, m *ration) ([]byte, error) {
	if length > l.bytes+wireSlack {
		return nil, l.exceeded()
	}
	wire := &io.LimitedReader{R: src, N: l.bytes + wireSlack + 1}
	zr, ok := h.inflaters.Get().(*gzip.Reader)
	if !ok {
		zr = new(gzip.Reader)
	}
	defer h.inflaters.Put(zr)
	err := zr.Reset(wire)
	var body []byte
	if err == nil {
		body, err = read(zr, -1, l, m)
	}
	switch {
	case wire.N == 0: // whatever came of it: the stream was cut here
		return nil, l.exceeded()
	case err == nil || core.CodeOf(err) == core.TooLarge || core.CodeOf(err) == core.Unavailable:
		return body, err
	}
	return nil, core.Wrap(core.Invalid, err, "the body is not a whole gzip stream, as its content encoding says")
}
