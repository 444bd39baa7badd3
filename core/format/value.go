package format

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"sluice/core/jsonbody"
)

// appendValue appends a body as one JSON value without a line break.
func appendValue(dst, body []byte) []byte {
	if dst, ok := appendJSON(dst, body); ok {
		return dst
	}
	if utf8.Valid(body) {
		return append(appendEscaped(append(dst, '"'), body), '"')
	}
	dst = appendBase64(append(dst, `{"base64":`...), body)
	return append(dst, '}')
}

// appendJSON appends a body that is JSON, or reports that it is not and leaves
// dst as it was.
func appendJSON(dst, body []byte) ([]byte, bool) {
	if !utf8.Valid(body) {
		return dst, false
	}
	if bytes.IndexByte(body, '\n') < 0 && bytes.IndexByte(body, '\r') < 0 {
		if !jsonbody.Valid(body) {
			return dst, false
		}
		return append(dst, body...), true
	}
	out := bytes.NewBuffer(dst)
	if err := json.Compact(out, body); err != nil {
		return dst, false
	}
	return out.Bytes(), true
}

// appendString appends s as a JSON string. What is not UTF-8 becomes U+FFFD.
func appendString(dst []byte, s string) []byte {
	return append(appendEscaped(append(dst, '"'), strings.ToValidUTF8(s, "\uFFFD")), '"')
}

// appendEscaped appends UTF-8 text as the inside of a JSON string. It escapes
// only what RFC 8259 section 7 says must be: markup stays as it is.
func appendEscaped[T string | []byte](dst []byte, s T) []byte {
	const hex = "0123456789abcdef"
	from := 0 // s[from:i] needs no change
	for i := range len(s) {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[from:i]...)
		from = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, `\n`...)
		case '\r':
			dst = append(dst, `\r`...)
		case '\t':
			dst = append(dst, `\t`...)
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xF])
		}
	}
	return append(dst, s[from:]...)
}

// appendBase64 appends body as a JSON string of standard base64 with padding.
func appendBase64(dst, body []byte) []byte {
	dst = slices.Grow(dst, base64.StdEncoding.EncodedLen(len(body))+2)
	dst = base64.StdEncoding.AppendEncode(append(dst, '"'), body)
	return append(dst, '"')
}
