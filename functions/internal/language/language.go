// Package language is what the filters and transforms of a configuration are
// written in: jq.
package language

import (
	"sluice/core"
	"sluice/infra/jq"
)

// JQ compiles a program; it is a [core.Language].
func JQ(text string) (core.Program, error) {
	p, err := jq.Compile(text)
	if err != nil {
		return nil, err // and no program, rather than one that is nil
	}
	return p, nil
}

// Broken is which programs of a configuration can't be compiled.
func Broken(c *core.Config) []core.Fault { return c.Broken(JQ) }
