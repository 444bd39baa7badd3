// Package senders opens the destinations of a configuration. Each wiring
// hands in how the types that it knows are opened, so that a binary links the
// adapters of those alone.
//
// A new type of destination, say kafka, is
//
//  1. a folder, infra/kafkasend: a [core.Sender] that passes
//     [sluice/core/sendertest], and how a destination of a configuration becomes
//     one. An adapter must not import this package, and need not: a function of
//     an [Opener]'s signature is one.
//
//     func Open(resolve func(core.Secret) (string, error)) func(*core.Destination, format.Format) (core.Sender, func(), error)
//
//  2. a line in each wiring that is to have it, functions/internal/wire for one
//     machine and functions/internal/cloud for AWS:
//
//     "kafka": kafkasend.Open(resolve),
//
//  3. what a configuration may say of it: an entry in core/destinationtype.go, with
//     the fields that it uses and the check of where it sends to. Fields that no
//     type has yet are added to [core.Destination] and to that file's list, and
//     to infra/config, where the schema comes from.
//
// From there on lint, routes, chaos, retries, breakers and fallbacks know it.
package senders

import (
	"errors"

	"sluice/core"
	"sluice/core/format"
)

// Opener opens a destination. closer may be nil.
type Opener func(d *core.Destination, f format.Format) (s core.Sender, closer func(), err error)

// Set is the open destinations of one configuration.
type Set struct {
	ByName map[string]core.Sender // not to be changed once it is in use
	closes []func()
}

// Open opens every destination by its type, or none when it returns an error,
// which then tells of all that could not be opened. Invalid: there is no
// opener for a type.
func Open(c *core.Config, openers map[string]Opener) (*Set, error) {
	s := &Set{ByName: make(map[string]core.Sender, len(c.Destinations))}
	var errs []error
	for i := range c.Destinations {
		d := &c.Destinations[i]
		if err := s.open(d, openers[d.Type]); err != nil {
			errs = append(errs, core.Wrap(core.CodeOf(err), err, "destinations.%s", d.Name))
		}
	}
	if len(errs) > 0 {
		s.Close()
		return nil, errors.Join(errs...)
	}
	return s, nil
}

func (s *Set) open(d *core.Destination, open Opener) error {
	if open == nil {
		return core.Errorf(core.Invalid, "destinations of type %s are not known here", d.Type)
	}
	f, err := format.Parse(d.Format)
	if err != nil {
		return err
	}
	sender, closed, err := open(d, f)
	if err != nil {
		return err
	}
	s.ByName[d.Name] = sender
	if closed != nil {
		s.closes = append(s.closes, closed)
	}
	return nil
}

// Sender is the sender of a destination, or nil.
func (s *Set) Sender(name string) core.Sender { return s.ByName[name] }

// Close closes every destination.
func (s *Set) Close() {
	for _, c := range s.closes {
		c()
	}
}
