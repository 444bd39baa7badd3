package format_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/core/format"
)

// cloudEvents is a batch of events that came in every way there is.
func cloudEvents() *core.Batch {
	const structured = "Application/CloudEvents+JSON; charset=utf-8"
	b := batchOf(
		`{"specversion":"1.0","id":"A-1","source":"/crm","type":"order.made","myext":7,`+"\n"+`"data":{"total":12.50}}`,
		`{"total":3}`, "plain <text>", "\xff\x00", "", `{"no":"type"}`, "{broken", `{"a":1}`, "no type", "",
	)
	b.Items[0].ContentType = structured
	b.Items[1].Headers = []core.Header{
		{Name: "ce-comexampleext", Value: "x"}, {Name: "ce-id", Value: "B%201"}, {Name: "ce-source", Value: "/crm?%C3%A4"},
		{Name: "ce-specversion", Value: "1.0"}, {Name: "ce-time", Value: "2026-03-04T05:06:07Z"}, {Name: "ce-type", Value: "order.made"},
		{Name: "ce-type", Value: "another"}, {Name: "ce-data", Value: "no attribute"}, {Name: "ce-odd_name", Value: "nor this"}, {Name: "x-other", Value: "y"},
	}
	b.Items[2].ContentType = "text/plain"
	b.Items[3].ContentType = "image/png"
	b.Items[5].ContentType = structured // lacks what every CloudEvent has
	b.Items[7].Headers = []core.Header{{Name: "ce-id", Value: "C"}, {Name: "ce-type", Value: "t"}, {Name: "ce-specversion", Value: "1.0"}}
	b.Items[7].ContentType = ""
	b.Items[8].ContentType, b.Items[9].ContentType = "", ""
	for i := range b.Items {
		b.Items[i].Source = "orders"
	}
	return b
}

// TestCloudEventIDs: a receiver that names what it did not take goes by the
// ids that it saw.
func TestCloudEventIDs(t *testing.T) {
	t.Parallel()
	b := cloudEvents()
	var sent []struct{ ID string }
	require.NoError(t, json.Unmarshal(format.Append(nil, format.CloudEvents, b), &sent))
	require.Len(t, sent, len(b.Items))
	for i := range b.Items {
		require.Equal(t, sent[i].ID, format.CloudEvents.ItemID(b, i))
	}
	require.Equal(t, []string{"A-1", "B 1", "ev-3"}, []string{sent[0].ID, sent[1].ID, sent[2].ID})
}

// event is what a receiver reads, with nothing but encoding/json.
type event struct {
	SpecVersion, ID, Source, Type, Time, DataContentType string
	Data                                                 json.RawMessage
	DataBase64                                           *string `json:"data_base64"`
}

// FuzzCloudEvents: whatever an event's headers and payload, a receiver gets a
// CloudEvent with all that it must have, and the payload back.
func FuzzCloudEvents(f *testing.F) {
	f.Add("application/json", []byte(`{"a":[1,"x"]}`), "ce-id", "1", true)
	f.Add("application/cloudevents+json", []byte(`{"specversion":"1.0","id":"1","source":"s","type":"t"}`), "", "", false)
	f.Add("text/plain; charset=utf-8", []byte("line\nline"), "ce-time", "%zz", true)
	f.Add("", []byte("\xff"), "ce-\xff", "\xff", true)
	f.Add("application/json", []byte("{"), "ce-data", "", false)
	f.Fuzz(func(t *testing.T, contentType string, body []byte, name, value string, binary bool) {
		b := batchOf(string(body))
		it := &b.Items[0]
		it.Source, it.ContentType, it.Headers = "orders", contentType, []core.Header{{Name: name, Value: value}}
		if binary {
			for _, a := range []string{"specversion", "id", "source", "type"} {
				it.Headers = append(it.Headers, core.Header{Name: "ce-" + a, Value: "1.0"})
			}
		}
		raw := format.Append(nil, format.CloudEvents, b)
		require.True(t, json.Valid(raw), "%s", raw)
		require.False(t, bytes.ContainsAny(raw, "\r\n"))
		var got []event
		if bytes.HasPrefix(raw, []byte(`[{"specversion"`)) && !isStructured(contentType) { // else it may have members of any type
			require.NoError(t, json.Unmarshal(raw, &got))
			require.Len(t, got, 1)
			requireEvent(t, &got[0], b)
		}
	})
}

func isStructured(contentType string) bool {
	return strings.Contains(strings.ToLower(contentType), "cloudevents")
}

func requireEvent(t *testing.T, got *event, b *core.Batch) {
	t.Helper()
	body := string(b.Items[0].Body)
	require.NotEmpty(t, got.SpecVersion)
	require.NotEmpty(t, got.Source)
	require.NotEmpty(t, got.Type)
	require.Equal(t, strings.ToValidUTF8(format.CloudEvents.ItemID(b, 0), "\uFFFD"), got.ID)
	switch {
	case body == "":
		require.Nil(t, got.Data)
		require.Nil(t, got.DataBase64)
	case got.DataBase64 != nil:
		require.Nil(t, got.Data)
		back, err := base64.StdEncoding.DecodeString(*got.DataBase64)
		require.NoError(t, err)
		require.Equal(t, body, string(back))
	case got.DataContentType == "" || strings.Contains(strings.ToLower(got.DataContentType), "json"):
		var s string
		if json.Unmarshal(got.Data, &s) == nil && s == body {
			return // a string, of a type that only has the letters in it
		}
		require.True(t, isJSON(body))
		require.JSONEq(t, body, string(got.Data))
	default:
		var s string
		require.NoError(t, json.Unmarshal(got.Data, &s))
		require.True(t, utf8.ValidString(body))
		require.Equal(t, body, s)
	}
}
