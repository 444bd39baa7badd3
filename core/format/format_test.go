package format_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/core/format"
)

var update = flag.Bool("update", false, "write the golden files anew")

// start is when the batches of these tests begin to arrive.
var start = core.At(time.Date(2026, 3, 4, 5, 6, 7, 89e6, time.UTC))

// batchOf is a batch whose items have these bodies, a millisecond apart.
func batchOf(bodies ...string) *core.Batch {
	b := &core.Batch{ID: "01HX-1", Buffer: "crm-orders", Group: "customer 7", Reason: core.ReasonItems, Attempt: 2}
	for i, body := range bodies {
		b.Items = append(b.Items, core.Item{Seq: uint64(i + 1), Event: core.Event{
			ID: fmt.Sprintf("ev-%d", i+1), ContentType: "application/json",
			ReceivedAt: start + core.Millis(i), Body: []byte(body),
		}})
	}
	return b
}

// TestGolden compares whole batches in every format with testdata.
func TestGolden(t *testing.T) {
	t.Parallel()
	mixed := batchOf(`{"type":"order","total":12.50}`, "{\n  \"a\": [1, 2],\r\n  \"b\": \"x y\"\n}\n", "plain <text>\n\"quoted\"", "\xff\x00\x01", "")
	mixed.Items[0].Headers = []core.Header{{Name: "x-b", Value: "1"}, {Name: "x-a", Value: `say "hi"`}, {Name: "x-b", Value: "2"}}
	mixed.Items[3].ContentType = "application/octet-stream"
	odd := batchOf(`1`)
	odd.ID, odd.Group, odd.Reason = `q"\`, "tab\tnul\x00 bad\xff ä 😀", core.ReasonReplay
	window := batchOf(`{"count":2}`)
	window.Group, window.Reason = "2026-03-04T05:06:00.000Z/2026-03-04T05:07:00.000Z", core.ReasonWindow
	window.Window = &core.Window{ID: "5e6f", Start: core.At(start.Time().Truncate(time.Minute)), End: core.At(start.Time().Truncate(time.Minute).Add(time.Minute))}
	for name, b := range map[string]*core.Batch{"mixed": mixed, "odd_names": odd, "empty": batchOf(), "window": window, "events": cloudEvents()} {
		for _, f := range []format.Format{format.NDJSON, format.JSONArray, format.Envelope, format.CloudEvents} {
			t.Run(name+"/"+f.String(), func(t *testing.T) {
				t.Parallel()
				path := filepath.Join("testdata", name+"."+f.String())
				got := format.Append(nil, f, b)
				if *update {
					require.NoError(t, os.WriteFile(path, got, 0o644))
				}
				want, err := os.ReadFile(path)
				require.NoError(t, err)
				if diff := cmp.Diff(string(want), string(got)); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
			})
		}
	}
}

func TestOddBodies(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", 5_000) + strings.Repeat("]", 5_000)
	wide := "[" + strings.Repeat("[],", 20_000) + "[]]"
	tooDeep := strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001)
	open := strings.Repeat("[", 1<<20)
	asBody := func(v string) string { return `"body":` + v }
	tests := []struct {
		name, body string
		line       string // in ndjson and json_array
		item       string // in the envelope
	}{
		{"empty", "", `""`, `"bodyBase64":""`},
		{"spaces", "   ", `"   "`, `"bodyBase64":"ICAg"`},
		{"blank line", "\n", `"\n"`, `"bodyBase64":"Cg=="`},
		{"BOM before JSON", "\ufeff{}", "\"\ufeff{}\"", `"bodyBase64":"77u/e30="`},
		{"number out of range", `1e999`, `1e999`, asBody(`1e999`)},
		{"long number", `12345678901234567890.10`, `12345678901234567890.10`, asBody(`12345678901234567890.10`)},
		{"leading zero", `01`, `"01"`, `"bodyBase64":"MDE="`},
		{"duplicate keys", `{"a":1,"a":2}`, `{"a":1,"a":2}`, asBody(`{"a":1,"a":2}`)},
		{"spaces inside JSON", ` {"a" : 1} `, ` {"a" : 1} `, asBody(` {"a" : 1} `)},
		{"5,000 deep", deep, deep, asBody(deep)},
		{"20,000 wide", wide, wide, asBody(wide)},
		{"deeper than JSON goes", tooDeep, `"` + tooDeep + `"`, ""},
		{"a million brackets", open, `"` + open + `"`, ""},
		{"NUL", "a\x00b", `"a\u0000b"`, `"bodyBase64":"YQBi"`},
		{"NUL inside JSON", "{\"a\":\"\x00\"}", `"{\"a\":\"\u0000\"}"`, `"bodyBase64":"eyJhIjoiACJ9"`},
		{"not UTF-8", "\xff\xfe", `{"base64":"//4="}`, `"bodyBase64":"//4="`},
		{"not UTF-8 inside JSON", "\"\xff\"", `{"base64":"Iv8i"}`, `"bodyBase64":"Iv8i"`},
		{"surrogate half escaped", `"\ud800"`, `"\ud800"`, asBody(`"\ud800"`)},
		{"U+2028 inside JSON", "\"\u2028\"", "\"\u2028\"", asBody("\"\u2028\"")},
		{"U+2028 in text", "a\u2028b", "\"a\u2028b\"", `"bodyBase64":"YeKAqGI="`},
		{"CRLF inside JSON", "{\r\n\"a\":\r\n1}", `{"a":1}`, asBody(`{"a":1}`)},
		{"CR alone inside JSON", "[1,\r2]", `[1,2]`, asBody(`[1,2]`)},
		{"newline behind JSON", "{\"a\": 1}\n", `{"a":1}`, asBody(`{"a":1}`)},
		{"two values", "{}\n{}", `"{}\n{}"`, `"bodyBase64":"e30Ke30="`},
		{"markup", "<a href=\"x\">&\t</a>", `"<a href=\"x\">&\t</a>"`, `"bodyBase64":"PGEgaHJlZj0ieCI+Jgk8L2E+"`},
		{"null", "null", "null", asBody("null")},
		{"an empty array", "[]", "[]", asBody("[]")},
		{"DEL and U+FFFD", "\x7f\ufffd", "\"\x7f\ufffd\"", `"bodyBase64":"f++/vQ=="`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := batchOf(tt.body, `{"after":1}`)
			require.Equal(t, tt.line+"\n{\"after\":1}\n", string(format.Append(nil, format.NDJSON, b)))
			require.Equal(t, "["+tt.line+",{\"after\":1}]", string(format.Append(nil, format.JSONArray, b)))
			envelope := format.Append(nil, format.Envelope, b)
			require.True(t, json.Valid(envelope))
			require.False(t, bytes.ContainsAny(envelope, "\r\n"))
			if tt.item != "" {
				require.Contains(t, string(envelope), `,"headers":{},`+tt.item+`}`)
			}
		})
	}
}

func TestAppendKeepsWhatIsThere(t *testing.T) {
	t.Parallel()
	for _, name := range format.Names() {
		f, err := format.Parse(name)
		require.NoError(t, err)
		b := batchOf("{\n}", "text", "\xff", "1")
		alone := string(format.Append(nil, f, b))
		require.Equal(t, "before "+alone, string(format.Append([]byte("before "), f, b)), name)
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	for _, name := range format.Names() {
		f, err := format.Parse(name)
		require.NoError(t, err)
		require.Equal(t, name, f.String())
	}
	require.Equal(t, core.Formats(), format.Names(), "a configuration knows the same")
	f, err := format.Parse("")
	require.NoError(t, err)
	require.Equal(t, format.NDJSON, f)
	for _, name := range []string{"NDJSON", "json", "xml", " ndjson"} {
		_, err := format.Parse(name)
		require.Equal(t, core.Invalid, core.CodeOf(err), name)
		require.ErrorContains(t, err, "ndjson, json_array, envelope, cloudevents")
	}
}

func TestContentTypeAndItemID(t *testing.T) {
	t.Parallel()
	b := batchOf("1", "2", "3")
	tests := []struct {
		f           format.Format
		contentType string
		third       string
	}{
		{format.NDJSON, "application/x-ndjson", "2"},
		{format.JSONArray, "application/json", "2"},
		{format.Envelope, "application/json", "ev-3"},
		{format.CloudEvents, "application/cloudevents-batch+json", "ev-3"},
	}
	for _, tt := range tests {
		require.Equal(t, tt.contentType, tt.f.ContentType())
		require.Equal(t, tt.third, tt.f.ItemID(b, 2))
	}
}
