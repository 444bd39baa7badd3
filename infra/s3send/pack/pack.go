// Package pack compresses objects.
package pack

import (
	"bytes"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"sluice/core"
)

// window bounds how far back zstd looks, and with it an encoder's memory, in
// bytes. Every reader of zstd has room for it.
const window = 1 << 20

// Kind is how an object is compressed.
type Kind struct {
	Suffix   string // of its key
	Encoding string // as HTTP calls it
	pack     func(dst, raw []byte) ([]byte, error)
}

var kinds = map[string]Kind{
	core.CompressNone: {},
	core.CompressGzip: {".gz", "gzip", packGzip},
	core.CompressZstd: {".zst", "zstd", packZstd},
}

// Of is the kind of a name; "" is none. ok is false for any other name.
func Of(name string) (k Kind, ok bool) {
	if name == "" {
		return Kind{}, true
	}
	k, ok = kinds[name]
	return k, ok
}

// Pack is raw compressed: the same bytes for the same bytes. It may be raw
// itself, when nothing is to be done.
func (k Kind) Pack(raw []byte) ([]byte, error) {
	if k.pack == nil {
		return raw, nil
	}
	return k.pack(make([]byte, 0, len(raw)/4+64), raw)
}

// writers are free for another object; each has about a megabyte.
var writers sync.Pool // of *gzip.Writer

func packGzip(dst, raw []byte) ([]byte, error) {
	out := bytes.NewBuffer(dst)
	w, ok := writers.Get().(*gzip.Writer)
	if !ok {
		w = gzip.NewWriter(out)
	}
	defer writers.Put(w)
	w.Reset(out)
	if _, err := w.Write(raw); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// encoder is made when it is first used. It is safe for concurrent use, and
// packs as many objects at a time as there are processors.
var encoder = sync.OnceValues(func() (*zstd.Encoder, error) {
	return zstd.NewWriter(nil, zstd.WithWindowSize(window), zstd.WithLowerEncoderMem(true))
})

func packZstd(dst, raw []byte) ([]byte, error) {
	e, err := encoder()
	if err != nil {
		return nil, err
	}
	return e.EncodeAll(raw, dst), nil
}
