package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"

	"sluice/core"
)

// listing shows a list of the API, whose elements are Ts, as a table or JSON.
type listing[T any] struct {
	remote *remote
	json   bool
	name   string // of the list in its answer
	path   []string
	query  url.Values
	none   string // said instead of an empty table
	heads  []string
	spare  []string // heads of columns that are left out when nothing but "-" stands in them
	row    func(e *T, now core.Millis) []string
}

func (l *listing[T]) run(ctx context.Context, p *program) error {
	c, err := p.dial(l.remote)
	if err != nil {
		return err
	}
	defer c.close()
	elements, err := c.pages(ctx, l.name, l.path, l.query)
	if err != nil {
		return err
	}
	if l.json {
		return p.printJSON(map[string][]json.RawMessage{l.name: elements})
	}
	if len(elements) == 0 {
		fmt.Fprintln(p.stdout, l.none)
		return nil
	}
	now := core.At(p.now())
	rows := make([][]string, len(elements))
	for i, raw := range elements {
		var e T
		if err := json.Unmarshal(raw, &e); err != nil {
			return fmt.Errorf("%s are not as this version knows them; is the system newer? (%w)", l.name, err)
		}
		rows[i] = l.row(&e, now)
	}
	heads, rows := l.full(rows)
	table(p.stdout, p.paint(p.stdout), heads, rows)
	return nil
}

// full is the table without the spare columns that are empty.
func (l *listing[T]) full(rows [][]string) ([]string, [][]string) {
	heads := slices.Clone(l.heads)
	for i, head := range slices.Backward(l.heads) {
		if !slices.Contains(l.spare, head) || slices.ContainsFunc(rows, func(r []string) bool { return r[i] != "-" }) {
			continue
		}
		heads = slices.Delete(heads, i, i+1)
		for n := range rows {
			rows[n] = slices.Delete(rows[n], i, i+1)
		}
	}
	return heads, rows
}

// printJSON prints v for scripts: the same bytes for the same state.
func (p *program) printJSON(v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return err
	}
	out := b.Bytes()
	if p.terminal(p.stdout) {
		out = cleanJSON(out)
	}
	_, err := p.stdout.Write(out)
	return err
}
