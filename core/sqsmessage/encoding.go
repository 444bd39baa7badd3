package sqsmessage

import (
	"encoding/base64"
	"strings"
	"unicode/utf8"
)

// EncodingAttribute is the message attribute that says how a body is encoded.
const EncodingAttribute = "sluice-encoding"

// The encodings of bodies that SQS does not take as they are.
const (
	inBase64    = "base64"
	insteadOf   = "empty"
	placeholder = " "
)

// Encoding is how a body has to be encoded for SQS, or "", and how many bytes
// it has then.
func Encoding(body []byte) (encoding string, size int) {
	switch {
	case len(body) == 0:
		return insteadOf, len(placeholder)
	case !allowed(body):
		return inBase64, base64.StdEncoding.EncodedLen(len(body))
	}
	return "", len(body)
}

// Encode is a body in an encoding, as [Encoding] has found it.
func Encode(body []byte, encoding string) string {
	switch encoding {
	case insteadOf:
		return placeholder
	case inBase64:
		return base64.StdEncoding.EncodeToString(body)
	}
	return string(body)
}

// decode undoes Encode. It reports false of what Encode does not write: a body
// that another producer has marked in a way of its own.
func decode(body, encoding string) ([]byte, bool) {
	switch encoding {
	case insteadOf:
		return []byte{}, body == placeholder
	case inBase64:
		raw, err := base64.StdEncoding.Strict().DecodeString(body)
		return raw, err == nil
	}
	return nil, false
}

// Readable is s with U+FFFD for what SQS would not take.
func Readable(s string) string {
	return strings.Map(func(r rune) rune {
		if character(r) {
			return r
		}
		return utf8.RuneError
	}, strings.ToValidUTF8(s, "\uFFFD"))
}

// allowed reports whether SQS takes a body as it is.
func allowed(body []byte) bool {
	for i := 0; i < len(body); {
		if c := body[i]; c < utf8.RuneSelf {
			if !character(rune(c)) {
				return false
			}
			i++
			continue
		}
		r, size := utf8.DecodeRune(body[i:])
		if r == utf8.RuneError && size == 1 || !character(r) {
			return false
		}
		i += size
	}
	return true
}

// character reports whether SQS takes a character.
func character(r rune) bool {
	return r == '\t' || r == '\n' || r == '\r' || ' ' <= r && r <= 0xD7FF || 0xE000 <= r && r <= 0xFFFD || r >= 0x10000
}
