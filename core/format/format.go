package format

import (
	"strconv"
	"strings"

	"sluice/core"
)

// Format is how a batch is written.
type Format uint8

// The formats. The zero value is the default one.
const (
	NDJSON Format = iota
	JSONArray
	Envelope
	CloudEvents
)

var kinds = [...]struct{ name, contentType string }{
	NDJSON:    {"ndjson", "application/x-ndjson"},
	JSONArray: {"json_array", "application/json"},
	Envelope:  {"envelope", "application/json"},

	CloudEvents: {"cloudevents", "application/cloudevents-batch+json"},
}

// Names lists the formats as a configuration spells them, the default first.
func Names() []string {
	names := make([]string, len(kinds))
	for i := range kinds {
		names[i] = kinds[i].name
	}
	return names
}

// Parse is the format of a name; "" is the default one. Any other name is
// core.Invalid.
func Parse(name string) (Format, error) {
	if name == "" {
		return NDJSON, nil
	}
	for i := range kinds {
		if kinds[i].name == name {
			return Format(i), nil
		}
	}
	return 0, core.Errorf(core.Invalid, "no format %q; there are %s", name, strings.Join(Names(), ", "))
}

// String is the format's name.
func (f Format) String() string { return kinds[f].name }

// ContentType is the media type of what [Append] writes.
func (f Format) ContentType() string { return kinds[f].contentType }

// ItemID is what a receiver of the batch calls its i-th item when it reports
// that it failed: the event's id where the format shows it, else the position
// from "0". A CloudEvent's id is the one that it came with.
func (f Format) ItemID(b *core.Batch, i int) string {
	switch f {
	case Envelope:
		return b.Items[i].ID
	case CloudEvents:
		return cloudEventID(&b.Items[i])
	default:
		return strconv.Itoa(i)
	}
}

// Append appends the batch to dst in format f and returns the longer slice. It
// reads b only.
func Append(dst []byte, f Format, b *core.Batch) []byte {
	switch f {
	case JSONArray:
		return appendArray(dst, b)
	case Envelope:
		return appendEnvelope(dst, b)
	case CloudEvents:
		return appendCloudEvents(dst, b)
	default:
		return appendLines(dst, b)
	}
}

func appendLines(dst []byte, b *core.Batch) []byte {
	for i := range b.Items {
		dst = append(appendValue(dst, b.Items[i].Body), '\n')
	}
	return dst
}

func appendArray(dst []byte, b *core.Batch) []byte {
	dst = append(dst, '[')
	for i := range b.Items {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendValue(dst, b.Items[i].Body)
	}
	return append(dst, ']')
}
