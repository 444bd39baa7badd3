package config

import (
	"maps"

	"sluice/core"
)

// Source has the secrets of some schemes. It returns the value that a
// reference names, or what is wrong with it: a fault with a problem but no path,
// and never a value in it.
type Source func(ref core.Secret) (value string, fault core.Fault)

// Secrets resolves references to secrets: env: from the environment, and those
// of other schemes from the sources that were added for them.
type Secrets struct {
	sources map[string]Source // by scheme
}

// NewSecrets makes one of a look-up such as [os.LookupEnv].
func NewSecrets(lookup func(name string) (string, bool)) Secrets {
	return Secrets{}.With(environment(lookup), "env")
}

// With also resolves the references of some schemes, from a source.
func (s Secrets) With(source Source, schemes ...string) Secrets {
	sources := make(map[string]Source, len(s.sources)+len(schemes))
	maps.Copy(sources, s.sources)
	for _, scheme := range schemes {
		sources[scheme] = source
	}
	return Secrets{sources}
}

// Resolve is the secret that a reference names. Its errors, of code Invalid,
// name what is missing, and never a value.
func (s Secrets) Resolve(ref core.Secret) (string, error) {
	value, fault := s.resolve(ref)
	if fault.Problem != "" {
		return "", core.Errorf(core.Invalid, "the reference %s; %s", fault.Problem, fault.Right)
	}
	return value, nil
}

// ResolveAll is every secret that a configuration refers to, by its reference,
// and what is wrong with those that cannot be resolved, by their paths.
func (s Secrets) ResolveAll(c *core.Config) (map[core.Secret]string, []core.Fault) {
	values := map[core.Secret]string{}
	var faults []core.Fault
	for path, ref := range c.Secrets() {
		value, fault := s.resolve(ref)
		if fault.Problem != "" {
			fault.Path = path
			faults = append(faults, fault)
			continue
		}
		values[ref] = value
	}
	return values, faults
}

func (s Secrets) resolve(ref core.Secret) (string, core.Fault) {
	scheme, _, ok := ref.Split()
	if !ok {
		return "", core.Fault{Problem: "is not of a known form", Right: "must be env:NAME"}
	}
	source := s.sources[scheme]
	if source == nil {
		return "", core.Fault{Problem: "is one of " + scheme + ":, which is for AWS and not available here", Right: "must be env:NAME"}
	}
	return source(ref)
}

// environment is the source of env: references.
func environment(lookup func(name string) (string, bool)) Source {
	return func(ref core.Secret) (string, core.Fault) {
		_, name, _ := ref.Split()
		value, set := lookup(name)
		switch {
		case !set:
			return "", core.Fault{Problem: "names the environment variable " + name + ", which is not set", Right: "set it before the start"}
		case value == "":
			return "", core.Fault{Problem: "names the environment variable " + name + ", which is empty", Right: "give it a value"}
		}
		return value, core.Fault{}
	}
}
