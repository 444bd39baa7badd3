package render

import (
	"strings"
	"text/template"
)

// MaxBytes is how long what a template renders may be, in bytes.
const MaxBytes = 1 << 20

// Input is what a template sees of an event.
type Input interface {
	ID() string
	Source() string
	Body() []byte
	JSON() bool // the body is known to be one JSON value; false: it is to be seen
	Header(name string) string
	Headers() map[string]string
}

// Template is a compiled template. It is safe for concurrent use.
type Template struct {
	text string
	plan []part             // when the template is plain
	full *template.Template // otherwise
}

// part is a literal, or a field when path is set.
type part struct {
	literal string
	path    []string
}

// String is the template's text.
func (t *Template) String() string { return t.text }

// Execute renders the template on an event. It fails when the template reads
// a field of what has none, calls a function wrongly, or renders more than
// [MaxBytes].
func (t *Template) Execute(in Input) (string, error) {
	if t.full != nil {
		return t.execute(in)
	}
	e := event{Input: in}
	if len(t.plan) == 1 {
		return bounded(t.plan[0].render(&e))
	}
	var b strings.Builder
	for i := range t.plan {
		s, err := t.plan[i].render(&e)
		if err != nil {
			return "", err
		}
		b.WriteString(s)
	}
	return bounded(b.String(), nil)
}

func bounded(s string, err error) (string, error) {
	if err == nil && len(s) > MaxBytes {
		return "", errTooLong
	}
	return s, err
}

func (p *part) render(e *event) (string, error) {
	if p.path == nil {
		return p.literal, nil
	}
	return e.text(p.path)
}

// execute renders by text/template.
func (t *Template) execute(in Input) (string, error) {
	var b output
	if err := t.full.Execute(&b, &event{Input: in}); err != nil {
		return "", reason(err)
	}
	return b.String(), nil
}

// output takes what a template prints, up to MaxBytes.
type output struct{ strings.Builder }

func (o *output) Write(p []byte) (int, error) {
	if o.Len()+len(p) > MaxBytes {
		return 0, errTooLong
	}
	return o.Builder.Write(p)
}
