package sqsmessage_test

import (
	"encoding/base64"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sluice/core"
	"sluice/core/sqsmessage"
)

// attribute is a message attribute as a test has it.
type attribute struct {
	name, kind string
	text       *string
}

func event(body, group string, attributes ...attribute) core.Event {
	m := sqsmessage.Message{ID: "1", Body: body, Group: group}
	for _, a := range attributes {
		m.Add(a.name, a.kind, a.text)
	}
	return m.Event()
}

func text(name, value string) attribute { return attribute{name, "String", &value} }

func TestEvent(t *testing.T) {
	t.Parallel()
	const json, plain = "application/json", "text/plain"
	for name, tt := range map[string]struct{ got, want core.Event }{
		"JSON":    {event(`{"a":1}`, ""), core.Event{ContentType: json, Body: []byte(`{"a":1}`), JSON: true}},
		"text":    {event("hello", ""), core.Event{ContentType: plain, Body: []byte("hello")}},
		"a group": {event("x", "g"), core.Event{ContentType: plain, Body: []byte("x"), Unit: "g"}},
		"attributes": {event("1", "", text("X-Two", "2"), text("Content-Type", "text/csv"), text("A", "1"),
			attribute{"n", "Number", new("5")}, attribute{"b", "Binary", nil}, attribute{"none", "String", nil}, attribute{"own", "String.mine", new("3")}),
			core.Event{ContentType: "text/csv", Body: []byte("1"), JSON: true, Headers: []core.Header{{Name: "a", Value: "1"}, {Name: "own", Value: "3"}, {Name: "x-two", Value: "2"}}}},
		"what no header of a request would be": {event("x", "", text("Authorization", "Bearer s3cret"), text("cookie", "c"), text("x-api-key", "k"), text("Host", "h"), text("Accept-Charset", "c"), text("x", "1")),
			core.Event{ContentType: plain, Body: []byte("x"), Headers: []core.Header{{Name: "x", Value: "1"}}}},
		"names that differ in case": {event("x", "", text("content-type", "b"), text("a", "2"), text("A", "1"), text("Content-Type", "a")),
			core.Event{ContentType: "b", Body: []byte("x"), Headers: []core.Header{{Name: "a", Value: "1"}, {Name: "a", Value: "2"}}}},
		"an empty body":      {event(" ", "", text("sluice-encoding", "empty")), core.Event{ContentType: plain, Body: []byte{}}},
		"a space":            {event(" ", ""), core.Event{ContentType: plain, Body: []byte(" ")}},
		"bytes":              {event("/wA=", "", text("sluice-encoding", "base64")), core.Event{ContentType: "application/octet-stream", Body: []byte{0xff, 0}}},
		"JSON that SQS bars": {event(base64.StdEncoding.EncodeToString([]byte("\"\x7f\ufffe\"")), "", text("sluice-encoding", "base64")), core.Event{ContentType: json, JSON: true, Body: []byte("\"\x7f\ufffe\"")}},
		"another's encoding": {event("x", "", text("sluice-encoding", "gzip")), core.Event{ContentType: plain, Body: []byte("x"), Headers: []core.Header{{Name: "sluice-encoding", Value: "gzip"}}}},
		"no base64":          {event("x", "", text("sluice-encoding", "base64")), core.Event{ContentType: plain, Body: []byte("x"), Headers: []core.Header{{Name: "sluice-encoding", Value: "base64"}}}},
		"not empty":          {event("x", "", text("sluice-encoding", "empty")), core.Event{ContentType: plain, Body: []byte("x"), Headers: []core.Header{{Name: "sluice-encoding", Value: "empty"}}}},
	} {
		tt.want.ID = "1"
		require.Equal(t, tt.want, tt.got, name)
	}
}

// Every body comes back as it was, in an encoding that is as long as was said.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		body := rapid.OneOf(rapid.SliceOf(rapid.Byte()), rapid.Map(rapid.String(), func(s string) []byte { return []byte(s) }),
			rapid.SampledFrom([][]byte{nil, []byte(" "), {0}, []byte("\ufffd"), []byte("\ufffe"), []byte("{}")})).Draw(t, "body")
		encoding, size := sqsmessage.Encoding(body)
		sent := sqsmessage.Encode(body, encoding)
		require.Len(t, sent, size)
		require.Equal(t, sent, sqsmessage.Readable(sent), "SQS takes it")
		require.NotEmpty(t, sent)
		var attributes []attribute
		if encoding != "" {
			attributes = append(attributes, text(sqsmessage.EncodingAttribute, encoding))
		}
		e := event(sent, "", attributes...)
		require.Equal(t, string(body), string(e.Body))
		require.Empty(t, e.Headers)
	})
}
