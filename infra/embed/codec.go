package embed

import (
	"encoding/binary"

	"sluice/core"
)

// reader takes values off the front of a slice. After the first value that is
// not there it is bad, and gives zeros.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) fail() { r.b, r.bad = nil, true }

func (r *reader) uint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) int() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) bool() bool { return r.uint() != 0 }

func (r *reader) millis() core.Millis { return core.Millis(r.int()) }

// count is a number of things of which each takes at least a byte here.
func (r *reader) count() int {
	n := r.uint()
	if n > uint64(len(r.b)) {
		r.fail()
		return 0
	}
	return int(n)
}

func (r *reader) fixed32() uint32 {
	raw := r.take(4)
	if raw == nil {
		return 0
	}
	return binary.LittleEndian.Uint32(raw)
}

func (r *reader) take(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.fail()
		return nil
	}
	raw := r.b[:n:n]
	r.b = r.b[n:]
	return raw
}

func (r *reader) bytes() []byte { return r.take(r.count()) }
func (r *reader) str() string   { return string(r.bytes()) }

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendNumbers(b []byte, numbers ...uint64) []byte {
	for _, n := range numbers {
		b = binary.AppendUvarint(b, n)
	}
	return b
}

func appendFixed32(b []byte, v uint32) []byte { return binary.LittleEndian.AppendUint32(b, v) }

func appendMillis(b []byte, m core.Millis) []byte { return binary.AppendVarint(b, int64(m)) }

func appendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

func appendGroup(b []byte, g *core.Group) []byte {
	b = appendString(b, g.Life)
	b = binary.AppendUvarint(b, g.Rev)
	b = binary.AppendUvarint(b, g.Head)
	b = binary.AppendUvarint(b, g.Tail)
	b = binary.AppendVarint(b, g.HeadBytes)
	b = binary.AppendVarint(b, g.TailBytes)
	b = appendMillis(b, g.FirstAt)
	b = appendMillis(b, g.LastAt)
	b = appendMillis(b, g.CheckAt)
	b = binary.AppendUvarint(b, g.Ceiling)
	b = appendMillis(b, g.Closed)
	b = appendMillis(b, g.Hold)
	b = binary.AppendUvarint(b, uint64(len(g.Claims)))
	for i := range g.Claims {
		b = appendClaim(b, &g.Claims[i])
	}
	return b
}

// group takes a group of a format.
func (r *reader) group(format uint64) core.Group {
	g := core.Group{
		Life: r.str(), Rev: r.uint(),
		Head: r.uint(), Tail: r.uint(), HeadBytes: r.int(), TailBytes: r.int(),
		FirstAt: r.millis(), LastAt: r.millis(), CheckAt: r.millis(),
		Ceiling: r.uint(),
	}
	if format > 1 {
		g.Closed = r.millis()
	}
	if format > 2 {
		g.Hold = r.millis()
	}
	for range r.count() {
		g.Claims = append(g.Claims, r.claim(format))
		if r.bad {
			return core.Group{}
		}
	}
	return g
}

func appendClaim(b []byte, c *core.Claim) []byte {
	b = appendString(b, c.ID)
	b = binary.AppendUvarint(b, c.From)
	b = binary.AppendUvarint(b, c.To)
	b = appendString(b, string(c.Done))
	b = binary.AppendVarint(b, int64(c.Residue))
	b = appendString(b, string(c.Reason))
	b = binary.AppendVarint(b, int64(c.Attempt))
	b = binary.AppendUvarint(b, c.Lease)
	b = appendMillis(b, c.Due)
	b = appendMillis(b, c.FirstErrorAt)
	b = appendString(b, c.Error)
	b = appendString(b, c.Fold)
	b = binary.AppendVarint(b, int64(c.Sent))
	b = binary.AppendVarint(b, int64(c.Hop))
	return appendBool(b, c.Token)
}

