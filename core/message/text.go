package message

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"unicode/utf16"
	"unicode/utf8"

	"sluice/core"
)

// text is a string of any bytes: a JSON string when that is exact and no
// longer than base64, else {"base64": "…"}.
type text string

// packed is how a string travels that is no plain text.
type packed struct {
	Base64 *string `json:"base64"`
}

// packing is what an object of base64 has around it.
const packing = len(`{"base64":""}`)

// MarshalJSON implements [json.Marshaler].
func (s text) MarshalJSON() ([]byte, error) {
	if plain(string(s)) {
		b, err := json.Marshal(string(s))
		if b = escape(b); err != nil || len(b) <= base64.StdEncoding.EncodedLen(len(s))+packing {
			return b, err
		}
	}
	b64 := base64.StdEncoding.EncodeToString([]byte(s))
	return json.Marshal(packed{&b64})
}

// UnmarshalJSON implements [json.Unmarshaler].
func (s *text) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, (*string)(s))
	}
	var p packed
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		return core.Wrap(core.Invalid, err, "neither a string nor base64")
	}
	if p.Base64 == nil {
		return core.Errorf(core.Invalid, "neither a string nor base64")
	}
	raw, err := base64.StdEncoding.Strict().DecodeString(*p.Base64)
	if err != nil {
		return core.Wrap(core.Invalid, err, "broken base64")
	}
	*s = text(raw)
	return nil
}

// plain reports whether s is exact as text: UTF-8 of characters that XML 1.0
// allows, which are all that SQS takes.
func plain(s string) bool {
	if !utf8.ValidString(s) {
		return false
	}
	for _, r := range s {
		switch {
		case r == '\t' || r == '\n' || r == '\r':
		case r < 0x20, r == 0xFFFE, r == 0xFFFF:
			return false
		}
	}
	return true
}

// escape writes what takes two units of UTF-16 as escapes: SQS takes such
// characters as they are, but not every stand-in for it does.
func escape(b []byte) []byte {
	if !bytes.ContainsFunc(b, wide) {
		return b
	}
	out := make([]byte, 0, len(b)*2)
	for _, r := range string(b) {
		if wide(r) {
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		} else {
			out = utf8.AppendRune(out, r)
		}
	}
	return out
}

func wide(r rune) bool { return r > 0xFFFF }

// ptr is a present field of a message.
func ptr(s string) *text {
	t := text(s)
	return &t
}
