package cloud

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"

	"sluice/core"
	"sluice/infra/config"
)

// maxEventBytes is the most that an event may have on DynamoDB, whose items
// are at most 400 KB.
const maxEventBytes = 350 * core.KiB

// part picks what of a configuration a function needs the secrets of.
type part func(*core.Config) *core.Config

func noSecrets(*core.Config) *core.Config { return new(core.Config) }

func sourceSecrets(c *core.Config) *core.Config { return &core.Config{Sources: c.Sources} }

func destinationSecrets(c *core.Config) *core.Config {
	return &core.Config{Destinations: c.Destinations}
}

func controlSecrets(c *core.Config) *core.Config {
	return &core.Config{Control: c.Control, Destinations: c.Destinations}
}

// Secrets reads the secrets of a configuration that are not in the environment:
// where to look them up, and by which schemes they are referred to.
type Secrets func(ctx context.Context, sdk aws.Config, c *core.Config) (config.Source, []string, error)

// settings are a configuration that works on AWS, with its secrets.
type settings struct {
	config  *core.Config
	secrets map[core.Secret]string
	idle    []config.Finding // what has no effect on AWS
	hurts   []config.Finding // what works but may hurt
}

// loadSettings reads a configuration and resolves the secrets of the part that
// is needed. Its error, of code Invalid, has every fault of the file, or, if it
// is valid, every fault of its secrets, each with line and column.
func loadSettings(ctx context.Context, e *Env, p Process, needed part) (*settings, error) {
	r, err := config.Read(e.Config)
	if err != nil {
		return nil, err
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	if err := faults(r.Place(unfit(r.Config))); err != nil {
		return nil, err
	}
	need, known := needed(r.Config), config.NewSecrets(p.Env)
	if p.Secrets != nil {
		source, schemes, err := p.Secrets(ctx, newClients(e, p.HTTP).parameterStore(), need)
		if err != nil {
			return nil, err
		}
		known = known.With(source, schemes...)
	}
	values, bad := known.ResolveAll(need)
	if err := faults(r.Place(bad)); err != nil {
		return nil, err
	}
	return &settings{config: r.Config, secrets: values, idle: r.Place(idle(r.Config)), hurts: r.Warnings}, nil
}

// resolve is a secret of the part that was needed.
func (s *settings) resolve(ref core.Secret) (string, error) {
	if v, ok := s.secrets[ref]; ok {
		return v, nil
	}
	return "", core.Errorf(core.Internal, "a secret was not resolved at the start")
}

// faults is one error of code Invalid that holds them all, or nil.
func faults(found []config.Finding) error {
	if len(found) == 0 {
		return nil
	}
	lines := make([]string, len(found))
	for i, f := range found {
		lines[i] = f.String()
	}
	return core.Errorf(core.Invalid, "%s", strings.Join(lines, "\n"))
}

// unfit is what of a valid configuration does not work on AWS.
func unfit(c *core.Config) []core.Fault {
	var found []core.Fault
	for i := range c.Sources {
		if s := &c.Sources[i]; s.MaxEventBytes > maxEventBytes {
			found = append(found, core.Fault{Path: core.FieldPath("sources", s.Name) + ".maxEventBytes",
				Problem: "is more than an item of DynamoDB holds", Right: "must be at most 350KiB on AWS"})
		}
	}
	for i := range c.Destinations {
		d := &c.Destinations[i]
		if d.Type == core.TypeFile || d.Type == core.TypeStdout {
			found = append(found, core.Fault{Path: core.FieldPath("destinations", d.Name) + ".type",
				Problem: "is " + d.Type + ", which is for one machine: a function keeps no files", Right: "must be http on AWS"})
		}
	}
	return found
}

// idle is what of a configuration has no effect on AWS.
func idle(c *core.Config) []core.Fault {
	var found []core.Fault
	if !c.Store.Sync {
		found = append(found, core.Fault{Path: "store.sync",
			Problem: "is about the store of one machine", Right: "leave it out on AWS, where every write is durable"})
	}
	if len(c.Control.Tokens) == 0 {
		found = append(found, core.Fault{Path: "control.tokens",
			Problem: "has no token, and on AWS no caller is on the same machine: control calls let nobody in", Right: "give it one"})
	}
	for i := range c.Sources {
		if s := &c.Sources[i]; s.Auth == nil {
			found = append(found, core.Fault{Path: core.FieldPath("sources", s.Name) + ".auth",
				Problem: "is absent, and on AWS no caller is on the same machine: the source lets nobody in",
				Right:   "say bearer, webhook or none"})
		}
	}
	return found
}
