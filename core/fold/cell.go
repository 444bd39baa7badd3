package fold

import (
	"bytes"
	"encoding/json"
	"math/big"
	"strconv"
	"unicode/utf8"
)

// cell is a column of a row under way.
type cell interface {
	add(v *value)
	append(b []byte) []byte // appends its value as JSON
}

const null = "null"

type count int64

func (c *count) add(v *value) {
	if v.there {
		*c++
	}
}

func (c *count) append(b []byte) []byte { return strconv.AppendInt(b, int64(*c), 10) }

type sum struct{ total decimal }

func (s *sum) add(v *value) {
	if v.is {
		s.total.add(v.number)
	}
}

func (s *sum) append(b []byte) []byte { return s.total.append(b) }

type avg struct {
	total decimal
	n     int64
}

func (a *avg) add(v *value) {
	if v.is {
		a.total.add(v.number)
		a.n++
	}
}

func (a *avg) append(b []byte) []byte {
	if a.n == 0 {
		return append(b, null...)
	}
	mean := a.total.rat()
	mean.Quo(mean, new(big.Rat).SetInt64(a.n))
	return appendRounded(b, mean)
}

// extreme is the greatest of the numbers, each times sign.
type extreme struct {
	sign    int
	most    number
	written []byte // as it came; nothing before the first
}

func (e *extreme) add(v *value) {
	if v.is && (e.written == nil || v.number.cmp(&e.most)*e.sign > 0) {
		e.most, e.written = v.number, append(e.written[:0], v.raw...)
	}
}

func (e *extreme) append(b []byte) []byte {
	if e.written == nil {
		return append(b, null...)
	}
	return append(b, e.written...)
}

// kept is a value of an event: JSON as it was written, or a text.
type kept struct {
	value []byte // nothing: none is kept
	text  bool
}

func (k *kept) keep(v *value) {
	size := max(len(v.raw), len(v.text))
	if cap(k.value) > 4*size+64 { // room that a much longer one took
		k.value = nil
	}
	k.value, k.text = append(append(k.value[:0], v.raw...), v.text...), v.raw == nil
}

func (k *kept) append(b []byte) []byte {
	if k.text {
		return appendText(b, string(k.value))
	}
	var buf bytes.Buffer
	if err := json.Compact(&buf, k.value); err != nil { // there is none, or the body was no JSON
		return append(b, null...)
	}
	if utf8.Valid(buf.Bytes()) {
		return append(b, buf.Bytes()...)
	}
	return append(b, string([]rune(buf.String()))...)
}

type first struct{ kept }

func (f *first) add(v *value) {
	if f.value == nil && (v.raw != nil || v.text != "") {
		f.keep(v)
	}
}

type last struct{ kept }

func (l *last) add(v *value) {
	if v.raw != nil || v.text != "" {
		l.keep(v)
	}
}

// appendText appends a text as a JSON string.
func appendText(b []byte, s string) []byte {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil { // no string does
		return append(b, null...)
	}
	return append(b, bytes.TrimRight(buf.Bytes(), "\n")...)
}
