package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Report is what a run has found.
type Report struct {
	Rows  []Row    `json:"rows"`
	Notes []string `json:"notes"`
}

// Row is one finding about one server.
type Row struct {
	Scenario string  `json:"scenario"`
	What     string  `json:"what"`
	Server   string  `json:"server"`
	ToBare   float64 `json:"toBare,omitempty"` // ratio to the bare server; 0: does not apply
	Bound    *Bound  `json:"bound,omitempty"`
}

// Bound is a value beside the limit that it must keep.
type Bound struct {
	Value   float64 `json:"value"`
	Limit   float64 `json:"limit"`
	Unit    string  `json:"unit"`
	AtLeast bool    `json:"atLeast"` // the limit is a floor; else it is a ceiling
}

// Met reports whether the value keeps the limit.
func (b *Bound) Met() bool {
	if b.AtLeast {
		return b.Value >= b.Limit
	}
	return b.Value <= b.Limit
}

// sluice is the server that is measured, beside the references.
const sluice = "sluice"

// serverNames are the servers' names for readers.
var serverNames = map[string]string{bareServer: "bare server", durableServer: "least durable", sluice: sluice}

func (r *Report) add(row Row) { r.Rows = append(r.Rows, row) }

// bound adds a row about sluice and a limit.
func (r *Report) bound(scenario, what string, b Bound) {
	r.add(Row{Scenario: scenario, What: what, Server: sluice, Bound: &b})
}

func (r *Report) notef(scenario, format string, args ...any) {
	r.Notes = append(r.Notes, scenario+": "+fmt.Sprintf(format, args...))
}

// Met reports whether every limit is kept.
func (r *Report) Met() bool {
	return !slices.ContainsFunc(r.Rows, func(row Row) bool { return row.Bound != nil && !row.Bound.Met() })
}

// WriteJSON writes the report for programs.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// WriteTable writes the report for readers: ratios, never a bare time.
func (r *Report) WriteTable(w io.Writer) error {
	var table bytes.Buffer
	t := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\twhat\tserver\t÷ bare\tbound\tmeasured ÷ bound\t")
	for _, row := range r.Rows {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", row.Scenario, row.What, row.Server, row.ratio(), row.Bound.cells())
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(table.String()) {
		fmt.Fprintln(w, strings.TrimRight(line, " \n"))
	}
	for _, n := range r.Notes {
		fmt.Fprintln(w, n)
	}
	verdict := "every bound is kept"
	if !r.Met() {
		verdict = "NOT every bound is kept"
	}
	_, err := fmt.Fprintln(w, verdict)
	return err
}

// ratio is the row's ratio to the bare server, or "".
func (r *Row) ratio() string {
	if r.ToBare == 0 {
		return ""
	}
	return ratio(r.ToBare)
}

func ratio(x float64) string {
	switch {
	case x >= 100:
		return fmt.Sprintf("%.0f", x)
	case x >= 10:
		return fmt.Sprintf("%.1f", x)
	default:
		return fmt.Sprintf("%.2f", x)
	}
}

// cells are the bound's columns: the limit, the value's share of it and the
// verdict. A value that may not be above zero has no share, and is shown.
func (b *Bound) cells() string {
	if b == nil {
		return "\t\t"
	}
	side, verdict := "at most", "missed"
	if b.AtLeast {
		side = "at least"
	}
	if b.Met() {
		verdict = "met"
	}
	share := ratio(b.Value / b.Limit)
	if b.Limit == 0 {
		share = fmt.Sprintf("%.0f", b.Value)
	}
	return fmt.Sprintf("%s %g %s\t%s\t%s", side, b.Limit, b.Unit, share, verdict)
}

// median is the middle of values, of which there is at least one.
func median(values []float64) float64 {
	s := slices.Sorted(slices.Values(values))
	if n := len(s); n%2 == 0 {
		return (s[n/2-1] + s[n/2]) / 2
	}
	return s[len(s)/2]
}

// quantile is the smallest of sorted values below which, or at which, the
// share q of them lies; 0 when there is none.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	i := int(q*float64(len(sorted))+0.999999) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
