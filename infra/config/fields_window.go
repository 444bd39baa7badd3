package config

import (
	"time"

	"go.yaml.in/yaml/v4"

	"sluice/core"
)

func window() shape[*core.WindowConfig] {
	type w = core.WindowConfig
	return optional(core.NewWindow,
		part("every", "How long a window is. They are aligned to 1970 in UTC.", func(w *w) *time.Duration { return &w.Every }, duration(core.WindowEveryRange)),
		part("grace", "How long after its end a window waits for late events.", func(w *w) *time.Duration { return &w.Grace }, duration(core.WindowGraceRange)),
		part("time", `The time of an event: a template such as "{{ .json.ts }}", of RFC 3339 or Unix time. Absent or empty: when it was received.`, func(w *w) *string { return &w.Time }, words()),
		part("maxAhead", "How far in the future an event's time may be; beyond that it is refused.", func(w *w) *time.Duration { return &w.MaxAhead }, duration(core.WindowAheadRange)),
	)
}

// fold is a mapping of columns to expressions, in the file's order.
func fold() shape[[]core.FoldColumn] {
	value := text("must be a function and a path, such as sum .json.amount")
	return shape[[]core.FoldColumn]{
		schema: schema{
			Type: "object", MinProperties: 1, MaxProperties: core.MaxColumns,
			PropertyNames:        &schema{Pattern: `^[A-Za-z_][A-Za-z0-9_]{0,63}$`},
			AdditionalProperties: &value.schema,
		},
		read: func(d *decoder, path string, n *yaml.Node, into *[]core.FoldColumn) {
			*into = []core.FoldColumn{} // present, though perhaps without a column
			entries, _ := d.entries(path, n, "must be a mapping of columns, such as {total: sum .json.amount}")
			for _, e := range entries {
				c := core.FoldColumn{Name: e.name}
				value.read(d, e.path, e.value, &c.Expr)
				if !e.again {
					*into = append(*into, c)
				}
			}
		},
	}
}

// flush is a mapping with nothing but every, which has no default: zero stands
// for no flush.
func flush() shape[time.Duration] {
	fields := mapping("{every: 5m}", time.Duration(0),
		part("every", "The least time between two deliveries.", func(t *time.Duration) *time.Duration { return t }, silent(duration(core.FlushEveryRange))).must(),
	)
	return shape[time.Duration]{schema: fields.schema, read: func(d *decoder, path string, n *yaml.Node, into *time.Duration) {
		fields.read(d, path, n, into)
		d.notZero(path+".every", *into, "must be "+core.FlushEveryRange.String()+", such as {every: 5m}")
	}}
}

// notZero reports a time that must be there, as zero stands for its absence.
func (d *decoder) notZero(path string, read time.Duration, right string) {
	if read != 0 || d.blamed(path) {
		return
	}
	problem := "is 0s"
	if _, given := d.places[path]; !given {
		problem = "is missing"
	}
	d.failed[path] = true
	d.faults = append(d.faults, at(find(d.places, path), path, problem, right))
}
