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
	//
	// in is a [Decoder] too: what one program has decoded, the next one on the same
	// event is given, and neither changes it.
	Run(ctx context.Context, in render.Input) (out []byte, ok bool, err error)
}

// Decoder keeps the decoded payload of an event for all programs that run on it,
// one after the other. Templates do without: that a payload is JSON is checked
// once, when it comes in, and they find a field in its text, as it is written
// there, in a fraction of the time that decoding takes.
type Decoder interface {
	// Decoded is what decode returned the first time.
	Decoded(decode func() (any, error)) (any, error)
}

// input is an event as programs see it.
type input struct {
	view

	known bool
	value any
	err   error
}

// Decoded is what decode returned the first time.
func (in *input) Decoded(decode func() (any, error)) (any, error) {
	if !in.known {
		in.value, in.err = decode()
		in.known = true
	}
	return in.value, in.err
}

// input is an event for the programs of all buffers that get it. Of one event at
// a time it is known, as a decoded payload takes many times its length.
func (p *parts) input(e *Event) *input {
	if p.in == nil || p.in.e != e {
		p.in = &input{view: view{e}}
	}
	return p.in
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
	return p.run(ctx, &input{view: view{e}})
}

func (p *programs) run(ctx context.Context, in *input) (out Event, keep bool, err error) {
	if p.filter != nil {
		v, ok, err := p.filter.Run(ctx, in)
		if err != nil {
			return Event{}, false, programFault("filter", err)
		}
		if !ok || string(v) == "false" || string(v) == "null" {
			return Event{}, false, nil
		}
	}
	if p.transform == nil {
		return *in.e, true, nil
	}
	v, ok, err := p.transform.Run(ctx, in)
	if err != nil {
		return Event{}, false, programFault("transform", err)
	}
	if !ok {
		return Event{}, false, nil // it has made nothing of it
	}
	out = *in.e
	out.Body, out.JSON = v, true
	if jsonbody.KindOf(v) != jsonbody.None && !strings.Contains(in.e.ContentType, "json") {
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
