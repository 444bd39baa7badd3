package config

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"sluice/core"
)

// text is a string. Its value is never shown, as it may be a secret.
func text(right string) shape[string] {
	return shape[string]{schema: schema{Type: "string"}, read: func(d *decoder, path string, n *yaml.Node, into *string) {
		if !d.plain(path, n) {
			return
		}
		s, ok := textOf(n)
		if !ok {
			d.wrong(n, path, right)
			return
		}
		*into = s
	}}
}

// words is text that may say anything. A number or a mapping may well be text that
// lacks its quotes, such as {{ .id }}; a list is none.
func words() shape[string] {
	quoted, one := text("must be text; put it in quotes"), text("must be one text")
	return shape[string]{schema: quoted.schema, read: func(d *decoder, path string, n *yaml.Node, into *string) {
		if n.Kind == yaml.SequenceNode {
			one.read(d, path, n, into)
			return
		}
		quoted.read(d, path, n, into)
	}}
}

// choice is one of a few words. Package core holds it to them.
func choice(choices []string) shape[string] {
	s := text("must be one of " + strings.Join(choices, ", "))
	s.schema.Enum = choices
	s.show = func(v string) any { return v }
	return s
}

// secret is a reference to a secret. Package core holds it to its form.
func secret() shape[core.Secret] {
	value := text("must be a reference such as env:NAME, without a space")
	return shape[core.Secret]{
		schema: schema{Type: "string", Pattern: core.SecretPattern},
		read: func(d *decoder, path string, n *yaml.Node, into *core.Secret) {
			value.read(d, path, n, (*string)(into))
		},
	}
}

// boolean is true or false.
func boolean() shape[bool] {
	return shape[bool]{
		schema: schema{Type: "boolean"},
		show:   func(v bool) any { return v },
		read: func(d *decoder, path string, n *yaml.Node, into *bool) {
			if !d.plain(path, n) {
				return
			}
			if n.Tag != boolTag {
				d.wrong(n, path, "must be true or false")
				return
			}
			*into = strings.EqualFold(n.Value, "true")
		},
	}
}

// count is a whole number within a range.
func count[N int | int64](r core.Range) shape[N] {
	return shape[N]{
		schema: integerSchema(r, 1),
		show:   func(v N) any { return v },
		read: func(d *decoder, path string, n *yaml.Node, into *N) {
			d.number(path, n, r, "", noText, func(v int64) bool { *into = N(v); return true })
		},
	}
}

// millis is a time as a whole number of milliseconds.
func millis(r core.Range) shape[time.Duration] {
	return shape[time.Duration]{
		schema: integerSchema(r, int64(time.Millisecond)),
		show:   func(v time.Duration) any { return v.Milliseconds() },
		read: func(d *decoder, path string, n *yaml.Node, into *time.Duration) {
			d.number(path, n, r, " milliseconds, as a whole number", noText, func(v int64) bool {
				wait := time.Duration(v) * time.Millisecond
				if wait.Milliseconds() != v {
					return false
				}
				*into = wait
				return true
			})
		},
	}
}

// size is a number of bytes, with a unit or without.
func size(r core.Range) shape[int64] {
	whole := integerSchema(r, 1)
	return shape[int64]{
		schema: schema{
			Description: "Bytes, or with a unit: KiB, MiB or GiB (KB, MB and GB mean the same). From " + r.String() + ".",
			OneOf:       []schema{whole, {Type: "string", Pattern: sizePattern}},
		},
		show: func(v int64) any { return core.UnitBytes.Format(v) },
		read: func(d *decoder, path string, n *yaml.Node, into *int64) {
			d.number(path, n, r, ", as bytes or with KiB or MiB", parseSize, func(v int64) bool { *into = v; return true })
		},
	}
}

// duration is a time with units.
func duration(r core.Range) shape[time.Duration] {
	return shape[time.Duration]{
		schema: schema{
			Type: "string", Pattern: durationPattern,
			Description: "From " + r.String() + ", such as 1h30m or 7d.",
		},
		show: func(v time.Duration) any { return core.UnitDuration.Format(int64(v)) },
		read: func(d *decoder, path string, n *yaml.Node, into *time.Duration) {
			if !d.plain(path, n) {
				return
			}
			right := "must be " + r.String() + ", with a unit"
			if n.Tag == intTag || n.Tag == floatTag {
				d.fault(n, path, "is "+core.Cut(n.Value, 64), right)
				return
			}
			s, ok := textOf(n)
			if !ok {
				d.wrong(n, path, right)
				return
			}
			v, ok := parseDuration(s)
			if !ok {
				d.fault(n, path, fmt.Sprintf("is %q", core.Cut(s, 64)), right)
				return
			}
			*into = v
		},
	}
}

// number reads a whole number, or what parse makes of text. set reports
// whether it can be held; one that cannot is out of every range.
func (d *decoder) number(path string, n *yaml.Node, r core.Range, form string, parse func(string) (int64, bool), set func(int64) bool) {
	if !d.plain(path, n) {
		return
	}
	right := "must be " + r.String() + form
	if s, ok := textOf(n); ok {
		if v, ok := parse(s); !ok || !set(v) {
			d.fault(n, path, fmt.Sprintf("is %q", core.Cut(s, 64)), right)
		}
		return
	}
	if n.Tag != intTag && n.Tag != floatTag {
		d.wrong(n, path, right)
		return
	}
	if !decimal.MatchString(n.Value) {
		d.fault(n, path, "is "+core.Cut(n.Value, 64), right+", in plain decimal digits")
		return
	}
	if v, err := strconv.ParseInt(n.Value, 10, 64); err != nil || !set(v) {
		d.fault(n, path, "is "+core.Cut(n.Value, 64), right)
	}
}

// decimal is a number that reads the same in every version of YAML: no 010,
// no 1_000.
var decimal = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)

// noText is the parser of numbers that are never text.
func noText(string) (int64, bool) { return 0, false }

func integerSchema(r core.Range, scale int64) schema {
	lo, hi := r.Min/scale, r.Max/scale
	return schema{Type: "integer", Minimum: &lo, Maximum: &hi}
}
