package core

import (
	"iter"
	"regexp"
	"strings"
)

// SecretPattern is what a reference to a secret matches: env:NAME, ssm:PATH
// or secretsmanager:ID.
const SecretPattern = `^(env:[A-Za-z_][A-Za-z0-9_]*|ssm:[A-Za-z0-9_./-]+|secretsmanager:[A-Za-z0-9_./:+=@-]+)$`

var secretReference = regexp.MustCompile(SecretPattern)

// Split is a reference's scheme and what it names there. ok is false for
// anything that is no reference, which then may be a secret itself.
func (s Secret) Split() (scheme, name string, ok bool) {
	if !secretReference.MatchString(string(s)) {
		return "", "", false
	}
	scheme, name, _ = strings.Cut(string(s), ":")
	return scheme, name, true
}

// IsReference reports whether a value is meant to refer to a secret, well
// formed or not.
func IsReference(value string) bool {
	scheme, _, found := strings.Cut(value, ":")
	return found && (scheme == "env" || scheme == "ssm" || scheme == "secretsmanager")
}

// Secrets goes through every reference to a secret, or to a name that differs
// from one environment to the next, and its path, in the order of the configuration.
func (c *Config) Secrets() iter.Seq2[string, Secret] {
	return func(yield func(string, Secret) bool) {
		list := func(path string, refs []Secret) bool {
			for i, s := range refs {
				if !yield(ElementPath(path, i), s) {
					return false
				}
			}
			return true
		}
		if !list("control.tokens", c.Control.Tokens) {
			return
		}
		for i := range c.Sources {
			path, s := FieldPath("sources", c.Sources[i].Name), &c.Sources[i]
			if a := s.Auth; !s.references(path, yield) || a != nil && (!list(path+".auth.bearer", a.Bearer) || !list(path+".auth.webhook.secrets", a.Webhook)) {
				return
			}
		}
		for i := range c.Destinations {
			d := &c.Destinations[i]
			path := FieldPath("destinations", d.Name)
			if !d.references(path, yield) || !list(path+".secrets", d.Secrets) {
				return
			}
		}
	}
}

// references goes through what of a destination is given by reference, but for
// what it signs with.
func (d *Destination) references(path string, yield func(string, Secret) bool) bool {
	for _, named := range [...]struct{ field, value string }{{"queue", d.Queue}, {"bucket", d.Bucket}} {
		if IsReference(named.value) && !yield(path+"."+named.field, Secret(named.value)) {
			return false
		}
	}
	for _, h := range d.Headers {
		if h.Secret != "" && !yield(FieldPath(path+".headers", h.Name), h.Secret) {
			return false
		}
	}
	return true
}

// secrets checks that every secret comes by reference.
func (v *validation) secrets(c *Config) {
	for path, s := range c.Secrets() {
		if _, _, ok := s.Split(); !ok {
			v.add(path, "is not a reference to a secret", "must be env:NAME, ssm:PATH or secretsmanager:ID; the secret itself has no place in the file")
		}
	}
}

// references goes through what of a source is given by reference, but for its
// auth.
func (s *Source) references(path string, yield func(string, Secret) bool) bool {
	return !IsReference(string(s.Queue)) || yield(path+".queue", s.Queue)
}

var (
	// credential matches the beginning of what services hand out as secrets.
	credential = regexp.MustCompile(`(?i)^(whsec_|sk_|ghp_|xox[abp]-|bearer |basic |akia)`)

	// longRun matches values that may well be a key, or just a long id.
	longRun = regexp.MustCompile(`^[A-Za-z0-9+/_=-]{32,}$`)
)

// secretLooking reports whether a value should not be shown.
func secretLooking(value string) bool {
	return credential.MatchString(value) || longRun.MatchString(value)
}
