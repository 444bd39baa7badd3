package jsonbody

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

// textEnd is the place behind the quote that ends the text from i on, or
// invalid when it has a control character or an escape that JSON has not.
func textEnd(b []byte, i int) int {
	for i+8 <= len(b) {
		m := marks(binary.LittleEndian.Uint64(b[i:]))
		if m == 0 {
			i += 8
			continue
		}
		i += bits.TrailingZeros64(m) >> 3
		if b[i] == '"' {
			return i + 1
		}
		n := escapeLen(b[i:])
		if n == 0 {
			return invalid
		}
		i += n
	}
	return lastTextEnd(b, i)
}

// plainEnd is where text from i on stops being plain, at most at most. For a
// few bytes it costs less than the call of textEnd.
func plainEnd(b []byte, i, most int) int {
	for i < len(b) && i < most && b[i] >= ' ' && b[i] != '"' && b[i] != '\\' {
		i++
	}
	return i
}

// lastTextEnd is textEnd within the last bytes of b.
func lastTextEnd(b []byte, i int) int {
	for i < len(b) && b[i] >= ' ' {
		switch b[i] {
		case '"':
			return i + 1
		case '\\':
			n := escapeLen(b[i:])
			if n == 0 {
				return invalid
			}
			i += n
		default:
			i++
		}
	}
	return invalid
}

// marks has the high bit set in the first byte of x that is a quote, a
// backslash or a control character, and perhaps in bytes behind it; it is zero
// when there is none.
//
// Flipping bit 1 swaps the quote and the space, which puts the quote right
// behind the control characters, so that one subtraction finds both.
func marks(x uint64) uint64 {
	const each = 0x0101_0101_0101_0101
	low := (x ^ 0x02*each) - 0x21*each
	backslash := (x ^ '\\'*each) - each
	return (low | backslash) &^ x & (0x80 * each)
}

// special is like marks, for quotes, backslashes and what is not ASCII.
func special(x uint64) uint64 {
	const each = 0x0101_0101_0101_0101
	quote := (x ^ '"'*each) - each
	backslash := (x ^ '\\'*each) - each
	return (quote | backslash | x) & (0x80 * each)
}

// escapeLen is the length of the escape that s begins with, or 0 if it is none.
func escapeLen(s []byte) int {
	if len(s) < 2 || s[0] != '\\' {
		return 0
	}
	switch s[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if hex4(s) >= 0 {
			return 6
		}
	}
	return 0
}

// hex4 is the number in an escape of the form \u12ab, or -1 if s begins with none.
func hex4(s []byte) rune {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return -1
	}
	var r rune
	for _, c := range s[2:6] {
		switch {
		case c-'0' <= 9:
			c -= '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return -1
		}
		r = r<<4 | rune(c)
	}
	return r
}

// Text is what a valid JSON string says, as encoding/json reads it: what is
// not UTF-8, and half a surrogate pair, becomes U+FFFD.
func Text(value []byte) string {
	if len(value) < 2 {
		return ""
	}
	s := value[1 : len(value)-1]
	if bytes.IndexByte(s, '\\') < 0 && utf8.Valid(s) {
		return string(s)
	}
	said := make([]byte, 0, len(s)+utf8.UTFMax)
	for len(s) > 0 {
		r, n := next(s)
		said = utf8.AppendRune(said, r)
		s = s[n:]
	}
	return string(said)
}

// says reports whether the inside of a valid JSON string says text.
func says(s []byte, text string) bool {
	for len(s) > 0 {
		r, n := next(s)
		want, m := utf8.DecodeRuneInString(text)
		if r != want || want == utf8.RuneError && m < 2 {
			return false
		}
		s, text = s[n:], text[m:]
	}
	return text == ""
}

// next is the first character that s says, and how many bytes it takes.
func next(s []byte) (rune, int) {
	if s[0] != '\\' {
		return utf8.DecodeRune(s)
	}
	if r := hex4(s); r >= 0 {
		if !utf16.IsSurrogate(r) {
			return r, 6
		}
		if pair := utf16.DecodeRune(r, hex4(s[6:])); pair != utf8.RuneError {
			return pair, 12
		}
		return utf8.RuneError, 6
	}
	if len(s) < 2 {
		return utf8.RuneError, 1
	}
	switch s[1] {
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	}
	return rune(s[1]), 2
}
