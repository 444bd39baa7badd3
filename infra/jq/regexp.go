package jq

import (
	"errors"
	"regexp"
	"regexp/syntax"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/itchyny/gojq"
)

// Regular expressions are run here, not by gojq: that takes time by the square
// of a text in which it finds much, and keeps what payloads make it compile.

const (
	matchFunction   = "_re"
	maxPattern      = 4 << 10 // bytes of a regular expression
	maxMatches      = 1 << 16
	maxPatterns     = 64 // that are kept
	regexpFunctions = " test match capture scan split splits sub gsub "
)

// preludeText defines the functions on regular expressions.
const preludeText = `
def test($re): _re($re; null; "test"; $__run);
def test($re; $flags): _re($re; $flags; "test"; $__run);
def match($re): _re($re; null; "match"; $__run)[];
def match($re; $flags): _re($re; $flags; "match"; $__run)[];
def capture($re): _re($re; null; "capture"; $__run)[];
def capture($re; $flags): _re($re; $flags; "capture"; $__run)[];
def scan($re): _re($re; "g"; "scan"; $__run)[];
def scan($re; $flags): _re($re; $flags + "g"; "scan"; $__run)[];
def split($re; $flags): _re($re; $flags + "g"; "split"; $__run);
def splits($re): _re($re; "g"; "split"; $__run)[];
def splits($re; $flags): _re($re; $flags + "g"; "split"; $__run)[];
def sub($re; f; $flags): . as $text | _re($re; $flags; "sub"; $__run) as $parts |
  [$parts[:-1][] | .[0] as $before | [.[1] | f | _flat($__run) | $before + .]] | _square($__run) | transpose |
  if . == [] then $text else .[] | add + $parts[-1] end;
def sub($re; f): sub($re; f; null);
def gsub($re; f; $flags): sub($re; f; $flags + "g");
def gsub($re; f): sub($re; f; "g");
.`

// prelude puts what is needed of the prelude before the program's own functions.
func prelude(defs []*gojq.FuncDef, regexps bool) ([]*gojq.FuncDef, error) {
	if !regexps {
		return defs, nil
	}
	q, err := gojq.Parse(preludeText)
	if err != nil {
		return nil, err
	}
	return append(q.FuncDefs, defs...), nil
}

// pattern is a compiled regular expression.
type pattern struct {
	*regexp.Regexp
	cost int // of a byte of text
}

// patterns are those of a program, which payloads may have a part in.
type patterns struct {
	mu  sync.Mutex
	all map[string]*pattern
}

func newPatterns() *patterns { return &patterns{all: map[string]*pattern{}} }

func (p *patterns) get(text string) (*pattern, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if re, ok := p.all[text]; ok {
		return re, nil
	}
	re, err := compile(text)
	if err != nil {
		return nil, err
	}
	if len(p.all) >= maxPatterns {
		clear(p.all)
	}
	p.all[text] = re
	return re, nil
}

func compile(text string) (*pattern, error) {
	if len(text) > maxPattern {
		return nil, faultf("a regular expression has at most %d bytes", maxPattern)
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, patternFault(err)
	}
	prog, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, patternFault(err)
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, patternFault(err)
	}
	return &pattern{Regexp: re, cost: len(prog.Inst)}, nil
}

// patternFault does not quote the pattern, which may be of the payload.
func patternFault(err error) error {
	if e, ok := errors.AsType[*syntax.Error](err); ok {
		return faultf("a regular expression can't be parsed: %s", e.Code)
	}
	return fault("a regular expression can't be parsed")
}

