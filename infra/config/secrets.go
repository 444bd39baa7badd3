package config

import (
	"sluice/core"
)

// Secrets resolves references to secrets from the environment.
type Secrets struct {
	lookup func(name string) (string, bool)
}

// NewSecrets makes one of a look-up such as [os.LookupEnv].
func NewSecrets(lookup func(name string) (string, bool)) Secrets { return Secrets{lookup} }

// Resolve is the secret that a reference names. Its errors, of code Invalid,
// name what is missing, and never a value.
func (s Secrets) Resolve(ref core.Secret) (string, error) {
	value, problem, right := s.resolve(ref)
	if problem != "" {
		return "", core.Errorf(core.Invalid, "a reference to a secret %s; %s", problem, right)
	}
	return value, nil
}

// ResolveAll is every secret that a configuration refers to, by its reference,
// and what is wrong with those that cannot be resolved, by their paths.
func (s Secrets) ResolveAll(c *core.Config) (map[core.Secret]string, []core.Fault) {
	values := map[core.Secret]string{}
	var faults []core.Fault
	for path, ref := range c.Secrets() {
		value, problem, right := s.resolve(ref)
		if problem != "" {
			faults = append(faults, core.Fault{Path: path, Problem: problem, Right: right})
			continue
		}
		values[ref] = value
	}
	return values, faults
}

func (s Secrets) resolve(ref core.Secret) (value, problem, right string) {
	scheme, name, ok := ref.Split()
	switch {
	case !ok:
		return "", "is not of a known form", "must be env:NAME"
	case scheme != "env":
		return "", "is one of " + scheme + ":, which is for AWS and not available here", "must be env:NAME"
	}
	value, set := s.lookup(name)
	switch {
	case !set:
		return "", "names the environment variable " + name + ", which is not set", "set it before the start"
	case value == "":
		return "", "names the environment variable " + name + ", which is empty", "give it a value"
	}
	return value, "", ""
}
