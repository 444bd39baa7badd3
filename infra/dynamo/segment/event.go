package segment

import (
	"encoding/binary"

	"sluice/core"
)

// isJSON is the flag of an event whose body is known to be JSON.
const isJSON = 1

// usual are content types that take two bytes: an empty text, and their place
// in this list. It may grow at its end.
var usual = []string{"", "application/json", "text/plain", "application/octet-stream", "application/x-ndjson"}

func appendEvent(b []byte, e *core.Event, at core.Millis) []byte {
	var flags byte
	if e.JSON {
		flags |= isJSON
	}
	b = append(b, flags)
	b = appendText(b, e.ID)
	b = appendText(b, e.Source)
	b = appendType(b, e.ContentType)
	b = binary.AppendVarint(b, int64(e.ReceivedAt-at))
	b = binary.AppendUvarint(b, uint64(len(e.Headers)))
	for _, h := range e.Headers {
		b = appendText(b, h.Name)
		b = appendText(b, h.Value)
	}
	return appendText(b, e.Body)
}

func appendText[T string | []byte](b []byte, s T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendType(b []byte, contentType string) []byte {
	for i, u := range usual {
		if contentType == u {
			return append(b, 0, byte(i))
		}
	}
	return appendText(b, contentType)
}

// reader takes values off the front of a slice. After the first value that is
// not there it is bad, and gives zeros.
type reader struct {
	rest []byte
	bad  bool
}

func (r *reader) event(at core.Millis) core.Event {
	flags := r.take(1)
	e := core.Event{ID: string(r.text()), Source: string(r.text()), ContentType: r.contentType()}
	e.ReceivedAt = at + core.Millis(r.int())
	if n := r.count(); n > 0 {
		e.Headers = make([]core.Header, n)
		for i := range e.Headers {
			e.Headers[i] = core.Header{Name: string(r.text()), Value: string(r.text())}
		}
	}
	e.Body = r.text()
	e.JSON = len(flags) == 1 && flags[0]&isJSON != 0
	return e
}

func (r *reader) contentType() string {
	if s := r.text(); len(s) > 0 || r.bad {
		return string(s)
	}
	i := r.take(1)
	if i == nil || int(i[0]) >= len(usual) {
		r.fail()
		return ""
	}
	return usual[i[0]]
}

func (r *reader) text() []byte { return r.take(r.count()) }

// count is a number of things each of which takes at least a byte here.
func (r *reader) count() int {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 || v > uint64(len(r.rest)-n) {
		r.fail()
		return 0
	}
	r.rest = r.rest[n:]
	return int(v)
}

func (r *reader) int() int64 {
	v, n := binary.Varint(r.rest)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

// take is the next n bytes, which nothing else may append to.
func (r *reader) take(n int) []byte {
	if n > len(r.rest) {
		r.fail()
		return nil
	}
	b := r.rest[:n:n]
	r.rest = r.rest[n:]
	return b
}

func (r *reader) fail() { r.rest, r.bad = nil, true }