// match is what the prelude is made of: ($re; $flags; $mode; $run) on a string.
func match(v any, args []any) any {
	m, mode := args[3].(*meter), args[2].(string)
	text, ok := v.(string)
	if !ok {
		return faultf("%s cannot be applied to: %s", mode, gojq.TypeOf(v))
	}
	re, flags := args[0], args[1]
	if pair, ok := re.([]any); ok && flags == nil && len(pair) > 0 {
		re, flags = pair[0], nil
		if len(pair) > 1 {
			flags = pair[1]
		}
	}
	p, all, err := m.pattern(re, flags)
	if err != nil {
		return err
	}
	if err := m.product(1+len(text), p.cost); err != nil {
		return err
	}
	if mode == "test" {
		return p.MatchString(text)
	}
	most := 1
	if all {
		most = maxMatches
	}
	found := p.FindAllStringSubmatchIndex(text, most)
	if len(found) == maxMatches {
		return m.fail(errWork)
	}
	if err := m.product(len(found), 512*(1+p.NumSubexp())); err != nil {
		return err
	}
	return results(mode, text, found, p.SubexpNames())
}

// pattern is a regular expression with its flags; all: every match is wanted.
func (m *meter) pattern(re, flags any) (p *pattern, all bool, err error) {
	text, ok := re.(string)
	if !ok {
		return nil, false, faultf("a regular expression is a string, not: %s", gojq.TypeOf(re))
	}
	if flags == nil {
		flags = ""
	}
	f, ok := flags.(string)
	if !ok || strings.Trim(f, "gim") != "" {
		return nil, false, fault("the flags of a regular expression are g, i and m")
	}
	if strings.Contains(f, "m") {
		text = "(?s)" + text
	}
	if strings.Contains(f, "i") {
		text = "(?i)" + text
	}
	p, err = m.re.get(text)
	return p, strings.Contains(f, "g"), err
}

// results is what a mode makes of matches.
func results(mode, text string, found [][]int, names []string) any {
	all := make([]any, 0, len(found)+1)
	at, runes := 0, 0 // where the last match began, in bytes and in runes
	last := 0         // where it ended
	for _, x := range found {
		switch mode {
		case "match":
			runes += utf8.RuneCountInString(text[at:x[0]])
			at = x[0]
			all = append(all, whole(text, x, names, runes))
		case "capture":
			all = append(all, captures(text, x, names))
		case "scan":
			all = append(all, scanned(text, x))
		case "split":
			all = append(all, text[last:x[0]])
		case "sub":
			all = append(all, []any{text[last:x[0]], captures(text, x, names)})
		}
		last = x[1]
	}
	if mode == "split" || mode == "sub" {
		all = append(all, text[last:])
	}
	return all
}

// whole is a match as an object, which begins behind so many runes.
func whole(text string, x []int, names []string, runes int) any {
	groups := make([]any, 0, len(names)-1)
	for i := 1; i < len(names); i++ {
		var name any
		if names[i] != "" {
			name = names[i]
		}
		group := map[string]any{"name": name, "offset": -1, "length": 0, "string": nil}
		if from, to := x[2*i], x[2*i+1]; from >= 0 {
			group["offset"] = runes + utf8.RuneCountInString(text[x[0]:from])
			group["length"] = utf8.RuneCountInString(text[from:to])
			group["string"] = text[from:to]
		}
		groups = append(groups, group)
	}
	s := text[x[0]:x[1]]
	return map[string]any{"offset": runes, "length": utf8.RuneCountInString(s), "string": s, "captures": groups}
}

// captures are the named groups of a match.
func captures(text string, x []int, names []string) any {
	groups := map[string]any{}
	for i, name := range names {
		if name != "" {
			groups[name] = group(text, x, i)
		}
	}
	return groups
}

// scanned is a match, or its groups when it has some.
func scanned(text string, x []int) any {
	if len(x) == 2 {
		return text[x[0]:x[1]]
	}
	groups := make([]any, 0, len(x)/2-1)
	for i := range len(x)/2 - 1 {
		groups = append(groups, group(text, x, i+1))
	}
	return groups
}

func group(text string, x []int, i int) any {
	if x[2*i] < 0 {
		return nil
	}
	return text[x[2*i]:x[2*i+1]]
}
