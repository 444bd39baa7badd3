package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"sluice/core"
	"sluice/functions/internal/language"
	"sluice/infra/config"
)

type lintCommand struct {
	configFlag

	Strict bool   `help:"Exit 1 on warnings too."`
	Target string `default:"any"                                                                                     enum:"any,local,aws" help:"Where it is to run: any, local or aws (default: ${default}). The last two also check what it needs there."`
	Data   string `help:"Also open this data folder, and warn of events and dead letters of what is not configured." placeholder:"DIR"`
	JSON   bool   `help:"Print JSON."                                                                                name:"json"`
}

// Help shows examples.
func (*lintCommand) Help() string {
	return `Every fault is reported at once, as file:line:column: path: what is wrong; what would be right. Warnings are about what works but is likely to hurt. The data folder must not be in use.

Examples:

    sluice lint
    sluice lint --config prod.yaml --target aws
    sluice lint --config prod.yaml --strict --data /var/lib/sluice`
}

// finding is a fault or a warning as JSON has it.
type finding struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Path    string `json:"path"`
	Problem string `json:"problem"`
	Right   string `json:"right"`
}

// Run checks a configuration.
func (c *lintCommand) Run(ctx context.Context, p *program) error {
	r, err := config.Read(c.Config, language.Broken)
	if err != nil {
		return c.missing(err)
	}
	if r.Config != nil {
		t := core.Target(c.Target)
		r.Faults = append(r.Faults, r.Place(r.Config.Unfit(t))...)
		r.Warnings = append(r.Warnings, r.Place(append(r.Config.Needs(t), r.Config.Idle(t)...))...)
	}
	if c.Data != "" && r.Config != nil {
		stray, err := p.stray(ctx, c.Data, r.Config)
		if err != nil {
			return err
		}
		r.Warnings = append(r.Warnings, r.Place(stray)...)
	}
	if err := c.show(p, r); err != nil {
		return err
	}
	if len(r.Faults) > 0 || c.Strict && len(r.Warnings) > 0 {
		return errFailed
	}
	return nil
}

// holdsStore fails when a folder is not there, or not a data folder.
func holdsStore(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	segment := func(e os.DirEntry) bool { return filepath.Ext(e.Name()) == ".log" }
	if !slices.ContainsFunc(entries, segment) {
		return fmt.Errorf("%s is not a data folder: it holds no *.log file", dir)
	}
	return nil
}

// stray reports what a data folder holds for what is not configured.
func (p *program) stray(ctx context.Context, dir string, c *core.Config) ([]core.Fault, error) {
	if err := holdsStore(dir); err != nil { // opening would make one
		return nil, err
	}
	h, err := p.stored(ctx, dir)
	if err != nil {
		return nil, err
	}
	return h.stray(dir, c), nil
}

func (c *lintCommand) show(p *program, r *config.Result) error {
	if c.JSON {
		return p.printJSON(struct {
			File     string    `json:"file"`
			OK       bool      `json:"ok"` // no errors
			Errors   []finding `json:"errors"`
			Warnings []finding `json:"warnings"`
		}{c.Config, len(r.Faults) == 0, findings(r.Faults), findings(r.Warnings)})
	}
	say := p.paint(p.stdout)
	for _, f := range r.Faults {
		fmt.Fprintln(p.stdout, say.red(clean(f.String())))
	}
	for _, f := range r.Warnings {
		fmt.Fprintf(p.stdout, "%s:%d:%d: %s %s\n", clean(f.File), f.Line, f.Column, say.yellow("warning:"), clean(f.Fault.String()))
	}
	switch errors, warnings := len(r.Faults), len(r.Warnings); {
	case errors > 0:
		fmt.Fprintf(p.stdout, "%s: %s\n", clean(c.Config), plural(errors, "error"))
	case warnings > 0:
		fmt.Fprintf(p.stdout, "%s: no errors, %s\n", clean(c.Config), plural(warnings, "warning"))
	default:
		fmt.Fprintf(p.stdout, "%s: %s\n", clean(c.Config), say.green("no errors, no warnings"))
	}
	return nil
}

func findings(found []config.Finding) []finding {
	list := make([]finding, len(found))
	for i, f := range found {
		list[i] = finding{File: f.File, Line: f.Line, Column: f.Column, Path: f.Path, Problem: f.Problem, Right: f.Right}
	}
	return list
}

type schemaCommand struct{}

// Help shows examples.
func (schemaCommand) Help() string {
	return `Example:

    sluice schema > sluice.schema.json`
}

// Run prints the schema.
func (schemaCommand) Run(p *program) error {
	_, err := p.stdout.Write(config.Schema())
	return err
}
