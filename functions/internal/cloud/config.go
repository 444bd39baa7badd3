package cloud

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"

	"sluice/core"
	"sluice/infra/config"
)

// part picks what of a configuration a function needs the secrets of.
type part func(*core.Config) *core.Config

func noSecrets(*core.Config) *core.Config { return new(core.Config) }

func requestSecrets(c *core.Config) *core.Config { return sourcesOf(c, core.TypeHTTP) }

func queueSecrets(c *core.Config) *core.Config { return sourcesOf(c, core.TypeSQS) }

// sourcesOf has the sources of a type.
func sourcesOf(c *core.Config, kind string) *core.Config {
	part := new(core.Config)
	for i := range c.Sources {
		if c.Sources[i].Type == kind {
			part.Sources = append(part.Sources, c.Sources[i])
		}
	}
	return part
}

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
	if err := faults(r.Place(r.Config.Unfit(core.TargetAWS))); err != nil {
		return nil, err
	}
	if p.Language != nil {
		if err := faults(r.Place(r.Config.Broken(p.Language))); err != nil {
			return nil, err
		}
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
	if err := faults(r.Place(advised(need, bad))); err != nil {
		return nil, err
	}
	return &settings{config: r.Config, secrets: values, idle: r.Place(r.Config.Idle(core.TargetAWS)), hurts: r.Warnings}, nil
}

// advised adds to what is wrong with env: secrets what else they could be: a
// deployment gives functions none.
func advised(c *core.Config, bad []core.Fault) []core.Fault {
	better := map[string]string{}
	for _, f := range c.Needs(core.TargetAWS) {
		better[f.Path] = f.Right
	}
	for i := range bad {
		if right, ok := better[bad[i].Path]; ok {
			bad[i].Right += "; or better, " + right
		}
	}
	return bad
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
