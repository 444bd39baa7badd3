package jsonbody

// Kind is what a JSON value is.
type Kind uint8

// The kinds of values.
const (
	None Kind = iota // there is no value
	Null
	Bool
	Number
	String
	Array
	Object
)

// KindOf is a valid value's kind; None when there is nothing.
func KindOf(value []byte) Kind {
	i := SkipSpaces(value, 0)
	if i == len(value) {
		return None
	}
	switch value[i] {
	case '{':
		return Object
	case '[':
		return Array
	case '"':
		return String
	case 't', 'f':
		return Bool
	case 'n':
		return Null
	}
	return Number
}

// Trim is a value without the spaces around it.
func Trim(value []byte) []byte {
	from, to := SkipSpaces(value, 0), len(value)
	for to > from && isSpace(value[to-1]) {
		to--
	}
	return value[from:to]
}

// SkipSpaces is the place of the first byte from i on that is no space to JSON,
// or the end of b.
func SkipSpaces(b []byte, i int) int {
	for i < len(b) && isSpace(b[i]) {
		i++
	}
	return i
}

func isSpace(c byte) bool {
	return c <= ' ' && (c == ' ' || c == '\n' || c == '\r' || c == '\t')
}
