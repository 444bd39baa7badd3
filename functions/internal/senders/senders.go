// Package senders opens the destinations of a configuration. Each wiring
// hands in how the types that it knows are opened, so that a binary links the
// adapters of those alone.
//
// A type of destination is an adapter in infra that passes
// [sluice/core/sendertest], the fields that a configuration has for it in core
// and infra/config, an [Opener] that makes the one of the other, and a line for
// it in each wiring:
//
//	senders.Open(config, map[string]senders.Opener{
//		core.TypeHTTP: senders.HTTP(resolve, clock),
//		core.TypeSQS:  senders.SQS(sdk, resolve),
//		core.TypeS3:   senders.S3(sdk, resolve, clock),
//	})
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
