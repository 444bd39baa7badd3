package report

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Buffers are reports of buffers. As JSON they are an object by name, in which
// their order is kept.
type Buffers []Buffer

// MarshalJSON implements [json.Marshaler].
func (b Buffers) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false) // whoever encodes the whole says whether it is
	sep := byte('{')
	for i := range b {
		out.WriteByte(sep)
		if err := enc.Encode(b[i].Name); err != nil {
			return nil, err
		}
		out.WriteByte(':')
		if err := enc.Encode(&b[i]); err != nil {
			return nil, err
		}
		sep = ','
	}
	if len(b) == 0 {
		out.WriteByte('{')
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// UnmarshalJSON implements [json.Unmarshaler]. Fields that are not known are
// left out: the report may be of a newer version.
func (b *Buffers) UnmarshalJSON(data []byte) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	begin, err := dec.Token()
	if err != nil {
		return err
	}
	if begin != json.Delim('{') {
		return fmt.Errorf("buffers are %s; they must be an object by name", data)
	}
	read := Buffers{}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return err
		}
		var r Buffer
		if err := dec.Decode(&r); err != nil {
			return err
		}
		r.Name, _ = name.(string) // the name of a field always is one
		read = append(read, r)
	}
	*b = read
	return nil
}
