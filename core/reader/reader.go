package reader

import (
	"bytes"
	"fmt"
	"slices"

	"sluice/core/jsonbody"
)

// Element is one event of a body, and a slice of it.
type Element struct {
	N    int // its line, or its place in the array; from 1
	Body []byte
}

// Lines reads newline-delimited JSON: one value a line, blank lines skipped,
// lines ended by LF or CR LF. Spaces around a value stay with it. It returns
// an [Error] for a line that is not JSON, for more than most of them, and for
// a body without any.
func Lines(body []byte, most int) ([]Element, error) {
	elements := make([]Element, 0, min(bytes.Count(body, []byte{'\n'})+1, most))
	for n := 1; len(body) > 0; n++ {
		var line []byte
		line, body, _ = bytes.Cut(body, []byte{'\n'})
		line = bytes.TrimSuffix(line, []byte{'\r'})
		if len(trim(line)) == 0 {
			continue
		}
		if len(elements) == most {
			return nil, tooMany(most)
		}
		if err := Check(line); err != nil {
			return nil, at(Line, n, err)
		}
		elements = append(elements, Element{N: n, Body: slices.Clip(line)})
	}
	if len(elements) == 0 {
		return nil, &Error{Problem: "has no events: send one JSON value a line"}
	}
	return elements, nil
}

// Array reads a JSON array: each element is an event, without the spaces
// around it. It returns an [Error] for an element that is not JSON, for more
// than most of them, and for a body that is no array or an empty one.
func Array(body []byte, most int) ([]Element, error) {
	open := jsonbody.SkipSpaces(body, 0)
	if open == len(body) || body[open] != '[' {
		return nil, &Error{Problem: "is not a JSON array"}
	}
	var elements []Element
	for from := open + 1; ; {
		text, to, valid := element(body, from)
		closed := to < len(body) && body[to] == ']'
		if closed && len(text) == 0 && len(elements) == 0 {
			return nil, orTrailing(body[to+1:], &Error{Problem: "has no events: the array is empty"})
		}
		if len(elements) == most {
			return nil, tooMany(most)
		}
		if !valid {
			if err := Check(text); err != nil {
				return nil, at(Item, len(elements)+1, err)
			}
		}
		elements = append(elements, Element{N: len(elements) + 1, Body: text})
		if to == len(body) {
			return nil, &Error{Problem: "is not valid JSON: the array is not closed"}
		}
		if closed {
			return elements, orTrailing(body[to+1:], nil)
		}
		from = to + 1
	}
}

// orTrailing is err, unless something follows the array.
func orTrailing(rest []byte, err error) error {
	if len(trim(rest)) > 0 {
		return &Error{Problem: "is not valid JSON: something follows the array"}
	}
	return err
}

func tooMany(most int) error {
	return &Error{Problem: fmt.Sprintf("has more than %d events, the most in one request", most), TooMany: true}
}

// element is the array element that starts at from, the place of the comma or
// bracket behind it, or of the body's end, and whether it was seen to be valid.
func element(body []byte, from int) (text []byte, to int, valid bool) {
	if n := jsonbody.Prefix(body[from:]); n >= 0 {
		end := from + n
		to = jsonbody.SkipSpaces(body, end)
		if to < len(body) && (body[to] == ',' || body[to] == ']') {
			return trim(body[from:end]), to, true
		}
	}
	// What is wrong is for the element's own check to say.
	to = elementEnd(body, from)
	return trim(body[from:to]), to, false
}

// elementEnd is where the array element that starts at i ends: the place of
// the comma or bracket behind it, or the body's end. It only counts brackets;
// whether they match is for the element's own check.
func elementEnd(body []byte, i int) int {
	depth := 0
	for ; i < len(body); i++ {
		switch body[i] {
		case '"':
			i = stringEnd(body, i)
		case '[', '{':
			depth++
		case ',':
			if depth == 0 {
				return i
			}
		case ']', '}':
			if depth > 0 {
				depth--
			} else if body[i] == ']' {
				return i
			}
		}
	}
	return len(body)
}

// stringEnd is the place of the quote that closes the string opened at i, or
// the body's end.
func stringEnd(body []byte, i int) int {
	for {
		next := bytes.IndexByte(body[i+1:], '"')
		if next < 0 {
			return len(body)
		}
		i += 1 + next
		escapes := 0
		for body[i-1-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return i
		}
	}
}

func trim(b []byte) []byte {
	return slices.Clip(jsonbody.Trim(b)) // what is appended to it never reaches its neighbor
}
