package config

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"sluice/core"
)

// Finding is a fault or a warning with its place in the file.
type Finding struct {
	File         string
	Line, Column int // from 1
	core.Fault
}

// String is the finding in a line: file:line:column: path: what is wrong; what
// would be right.
func (f Finding) String() string {
	text := f.Fault.String()
	if f.Path == "" {
		text = f.Problem + "; " + f.Right
	}
	return fmt.Sprintf("%s:%d:%d: %s", f.File, f.Line, f.Column, text)
}

// Result is what a file says.
type Result struct {
	Config   *core.Config // nil when there are faults
	Faults   []Finding    // in the file's order, as are the warnings
	Warnings []Finding

	name   string
	places map[string]place
}

// Err is nil for a file without faults, and otherwise an error of code Invalid
// that holds every fault, one a line.
func (r *Result) Err() error {
	if len(r.Faults) == 0 {
		return nil
	}
	lines := make([]string, len(r.Faults))
	for i, f := range r.Faults {
		lines[i] = f.String()
	}
	return core.Errorf(core.Invalid, "%s", strings.Join(lines, "\n"))
}

// Place gives faults of the configuration their places in the file, in its order.
func (r *Result) Place(faults []core.Fault) []Finding {
	found := make([]Finding, len(faults))
	for i, f := range faults {
		at := find(r.places, f.Path)
		found[i] = Finding{File: r.name, Line: at.line, Column: at.column, Fault: f}
	}
	sortFindings(found)
	return found
}

func sortFindings(found []Finding) {
	slices.SortStableFunc(found, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}

// Check finds more that is wrong with a configuration, which may have other
// faults, too.
type Check func(*core.Config) []core.Fault

// Load reads a file that must be without faults, also by these checks. The error is that of [Read],
// or of code Invalid and holds every fault, one a line.
func Load(path string, more ...Check) (*core.Config, error) {
	r, err := Read(path, more...)
	if err != nil {
		return nil, err
	}
	return r.Config, r.Err()
}

// Read reads a file, and makes these checks, too. The error, of code NotFound or Unavailable, says why it
// could not be read; what is wrong with what it says is in the result.
func Read(path string, more ...Check) (*Result, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, core.Wrap(core.NotFound, err, "there is no configuration file %s", path)
	}
	if err != nil {
		return nil, core.Wrap(core.Unavailable, err, "configuration file %s cannot be opened", path)
	}
	defer func() { _ = f.Close() }() // it was only read
	data, err := io.ReadAll(io.LimitReader(f, MaxBytes+1))
	if err != nil {
		return nil, core.Wrap(core.Unavailable, err, "configuration file %s cannot be read", path)
	}
	return Parse(path, data, more...), nil
}

// Parse reads what a file of some name holds, at most [MaxBytes], and makes these
// checks, too.
func Parse(name string, data []byte, more ...Check) *Result {
	r := &Result{name: name}
	root, faults := tree(data)
	d := &decoder{faults: faults, places: map[string]place{}, failed: map[string]bool{}}
	c := core.NewConfig()
	if root != nil {
		file().read(d, "", root, c)
		d.check(c, more)
	}
	r.places = d.places
	for i := range d.faults {
		d.faults[i].File = name
	}
	sortFindings(d.faults)
	if r.Faults = d.faults; len(r.Faults) == 0 {
		r.Config, r.Warnings = c, r.Place(c.Lint())
	}
	return r
}
