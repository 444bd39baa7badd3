package jsonbody

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// nearby is how far to look for a quote before searching with a call pays.
const nearby = 32

// quote is the place of the quote that ends the text from i on, or the end of
// b, and whether the text was seen to be ASCII without escapes.
func quote(b []byte, from int) (end int, plain bool) {
	for i := from; i+8 <= len(b) && i < from+nearby; i += 8 {
		m := special(binary.LittleEndian.Uint64(b[i:]))
		if m == 0 {
			continue
		}
		if i += bits.TrailingZeros64(m) >> 3; b[i] == '"' {
			return i, true
		}
		break
	}
	return farQuote(b, from), false
}

func farQuote(b []byte, from int) int {
	for i := from; i < len(b); i++ {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			break
		}
		i += n
		escapes := 0
		for i-escapes > from && b[i-1-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return i
		}
	}
	return len(b)
}

// valueEnd is where the value at i ends.
func valueEnd(b []byte, i int) int {
	if i == len(b) {
		return i
	}
	switch b[i] {
	case '"':
		end, _ := quote(b, i+1)
		return min(end+1, len(b))
	case '{', '[':
		end, _ := nested(b, i)
		return end
	}
	for i < len(b) && b[i] > ' ' && b[i] != ',' && b[i] != '}' && b[i] != ']' {
		i++
	}
	return i
}

// Depth is how deep a valid value is nested: 0 without a bracket, 1 for [].
func Depth(value []byte) int {
	if k := KindOf(value); k != Array && k != Object {
		return 0
	}
	_, most := nested(value, SkipSpaces(value, 0))
	return most
}

// nested is where the object or array at i ends, and how deep it is nested.
func nested(b []byte, i int) (end, most int) {
	for depth := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			i, _ = quote(b, i+1)
		case '{', '[':
			depth++
			most = max(most, depth)
		case '}', ']':
			if depth--; depth <= 0 {
				return i + 1, most
			}
		}
	}
	return len(b), most
}
