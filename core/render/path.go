package render

import (
	"strings"
	"unicode"

	"sluice/core/jsonbody"
)

// Path leads to one field of an event, such as .json.customer.id. It reads what
// the template {{ .json.customer.id }} prints. It is safe for concurrent use.
type Path struct{ names []string }

// CompilePath compiles a path: .id, .source, .headers and a header's name, or
// .json and any names. A name is of letters, digits, "_" and "-".
func CompilePath(text string) (*Path, error) {
	rest, ok := strings.CutPrefix(text, ".")
	if !ok {
		return nil, faultf("%q is no path; one begins with a dot, such as .json.amount", text)
	}
	names := strings.Split(rest, ".")
	for _, name := range names {
		if name == "" || strings.ContainsFunc(name, noNameRune) {
			return nil, faultf("%q is no path; the names in it are of letters, digits, _ and -, such as in .json.amount", text)
		}
	}
	if err := checkPath(names); err != nil {
		return nil, err
	}
	if names[0] == "headers" && len(names) == 1 {
		return nil, fault(".headers is all headers; name one, such as .headers.tenant")
	}
	return &Path{names: names}, nil
}

func noNameRune(r rune) bool {
	return r != '_' && r != '-' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
}

// String is the path's text.
func (p *Path) String() string { return "." + strings.Join(p.names, ".") }

// JSON reports whether the path leads into the payload.
func (p *Path) JSON() bool { return p.names[0] == "json" }

// Reader looks paths up in one event. The payload is checked once, however many
// there are. It is not for concurrent use.
type Reader struct{ event event }

// Read is a reader of an event.
func Read(in Input) Reader { return Reader{event{Input: in}} }

// Find is what p leads to: the part of the payload, as it is written there, or
// else the text. Both are empty when it is missing, null, or an empty text. It
// fails when the path reads a field of what has none.
func (r *Reader) Find(p *Path) (raw []byte, text string, err error) {
	if !p.JSON() {
		text, err = r.event.text(p.names)
		return nil, text, err
	}
	raw, err = r.event.find(p.names[1:])
	if jsonbody.KindOf(raw) == jsonbody.Null {
		raw = nil
	}
	return raw, "", err
}
