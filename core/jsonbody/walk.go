package jsonbody

import "bytes"

// Walker goes through the members of a valid object, in the order written.
type Walker struct {
	object []byte
	name   span // without its quotes
	plain  bool // the name is known to be ASCII without escapes
	i      int  // behind the opening bracket, or the name's colon
}

// span is a part of the object.
type span struct{ from, to int }

// Walk starts in front of an object's first member. What is no object has none.
func Walk(object []byte) Walker {
	i := SkipSpaces(object, 0)
	if i == len(object) || object[i] != '{' {
		return Walker{}
	}
	return Walker{object: object, i: i + 1}
}

// Next goes to the next member, and reports whether there is one.
func (w *Walker) Next() bool {
	b, depth := w.object, 0
	for i := w.i; i < len(b); i++ {
		switch b[i] {
		case '"':
			name := span{from: i + 1}
			name.to, w.plain = quote(b, name.from)
			i = name.to
			if depth > 0 {
				continue
			}
			// Of the strings at this depth, names are those before a colon.
			if colon := SkipSpaces(b, i+1); colon < len(b) && b[colon] == ':' {
				w.name, w.i = name, colon+1
				return true
			}
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
	}
	w.name, w.i = span{len(b), len(b)}, len(b)
	return false
}

// Is reports whether the member has that name. Names are compared by what they
// say: "\u0061" is a.
func (w *Walker) Is(name string) bool {
	written := w.object[w.name.from:w.name.to]
	if w.plain {
		return string(written) == name
	}
	return says(written, name)
}

// Value is the member's value, without spaces around it.
func (w *Walker) Value() []byte {
	from := SkipSpaces(w.object, w.i)
	return w.object[from:valueEnd(w.object, from)]
}

// Member is the value of an object's last member of that name, without spaces
// around it, or nil. Of equal names the last counts, as in encoding/json.
func Member(object []byte, name string) []byte {
	w := Walk(object)
	if !literal(name) || bytes.Contains(object, []byte(`\u00`)) {
		return walkTo(&w, name)
	}
	return findName(&w, name)
}

func walkTo(w *Walker, name string) []byte {
	var found Walker
	for w.Next() {
		if w.Is(name) {
			found = *w
		}
	}
	return found.Value()
}

// longestName is how long a name may be to be searched for, in bytes. Longer
// ones are rare.
const longestName = 31

// literal reports whether a name may be searched for: only escapes that begin
// with \u00 can write it otherwise than it is.
func literal(name string) bool {
	for i := range len(name) {
		if c := name[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '/' {
			return false
		}
	}
	return name != "" && len(name) <= longestName
}

// findName searches for the name as it is written, many times faster than
// walking to it: it walks only as far as there are places that may be it.
func findName(w *Walker, name string) []byte {
	var (
		buf   [longestName + 1]byte
		end   = append(append(buf[:0], name...), '"')
		found Walker
	)
	for i := w.i; ; i += len(end) {
		n := bytes.Index(w.object[i:], end)
		if n < 0 {
			return found.Value()
		}
		i += n
		if w.object[i-1] != '"' {
			continue
		}
		for w.name.from < i {
			w.Next() // the last time it goes to the object's end
		}
		if w.name.from == i {
			found = *w
		}
	}
}
