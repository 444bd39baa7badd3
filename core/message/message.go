package message

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"unicode/utf8"

	"sluice/core"
)

// version is that of all three kinds of messages.
const version = 1

// kind is one kind of message, and the most bytes that one may have.
type kind struct {
	name string
	most int
}

// MaxLetter is the most bytes of a dead letter's text: what one SQS message
// takes. Hints and deliveries are bounded by the keys that they name.
const MaxLetter = 1 << 20

var (
	hints      = kind{"hint", 64 << 10}
	deliveries = kind{"delivery", 64 << 10}
	letters    = kind{"dead letter", MaxLetter}
)

// encode writes a message. TooLarge: it is over its bound.
func (k kind) encode(wire any) (string, error) {
	b, err := json.Marshal(wire)
	if err != nil {
		return "", core.Wrap(core.Internal, err, "a %s can't be written", k.name)
	}
	if len(b) > k.most {
		return "", core.Errorf(core.TooLarge, "a %s of %d bytes; at most %d can be queued", k.name, len(b), k.most)
	}
	return string(b), nil
}

// wired is a message as it travels.
type wired interface {
	versioned() int
	fields() []field
}

// field is one that must be there.
type field struct {
	name  string
	there bool
}

// decode reads a message into wire.
func (k kind) decode(data []byte, wire wired) error {
	switch {
	case len(data) > k.most:
		return core.Errorf(core.Invalid, "a %s of %d bytes; at most %d are read", k.name, len(data), k.most)
	case !utf8.Valid(data):
		return core.Errorf(core.Invalid, "a %s that is no UTF-8 text", k.name)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	err := d.Decode(wire)
	if err != nil || wire.versioned() != version {
		return k.foreign(data, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return core.Errorf(core.Invalid, "a %s with something behind it", k.name)
	}
	return k.missing(wire.fields())
}

// foreign says what is wrong with what is no message of this version: err, if
// it says that it is one.
func (k kind) foreign(data []byte, err error) error {
	var v struct {
		V *int `json:"v"`
	}
	switch e := json.Unmarshal(data, &v); {
	case e != nil:
		return core.Wrap(core.Invalid, e, "no %s: not a JSON object with a version", k.name)
	case v.V == nil:
		return core.Errorf(core.Invalid, "no %s: the version (v) is missing", k.name)
	case *v.V != version:
		return core.Errorf(core.Invalid, "a %s of version %d; this one reads version %d", k.name, *v.V, version)
	}
	return &core.Error{Code: core.Invalid, Detail: "no " + k.name, Err: err}
}

// missing names the first field that is not there.
func (k kind) missing(fields []field) error {
	for _, f := range fields {
		if !f.there {
			return core.Errorf(core.Invalid, "a %s without %s", k.name, f.name)
		}
	}
	return nil
}
