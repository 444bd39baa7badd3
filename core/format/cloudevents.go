package format

import (
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"sluice/core"
	"sluice/core/jsonbody"
	"sluice/core/reader"
)

const (
	structuredType = "application/cloudevents+json"
	eventType      = "sluice.event" // of an event that came without a type
	sourcePrefix   = "/sources/"    // in front of the name of an event's source
	attributeName  = "ce-"          // in front of an attribute that came as a header
)

func appendCloudEvents(dst []byte, b *core.Batch) []byte {
	dst = append(dst, '[')
	for i := range b.Items {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendCloudEvent(dst, &b.Items[i])
	}
	return append(dst, ']')
}

func appendCloudEvent(dst []byte, it *core.Item) []byte {
	if _, ok := structuredID(it); ok {
		dst, _ = appendJSON(dst, it.Body) // it was seen to be JSON
		return dst
	}
	if attributes := binary(it); attributes != nil {
		dst = append(dst, '{')
		for _, h := range attributes {
			dst = append(appendString(dst, h.Name), ':')
			dst = append(appendString(dst, h.Value), ',')
		}
	} else {
		dst = append(dst, `{"specversion":"1.0","id":`...)
		dst = append(appendString(dst, it.ID), `,"source":`...)
		dst = append(appendString(dst, sourcePrefix+url.PathEscape(it.Source)), `,"type":"`+eventType+`","time":`...)
		dst = append(appendString(dst, it.ReceivedAt.String()), ',')
	}
	return append(appendData(dst, it), '}')
}

// appendData writes an event's content type and payload, as section 3.1 of the
// JSON format has them; without a content type a payload is JSON.
func appendData(dst []byte, it *core.Item) []byte {
	contentType := it.ContentType
	promised := promisesJSON(contentType)
	if contentType == "" {
		if promised = len(it.Body) == 0 || jsonbody.Valid(it.Body) && utf8.Valid(it.Body); !promised {
			contentType = "application/octet-stream"
		}
	}
	if contentType != "" {
		dst = append(appendString(append(dst, `"datacontenttype":`...), contentType), ',')
	}
	if len(it.Body) == 0 {
		return dst[:len(dst)-1] // the comma: something stands in front of it, always
	}
	if promised {
		if dst, ok := appendJSON(append(dst, `"data":`...), it.Body); ok {
			return dst
		}
	} else if utf8.Valid(it.Body) {
		return append(appendEscaped(append(dst, `"data":"`...), it.Body), '"')
	}
	return appendBase64(append(dst, `"data_base64":`...), it.Body)
}

func promisesJSON(contentType string) bool {
	media := mediaType(contentType)
	return strings.HasSuffix(media, "/json") || strings.HasSuffix(media, "+json")
}

// mediaType is a content type without its parameters, in lower case.
func mediaType(contentType string) string {
	media, _, _ := strings.Cut(contentType, ";")
	return strings.ToLower(strings.TrimSpace(media))
}

// cloudEventID is the id under which the format shows an item.
func cloudEventID(it *core.Item) string {
	if id, ok := structuredID(it); ok {
		return id
	}
	for _, h := range binary(it) {
		if h.Name == "id" {
			return h.Value
		}
	}
	return it.ID
}

// structuredID is the id of an item that is a CloudEvent in the JSON format.
func structuredID(it *core.Item) (string, bool) {
	if mediaType(it.ContentType) != structuredType || !utf8.Valid(it.Body) {
		return "", false
	}
	id, err := reader.CloudEventID(it.Body)
	return id, err == nil
}

// binary are the attributes of an item that came as a CloudEvent in HTTP's
// binary mode, the required ones first; nil if it did not.
func binary(it *core.Item) []core.Header {
	attributes := []core.Header{{Name: "specversion"}, {Name: "id"}, {Name: "source"}, {Name: "type"}}
	required := len(attributes)
	for _, h := range it.Headers {
		name, ok := strings.CutPrefix(h.Name, attributeName)
		if !ok || !attribute(name) {
			continue
		}
		i := slices.IndexFunc(attributes, func(a core.Header) bool { return a.Name == name })
		if i < 0 {
			attributes = append(attributes, core.Header{Name: name, Value: attributeValue(h.Value)})
		} else if attributes[i].Value == "" {
			attributes[i].Value = attributeValue(h.Value) // of two headers the first counts
		}
	}
	for _, a := range attributes[:required] {
		if a.Value == "" {
			return nil
		}
	}
	return attributes
}

// attribute reports whether a header may name an attribute. The payload is no
// attribute, and its content type is a header of its own.
func attribute(name string) bool {
	if name == "" || name == "data" || name == "datacontenttype" {
		return false
	}
	return !strings.ContainsFunc(name, func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
}

// attributeValue is what a header says: HTTP's binary mode percent-encodes what
// is not plain ASCII.
func attributeValue(v string) string {
	if strings.IndexByte(v, '%') >= 0 {
		if plain, err := url.PathUnescape(v); err == nil {
			return plain
		}
	}
	return v
}
