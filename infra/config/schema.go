package config

import (
	"bytes"
	"encoding/json"
)

// schema is a JSON Schema (draft 2020-12), as far as a configuration needs it.
type schema struct {
	Dialect              string     `json:"$schema,omitempty"`
	Title                string     `json:"title,omitempty"`
	Description          string     `json:"description,omitempty"`
	Type                 string     `json:"type,omitempty"`
	Const                string     `json:"const,omitempty"`
	Enum                 []string   `json:"enum,omitempty"`
	Pattern              string     `json:"pattern,omitempty"`
	Minimum              *int64     `json:"minimum,omitempty"`
	ExclusiveMinimum     *int64     `json:"exclusiveMinimum,omitempty"`
	Maximum              *int64     `json:"maximum,omitempty"`
	Default              any        `json:"default,omitempty"`
	OneOf                []schema   `json:"oneOf,omitempty"`
	Items                *schema    `json:"items,omitempty"`
	MinItems             int        `json:"minItems,omitempty"`
	MaxItems             int        `json:"maxItems,omitempty"`
	MinProperties        int        `json:"minProperties,omitempty"`
	MaxProperties        int        `json:"maxProperties,omitempty"`
	Required             []string   `json:"required,omitempty"`
	Properties           properties `json:"properties,omitempty"`
	PropertyNames        *schema    `json:"propertyNames,omitempty"`
	AdditionalProperties any        `json:"additionalProperties,omitempty"` // false, or a schema
}

// property is a field's schema.
type property struct {
	name   string
	schema schema
}

// properties keep the order of the table of fields.
type properties []property

// MarshalJSON is an object in order.
func (p properties) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, f := range p {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(f.name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(f.schema)
		if err != nil {
			return nil, err
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// Schema is the JSON Schema (draft 2020-12) of sluice.yaml, for editors. It
// holds what a single value may be; what lies between values, such as names
// that dangle, is for [Parse].
func Schema() []byte {
	s := file().schema
	s.Dialect = "https://json-schema.org/draft/2020-12/schema"
	s.Title = "sluice.yaml"
	s.Description = "The configuration of Sluice, a serverless event buffer."
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	_ = enc.Encode(s) //nolint:errchkjson // a table of constants always encodes, into memory
	return b.Bytes()
}
