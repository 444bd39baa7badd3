package bench

import (
	"bytes"
	"math/rand/v2"
)

// An event is JSON of a fixed layout, so that the load can write over the
// digits in place, and the sink can read them without parsing:
//
//	{"key":"k00000042","id":"000000001234","sent":"1767225600000000000","pad":"…"}
const (
	eventKey  = `{"key":"k`
	eventID   = `","id":"`
	eventSent = `","sent":"`
	eventPad  = `","pad":"`
	eventEnd  = `"}`

	keyDigits  = 8
	idDigits   = 12
	sentDigits = 19

	keyAt  = len(eventKey)
	idAt   = keyAt + keyDigits + len(eventID)
	sentAt = idAt + idDigits + len(eventSent)
	padAt  = sentAt + sentDigits + len(eventPad)

	minEvent = padAt + len(eventEnd)
)

// event is what the digits of an event say.
type event struct {
	key  uint64
	id   uint64
	sent int64 // Unix nanoseconds
}

// newEvent makes an event of size bytes, at least minEvent, with all digits zero
// and a padding that does not compress.
func newEvent(size int, r *rand.Rand) []byte {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	b := make([]byte, 0, size)
	b = append(b, eventKey...)
	b = append(b, bytes.Repeat([]byte("0"), keyDigits)...)
	b = append(b, eventID...)
	b = append(b, bytes.Repeat([]byte("0"), idDigits)...)
	b = append(b, eventSent...)
	b = append(b, bytes.Repeat([]byte("0"), sentDigits)...)
	b = append(b, eventPad...)
	for len(b) < size-len(eventEnd) {
		b = append(b, alphabet[r.IntN(len(alphabet))])
	}
	return append(b, eventEnd...)
}

// write puts e's digits into b, an event.
func (e event) write(b []byte) {
	putDigits(b[keyAt:keyAt+keyDigits], e.key)
	putDigits(b[idAt:idAt+idDigits], e.id)
	putDigits(b[sentAt:sentAt+sentDigits], uint64(e.sent))
}

// readEvent reads an event's digits; false when b is not an event, whole.
func readEvent(b []byte) (event, bool) {
	if len(b) < minEvent || !bytes.HasPrefix(b, []byte(eventKey)) || !bytes.HasSuffix(b, []byte(eventEnd)) {
		return event{}, false
	}
	key, ok1 := digits(b[keyAt : keyAt+keyDigits])
	id, ok2 := digits(b[idAt : idAt+idDigits])
	sent, ok3 := digits(b[sentAt : sentAt+sentDigits])
	return event{key: key, id: id, sent: int64(sent)}, ok1 && ok2 && ok3
}

// putDigits fills b with n in decimal, zeros in front.
func putDigits(b []byte, n uint64) {
	for i := len(b) - 1; i >= 0; i-- {
		b[i] = byte('0' + n%10)
		n /= 10
	}
}

func digits(b []byte) (uint64, bool) {
	var n uint64
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + uint64(c-'0')
	}
	return n, true
}
