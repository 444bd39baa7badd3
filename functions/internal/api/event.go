package api

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"sluice/core"
)

// maxIDBytes bounds an id that a client gives.
const maxIDBytes = 256

// first is a header's first value, or "". name is in canonical form.
func first(h http.Header, name string) string {
	if v := h[name]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// headersOf are the headers of a request that its events keep, sorted by
// name, and their size in bytes.
func headersOf(h http.Header) ([]core.Header, int, error) {
	var headers []core.Header
	size := 0
	for name, values := range h {
		name = core.KeptHeader(name)
		if name == "" || perConnection(h["Connection"], name) {
			continue
		}
		if headers == nil {
			headers = make([]core.Header, 0, len(h))
		}
		for _, v := range values {
			headers = append(headers, core.Header{Name: name, Value: v})
			size += len(name) + len(v)
		}
	}
	if size > core.MaxHeaderBytes {
		return nil, 0, headersTooLarge("the headers to be kept with the event have more than 8 KiB; send fewer or shorter ones")
	}
	slices.SortStableFunc(headers, func(a, b core.Header) int { return cmp.Compare(a.Name, b.Name) })
	return headers, size, nil
}

// perConnection reports whether the Connection header makes a header one of this
// connection only.
func perConnection(connection []string, name string) bool {
	for _, v := range connection {
		for option := range strings.SplitSeq(v, ",") {
			if strings.EqualFold(strings.TrimSpace(option), name) {
				return true
			}
		}
	}
	return false
}

// requestID is the id that a sender gives to its request, "" if it gives none.
func requestID(h http.Header) (string, error) {
	for _, name := range [...]string{"Webhook-Id", "Idempotency-Key"} {
		if id := first(h, name); id != "" {
			return id, checkID(id, strings.ToLower(name))
		}
	}
	return "", nil
}

// eventID is the id that a sender gives to its one event, "" if it gives none.
func eventID(h http.Header) (string, error) {
	id, err := requestID(h)
	if id != "" || err != nil {
		return id, err
	}
	id = first(h, "Ce-Id")
	if strings.IndexByte(id, '%') >= 0 {
		// CloudEvents' HTTP binding percent-encodes what is not plain ASCII.
		if plain, err := url.PathUnescape(id); err == nil {
			id = plain
		}
	}
	return id, checkID(id, "ce-id")
}

// checkID refuses ids that could not be shown, or are too long to be one.
func checkID(id, what string) error {
	if len(id) > maxIDBytes {
		return core.Errorf(core.Invalid, "%s has %d bytes; at most %d are allowed", what, len(id), maxIDBytes)
	}
	for i := range len(id) {
		if id[i] < ' ' || id[i] > '~' {
			if !printable(id) {
				return core.Errorf(core.Invalid, "%s must be printable text in UTF-8", what)
			}
			break
		}
	}
	return nil
}

func printable(s string) bool {
	return utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}

// mediaType is a content type without its parameters, in lower case.
func mediaType(contentType string) string {
	essence, _, _ := strings.Cut(contentType, ";")
	return strings.ToLower(strings.TrimSpace(essence))
}

// isJSON reports whether a media type promises JSON.
func isJSON(media string) bool {
	return media == "application/json" || strings.HasSuffix(media, "+json")
}
