package core

import (
	"context"
	"errors"
	"strings"

	"sluice/core/jsonbody"
	"sluice/core/render"
)

// Program is a compiled filter or transform. It is safe for concurrent use.
type Program interface {
	// Run runs the program on an event, whose payload is its input, and returns
	// its first output as JSON. ok is false when it has none. An error that has a
	// method Temporary, which says so, is none of the event's: another run may do.
	Run(ctx context.Context, in render.Input) (out []byte, ok bool, err error)
}

// Language compiles programs. The error says what is wrong with one.
type Language func(text string) (Program, error)

// programs is a filter and a transform; either may be nil.
type programs struct{ filter, transform Program }

// programs compiles a filter and a transform, which are "" when there is none.
func (k *Catalog) programs(path, filter, transform string) (p programs, err error) {
	if p.filter, err = k.program(path+".filter", filter); err != nil {
		return p, err
	}
	p.transform, err = k.program(path+".transform", transform)
	return p, err
}

func (k *Catalog) program(path, text string) (Program, error) {
	if text == "" {
		return nil, nil
	}
	if k.compile == nil {
		return nil, Errorf(Unsupported, "%s: there is nothing that could compile it", path)
	}
	p, err := k.compile(text)
	return p, Wrap(Invalid, err, "%s", path)
}

// Broken is which programs of a valid configuration can't be compiled.
func (c *Config) Broken(compile Language) []Fault {
	var v validation
	check := func(path, text string) {
		if text == "" {
			return
		}
		if _, err := compile(text); err != nil {
			v.add(path, "is not a jq program: "+err.Error(), `must be like .type == "order"`)
		}
	}
	for i := range c.Destinations {
		d := &c.Destinations[i]
		check(FieldPath("destinations", d.Name)+".filter", d.Filter)
		check(FieldPath("destinations", d.Name)+".transform", d.Transform)
	}
	for i := range c.Buffers {
		b := &c.Buffers[i]
		check(FieldPath("buffers", b.Name)+".filter", b.Filter)
		check(FieldPath("buffers", b.Name)+".transform", b.Transform)
	}
	return v.faults
}

// dress makes of an event what the transform makes of it. One of which it makes
// nothing stays as it is.
func (p *programs) dress(ctx context.Context, e *Event) error {
	only := programs{transform: p.transform}
	out, ok, err := only.apply(ctx, e)
	if ok {
		*e = out
	}
	return err
}

// apply runs the programs on an event. keep is false when the filter drops it.
// The event itself is left as it is.
func (p *programs) apply(ctx context.Context, e *Event) (out Event, keep bool, err error) {
	if p.filter != nil {
		v, ok, err := p.filter.Run(ctx, view{e})
		if err != nil {
			return Event{}, false, programFault("filter", err)
		}
		if !ok || string(v) == "false" || string(v) == "null" {
			return Event{}, false, nil
		}
	}
	if p.transform == nil {
		return *e, true, nil
	}
	v, ok, err := p.transform.Run(ctx, view{e})
	if err != nil {
		return Event{}, false, programFault("transform", err)
	}
	if !ok {
		return Event{}, false, nil // it has made nothing of it
	}
	out = *e
	out.Body, out.JSON = v, true
	if jsonbody.KindOf(v) != jsonbody.None && !strings.Contains(e.ContentType, "json") {
		out.ContentType = "application/json"
	}
	return out, true, nil
}

// programFault is the error of a program: Invalid when it fails on the event,
// Unavailable when it might not the next time, Canceled when its caller has gone.
func programFault(what string, err error) error {
	type temporary interface {
		error
		Temporary() bool
	}
	if t, ok := errors.AsType[temporary](err); ok && t.Temporary() {
		return Errorf(Unavailable, "the %s could not be run: %v", what, err)
	}
	if errors.Is(err, context.Canceled) {
		return Errorf(Canceled, "the %s was ended", what)
	}
	return Errorf(Invalid, "the %s fails on this event: %v", what, err)
}
