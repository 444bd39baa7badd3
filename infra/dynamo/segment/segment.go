package segment

import (
	"math/bits"
	"sync"

	"github.com/klauspost/compress/zstd"

	"sluice/core"
)

// The kinds of packing.
const (
	plain      = 0
	compressed = 1
)

// maxRaw bounds what a segment unpacks to, in bytes: far more than is ever
// packed into one.
const maxRaw = 16 << 20

// worth is from how many bytes on compression is tried.
const worth = 128

// codec is made when it is first used, as a cold start need not wait for it.
// Both halves are safe for concurrent use in the way they are used here.
var codec = sync.OnceValue(func() (c struct {
	enc *zstd.Encoder
	dec *zstd.Decoder
}) {
	// fails only on options that do not exist
	c.enc, _ = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false),
		zstd.WithAllLitEntropyCompression(true)) // base64 has no repetitions, but is a quarter too long
	c.dec, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxRaw))
	return c
})

// Pack makes the bytes of events that arrived at about a time.
func Pack(events []core.Event, at core.Millis) []byte {
	n := 1
	for i := range events {
		n += Size(&events[i])
	}
	raw := append(make([]byte, 0, n), plain)
	for i := range events {
		raw = appendEvent(raw, &events[i], at)
	}
	if len(raw) < worth {
		return raw
	}
	if z := codec().enc.EncodeAll(raw[1:], append(make([]byte, 0, n/2), compressed)); len(z) < len(raw) {
		return z
	}
	return raw
}

// Unpack returns the events of bytes that [Pack] has made. Internal: they are
// damaged.
func Unpack(packed []byte, at core.Millis) ([]core.Event, error) {
	if len(packed) == 0 {
		return nil, core.Errorf(core.Internal, "a segment without a first byte")
	}
	raw := packed[1:]
	switch packed[0] {
	case plain:
	case compressed:
		var err error
		if raw, err = codec().dec.DecodeAll(raw, nil); err != nil {
			return nil, core.Wrap(core.Internal, err, "a segment that does not decompress")
		}
	default:
		return nil, core.Errorf(core.Internal, "a segment of the unknown kind %d", packed[0])
	}
	in := reader{rest: raw}
	var events []core.Event
	for len(in.rest) > 0 {
		e := in.event(at)
		if in.bad {
			return nil, core.Errorf(core.Internal, "a segment that ends in the middle of event %d", len(events)+1)
		}
		events = append(events, e)
	}
	return events, nil
}

// Size is about how many bytes an event takes before compression, and never
// less than it does.
func Size(e *core.Event) int {
	const numbers = 40 // flags, arrival and lengths, but for those of headers
	n := numbers + len(e.ID) + len(e.Source) + len(e.ContentType) + len(e.Body)
	for _, h := range e.Headers {
		n += len(h.Name) + len(h.Value) + lengthOf(h.Name) + lengthOf(h.Value)
	}
	return n
}

// lengthOf is how many bytes the length of a text takes: seven bits in each.
func lengthOf(s string) int { return (bits.Len(uint(len(s))|1) + 6) / 7 }
