package cli

import (
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// lively reports whether w is a terminal that may have colours and progress.
func (p *program) lively(w io.Writer) bool {
	return p.terminal(w) && p.env("NO_COLOR") == "" && p.env("TERM") != "dumb"
}

// paint colours text, or leaves it as it is.
type paint bool

func (p *program) paint(w io.Writer) paint { return paint(p.lively(w)) }

func (c paint) with(code, s string) string {
	if !c {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (c paint) bold(s string) string   { return c.with("1", s) }
func (c paint) red(s string) string    { return c.with("31", s) }
func (c paint) yellow(s string) string { return c.with("33", s) }
func (c paint) green(s string) string  { return c.with("32", s) }

// clean is s with everything escaped that a terminal might act upon: control
// characters, what is not UTF-8, and invisible characters such as those that
// turn the direction of writing.
func clean(s string) string {
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		if strconv.IsPrint(r) && (r != utf8.RuneError || n > 1) {
			b.WriteString(s[:n])
		} else {
			q := strconv.Quote(s[:n])
			b.WriteString(q[1 : len(q)-1])
		}
		s = s[n:]
	}
	return b.String()
}

// maxCell bounds a key or an error in a table, in characters.
const maxCell = 60

// cell is a text from elsewhere as it stands in a table.
func cell(s string) string {
	s = clean(s)
	if utf8.RuneCountInString(s) <= maxCell {
		return s
	}
	runes := []rune(s)
	return string(runes[:maxCell-1]) + "…"
}

// keyCell is a group's key as it stands in a table: quoted where it would not
// read as one word.
func keyCell(s string) string {
	if s == "" || clean(s) != s || strings.ContainsAny(s, ` "\`) {
		return cell(strconv.Quote(s))
	}
	return cell(s)
}

// cleanJSON is JSON with every character beyond ASCII escaped that a terminal
// might act upon. JSON has those below escaped already.
func cleanJSON(b []byte) []byte {
	out := make([]byte, 0, len(b))
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		switch {
		case n == 1 && r != utf8.RuneError && r != 0x7F:
			out = append(out, b[0])
		case strconv.IsPrint(r):
			out = utf8.AppendRune(out, r)
		case r > 0xFFFF:
			r -= 0x10000
			out = appendUnit(appendUnit(out, 0xD800+r>>10), 0xDC00+r&0x3FF)
		default:
			out = appendUnit(out, r)
		}
		b = b[n:]
	}
	return out
}

func appendUnit(b []byte, r rune) []byte {
	const hex = "0123456789abcdef"
	return append(b, '\\', 'u', hex[r>>12&15], hex[r>>8&15], hex[r>>4&15], hex[r&15])
}
