package jsonbody

// maxDepth is the nesting that encoding/json allows.
const maxDepth = 10_000

// What scan returns instead of a place.
const (
	invalid = -1
	tooDeep = -2 // for the stack it was given
)

// Valid reports whether b is one JSON value with nothing but spaces around it,
// nested at most 10,000 deep. It is [encoding/json.Valid], several times faster.
func Valid(b []byte) bool {
	end := Prefix(b)
	return end >= 0 && SkipSpaces(b, end) == len(b)
}

// Prefix is where the JSON value ends that b begins with, spaces in front of
// it included, or -1 when b begins with none or with one that is nested more
// than 10,000 deep. What follows the value is not looked at.
func Prefix(b []byte) int {
	// A stack for every depth costs more to clear than most payloads to read.
	var shallow [1]uint64
	end := scan(b, shallow[:])
	if end == tooDeep {
		end = scanDeep(b)
	}
	return max(end, invalid)
}

func scanDeep(b []byte) int {
	var deep stack
	return scan(b, deep[:])
}

// shortName is how long a name may be to be looked through without a call.
const shortName = 8

// scan is the end of the value that b begins with, invalid, or tooDeep. For
// each open bracket, open keeps a bit.
//
//nolint:gocognit // one loop, since a call costs more than most of the work between two tokens
func scan(b []byte, open []uint64) int {
	most := min(maxDepth, 64*len(open))
	depth, closer := 0, byte(0) // the open brackets, and what closes the innermost
	for i := 0; ; {
		i = SkipSpaces(b, i)
		if closer == '}' {
			if i == len(b) || b[i] != '"' {
				return invalid
			}
			if i = plainEnd(b, i+1, i+1+shortName); i < len(b) && b[i] == '"' {
				i++
			} else if i = textEnd(b, i); i < 0 {
				return invalid
			}
			if i = SkipSpaces(b, i); i == len(b) || b[i] != ':' {
				return invalid
			}
			i = SkipSpaces(b, i+1)
		}
		if i == len(b) {
			return invalid
		}
		switch c := b[i]; c {
		case '"':
			i = textEnd(b, i+1)
		case '{', '[':
			if depth == most {
				return tooDeep
			}
			closer = push(open, depth, c)
			depth++
			if i = SkipSpaces(b, i+1); i == len(b) || b[i] != closer {
				continue
			}
		case 't':
			i = wordEnd(b, i, "true")
		case 'f':
			i = wordEnd(b, i, "false")
		case 'n':
			i = wordEnd(b, i, "null")
		case '1', '2', '3', '4', '5', '6', '7', '8', '9':
			if i = digitsEnd(b, i+1); i < len(b) && (b[i] == '.' || b[i]|0x20 == 'e') {
				i = fractionEnd(b, i)
			}
		default:
			i = numberEnd(b, i)
		}
		if i < 0 {
			return invalid
		}
		// A value has ended, and maybe the brackets around it.
		for {
			if depth == 0 {
				return i
			}
			if i = SkipSpaces(b, i); i == len(b) {
				return invalid
			}
			c := b[i]
			i++
			if c == ',' {
				break
			}
			if c != closer {
				return invalid
			}
			depth--
			closer = top(open, depth)
		}
	}
}

// stack has a bit for each bracket that can be open: set for an object's.
type stack = [(maxDepth + 63) / 64]uint64

// push adds a bracket to depth open ones, and is what closes it.
func push(s []uint64, depth int, bracket byte) byte {
	word, at := &s[depth>>6], depth&63
	*word = *word&^(1<<at) | uint64(bracket>>5&1)<<at
	return bracket + 2
}

// top is what closes the innermost of depth open brackets, if there are any.
func top(s []uint64, depth int) byte {
	if depth == 0 {
		return 0
	}
	depth--
	return ']' | byte(s[depth>>6]>>(depth&63)&1)<<5
}

func wordEnd(b []byte, i int, word string) int {
	if end := i + len(word); end <= len(b) && string(b[i:end]) == word {
		return end
	}
	return invalid
}

// numberEnd is where the number at i ends, or invalid.
func numberEnd(b []byte, i int) int {
	if b[i] == '-' {
		i++
	}
	end := digitsEnd(b, i)
	if end == i || b[i] == '0' && end > i+1 {
		return invalid
	}
	return fractionEnd(b, end)
}

func digitsEnd(b []byte, i int) int {
	for i < len(b) && b[i]-'0' <= 9 {
		i++
	}
	return i
}

// fractionEnd is where a number ends whose whole part ends at i, or invalid.
func fractionEnd(b []byte, i int) int {
	if i < len(b) && b[i] == '.' {
		from := i + 1
		if i = digitsEnd(b, from); i == from {
			return invalid
		}
	}
	if i == len(b) || b[i]|0x20 != 'e' {
		return i
	}
	i++
	if i < len(b) && (b[i] == '+' || b[i] == '-') {
		i++
	}
	end := digitsEnd(b, i)
	if end == i {
		return invalid
	}
	return end
}