func (r *reader) claim(format uint64) core.Claim {
	c := core.Claim{ID: r.str(), From: r.uint(), To: r.uint()}
	if done := r.bytes(); len(done) > 0 {
		c.Done = append(core.Bits(nil), done...)
	}
	c.Residue, c.Reason, c.Attempt = int(r.int()), core.Reason(r.str()), int(r.int())
	c.Lease, c.Due, c.FirstErrorAt, c.Error = r.uint(), r.millis(), r.millis(), r.str()
	if format > 1 {
		c.Fold, c.Sent = r.str(), int(r.int())
	}
	if format > 2 {
		c.Hop, c.Token = int(r.int()), r.bool()
	}
	return c
}

// flagJSON says that an event's body was found to be JSON.
const flagJSON = 1

// appendEvent makes an item's payload: flags and lengths, the texts, the body.
func appendEvent(b []byte, e *core.Event) []byte {
	var flags byte
	if e.JSON {
		flags |= flagJSON
	}
	b = appendMillis(append(b, flags), e.ReceivedAt)
	b = binary.AppendUvarint(b, uint64(len(e.ID)))
	b = binary.AppendUvarint(b, uint64(len(e.Source)))
	b = binary.AppendUvarint(b, uint64(len(e.ContentType)))
	b = binary.AppendUvarint(b, uint64(len(e.Headers)))
	for i := range e.Headers {
		b = binary.AppendUvarint(b, uint64(len(e.Headers[i].Name)))
		b = binary.AppendUvarint(b, uint64(len(e.Headers[i].Value)))
	}
	b = append(append(append(b, e.ID...), e.Source...), e.ContentType...)
	for i := range e.Headers {
		b = append(append(b, e.Headers[i].Name...), e.Headers[i].Value...)
	}
	return append(b, e.Body...)
}

// event takes an item's payload, which is all that is left. The texts share
// one string, and the body shares the reader's bytes.
func (r *reader) event() core.Event {
	flags := r.take(1)
	if flags == nil {
		return core.Event{}
	}
	e := core.Event{JSON: flags[0]&flagJSON != 0, ReceivedAt: r.millis()}
	id, source, contentType := r.count(), r.count(), r.count()
	lengths := make([]int, 0, 16)
	total := id + source + contentType
	for range 2 * r.count() {
		n := r.count()
		lengths = append(lengths, n)
		total += n
		if r.bad {
			return core.Event{}
		}
	}
	text := string(r.take(total))
	if r.bad {
		return core.Event{}
	}
	next := func(n int) (s string) {
		s, text = text[:n], text[n:]
		return s
	}
	e.ID, e.Source, e.ContentType = next(id), next(source), next(contentType)
	if len(lengths) > 0 {
		e.Headers = make([]core.Header, len(lengths)/2)
	}
	for i := range e.Headers {
		e.Headers[i] = core.Header{Name: next(lengths[2*i]), Value: next(lengths[2*i+1])}
	}
	e.Body = r.take(len(r.b))
	return e
}

// appendLetter makes a dead letter's payload.
func appendLetter(b []byte, d *core.DeadLetter) []byte {
	for _, s := range []string{d.ID, d.Batch, d.Buffer, d.Group, d.Destination, d.Reason, d.Answer, d.LastError} {
		b = appendString(b, s)
	}
	b = binary.AppendVarint(b, int64(d.Status))
	b = binary.AppendVarint(b, int64(d.Attempts))
	b = appendMillis(b, d.FirstErrorAt)
	b = appendMillis(b, d.LastErrorAt)
	b = binary.AppendUvarint(b, d.Item.Seq)
	return appendEvent(b, &d.Item.Event)
}

func (r *reader) letter() core.DeadLetter {
	d := core.DeadLetter{
		ID: r.str(), Batch: r.str(), Buffer: r.str(), Group: r.str(), Destination: r.str(),
		Reason: r.str(), Answer: r.str(), LastError: r.str(),
		Status: int(r.int()), Attempts: int(r.int()), FirstErrorAt: r.millis(), LastErrorAt: r.millis(),
	}
	d.Item.Seq = r.uint()
	d.Item.Event = r.event()
	return d
}
