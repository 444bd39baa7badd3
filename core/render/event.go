package render

import (
	"strings"

	"sluice/core/jsonbody"
)

// event is the dot of a template, and looks up what the template reads of it.
type event struct {
	Input
	body   []byte // the payload as one JSON value; nothing when it is none
	looked bool   // body is known
	read   map[string]any
}

// text renders the field that a path leads to, such as json, customer, id.
func (e *event) text(path []string) (string, error) {
	switch path[0] {
	case "id":
		return e.ID(), nil
	case "source":
		return e.Source(), nil
	case "headers":
		return e.Header(path[1]), nil
	}
	raw, err := e.find(path[1:])
	if err != nil {
		return "", err
	}
	return text(raw)
}

// get is the value that a path leads to, written with dots, as text/template
// works with it. It is looked up once, since a template may ask for it in a
// loop over the payload.
func (e *event) get(path string) (any, error) {
	if v, ok := e.read[path]; ok {
		return v, nil
	}
	v, err := e.value(strings.Split(path, "."))
	if err != nil {
		return nil, err
	}
	if e.read == nil {
		e.read = make(map[string]any)
	}
	e.read[path] = v
	return v, nil
}

func (e *event) value(path []string) (any, error) {
	switch path[0] {
	case "json":
		raw, err := e.find(path[1:])
		if err != nil {
			return nil, err
		}
		return value(raw)
	case "headers":
		return walk(e.Headers(), path[1:])
	case "id":
		return walk(e.ID(), path[1:])
	case "source":
		return walk(e.Source(), path[1:])
	}
	return nil, noSuchField(path[0])
}

// find is the part of the payload that names lead to, or nothing. A missing
// or null parent has nothing; any other that has no fields is an error.
func (e *event) find(names []string) ([]byte, error) {
	raw := e.payload()
	for _, name := range names {
		switch k := jsonbody.KindOf(raw); k {
		case jsonbody.None, jsonbody.Null:
			return nil, nil
		case jsonbody.Object:
			raw = jsonbody.Member(raw, name)
		default:
			return nil, noFields(name, k)
		}
	}
	return raw, nil
}

func (e *event) payload() []byte {
	if !e.looked {
		e.looked = true
		if body := e.Body(); e.JSON() || jsonbody.Valid(body) {
			e.body = jsonbody.Trim(body)
		}
	}
	return e.body
}
