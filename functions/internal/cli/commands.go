package cli

import (
	"fmt"
	"strings"

	"sluice/core"
	"sluice/functions/internal/language"
	"sluice/infra/config"
)

// helpWidth is the widest line of a help text, in columns.
const helpWidth = 100

const description = `Sluice buffers events: it takes them in over HTTP, keeps them durably, groups them by key,
and sends each group as one batch as soon as one of its flush conditions holds.`

// commands is the grammar of the command line.
type commands struct {
	Serve  serveCommand  `cmd:"" help:"Run the whole system in this process."`
	Lint   lintCommand   `cmd:"" help:"Check a configuration."`
	Schema schemaCommand `cmd:"" help:"Print the JSON Schema of a configuration, for editors."`
	Route  routeCommand  `cmd:"" help:"Explain what would happen to an event; send nothing."`

	Send    sendCommand    `cmd:"" help:"Post events to a source of a running system."`
	Buffers buffersCommand `cmd:"" help:"Show the buffers of a running system."`
	Groups  groupsCommand  `cmd:"" help:"Show the groups of a buffer."`
	Flush   flushCommand   `cmd:"" help:"Ship what is finished now."`
	Chaos   chaosCommand   `cmd:"" help:"Send events to a destination, with faults put in."`
	DLQ     dlqCommands    `cmd:"" help:"Look at dead letters, and replay them."            name:"dlq"`

	Version versionCommand `cmd:"" help:"Print the version."`
}

// dlqCommands are the commands about dead letters.
type dlqCommands struct {
	List   dlqListCommand   `cmd:"" help:"List dead letters, oldest first."`
	Replay dlqReplayCommand `cmd:"" help:"Send dead letters to their destination again: all, unless told which."`
}

// configFlag names a configuration.
type configFlag struct {
	Config string `default:"sluice.yaml" help:"The configuration (default: ${default})." placeholder:"FILE"`
}

// load reads the configuration, which must be without faults.
func (c *configFlag) load() (*core.Config, error) {
	cfg, err := config.Load(c.Config, language.Broken)
	return cfg, c.missing(err)
}

// missing says of a file that is not there how to name another.
func (c *configFlag) missing(err error) error {
	if core.CodeOf(err) != core.NotFound {
		return err
	}
	return fmt.Errorf("there is no configuration file %s; name another with --config", c.Config)
}

// unknown is the error of a name that a configuration does not have.
func unknown(what, name string, known []string) error {
	are := "are"
	if len(known) == 1 {
		are = "is"
	}
	return usagef("there is no %s %q; there %s %s", what, name, are, strings.Join(known, ", "))
}

// remote says which system to talk to.
type remote struct {
	URL   string `help:"The running system (default: $$SLUICE_URL, or http://127.0.0.1:8080)."      name:"url"          placeholder:"URL"`
	Token string `help:"Its token; better given as $$SLUICE_TOKEN, where no process list shows it." placeholder:"TOKEN"`
}
