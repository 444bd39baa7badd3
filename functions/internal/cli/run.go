package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"sluice/functions/internal/wire"
)

// The exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// errFailed ends a command that has said itself what went wrong.
var errFailed = errors.New("failed")

// usageError is a command line that is wrong in a way the parser cannot see.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

func usagef(format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...)}
}

// program is one run of the command line and what it may touch.
type program struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	env            func(string) string

	now      func() time.Time
	wait     func(context.Context, time.Duration) error
	terminal func(any) bool // whether a reader or writer is a terminal
	serve    func(context.Context, wire.ServeOptions) error
	stored   func(ctx context.Context, dir string) (*holdings, error)
}

// Run runs the command line args (without the program's name) and returns the
// exit code. Ending ctx ends the command: serve in good order, the others at
// once.
func Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer, env func(string) string) int {
	p := &program{
		stdin: stdin, stdout: stdout, stderr: stderr, env: env,
		now: time.Now, wait: wait, terminal: isTerminal,
		serve: wire.Serve, stored: stored,
	}
	return p.run(ctx, args)
}

// wait waits for d, or until ctx ends.
func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// isTerminal reports whether a reader or writer is a character device that keeps
// what it is given.
func isTerminal(rw any) bool {
	f, ok := rw.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}

func (p *program) run(ctx context.Context, args []string) int {
	helpTo, bare := p.stdout, len(args) == 0
	if bare {
		helpTo, args = p.stderr, []string{"--help"}
	}
	exited := false // by --help, which kong itself carries out
	parser, err := kong.New(&commands{},
		kong.Name("sluice"),
		kong.Description(description),
		kong.Writers(helpTo, p.stderr),
		kong.Exit(func(int) { exited = true }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: helpWidth}),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(p),
	)
	if err != nil {
		return p.report(err)
	}
	command, err := parser.Parse(negatives(asked(args)))
	switch {
	case exited && bare:
		return exitUsage
	case exited:
		return exitOK
	case err != nil:
		return p.report(usagef("%v", misuse(err)))
	}
	return p.report(command.Run())
}

// asked are the arguments of who asks for the version or for help as other
// programs have it.
func asked(args []string) []string {
	switch args[0] {
	case "--version":
		return append([]string{"version"}, args[1:]...)
	case "help":
		return append(slices.Clone(args[1:]), "--help")
	}
	return args
}

var noUnit = regexp.MustCompile(`^(--\S+): expected duration but got "([^"]*)".*`)

// misuse is what the parser says, and what would be right where it does not say.
func misuse(err error) error {
	if m := noUnit.FindStringSubmatch(err.Error()); m != nil {
		return fmt.Errorf("%s is %q: must be a time with its unit, such as 5s or 1m30s", m[1], m[2])
	}
	e, ok := errors.AsType[*kong.ParseError](err)
	if !ok || e.Context.Selected() == nil || !strings.HasPrefix(err.Error(), "unexpected argument") {
		return err
	}
	command := e.Context.Selected()
	named := func(f *kong.Flag) bool { return f.Name == "config" }
	if len(command.Positional) == 0 && slices.ContainsFunc(command.Flags, named) {
		return fmt.Errorf("%w; a configuration is named with --config", err)
	}
	return err
}

var negative = regexp.MustCompile(`^-[0-9]`)

// negatives joins each flag with the negative number behind it, which the
// parser would take for a flag, so that the command itself can refuse it.
func negatives(args []string) []string {
	joined := make([]string, 0, len(args))
	for i, a := range args {
		if a == "--" {
			return append(joined, args[i:]...)
		}
		if last := len(joined) - 1; negative.MatchString(a) && last >= 0 && strings.HasPrefix(joined[last], "--") && !strings.Contains(joined[last], "=") {
			joined[last] += "=" + a
			continue
		}
		joined = append(joined, a)
	}
	return joined
}

// report says what went wrong, if anything, and returns the exit code.
func (p *program) report(err error) int {
	if err == nil {
		return exitOK
	}
	if errors.Is(err, errFailed) {
		return exitFailed
	}
	say := p.paint(p.stderr)
	for line := range strings.Lines(message(err)) {
		fmt.Fprintf(p.stderr, "%s %s\n", say.red("sluice:"), clean(strings.TrimSuffix(line, "\n")))
	}
	if _, ok := errors.AsType[*usageError](err); ok {
		fmt.Fprintln(p.stderr, `Run "sluice --help" or "sluice <command> --help" for what there is.`)
		return exitUsage
	}
	return exitFailed
}

// message is an error as its reader should have it.
func message(err error) string {
	if errors.Is(err, context.Canceled) {
		return strings.ReplaceAll(err.Error(), context.Canceled.Error(), "interrupted")
	}
	return err.Error()
}
