package reader_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"sluice/core/reader"
)

const most = 4

// plain shows elements as "number:body".
func plain(elements []reader.Element) []string {
	var s []string
	for _, e := range elements {
		s = append(s, fmt.Sprintf("%d:%s", e.N, e.Body))
	}
	return s
}

type test struct {
	name string
	body string
	want []string
	err  string // the whole of it
}

func run(t *testing.T, read func([]byte, int) ([]reader.Element, error), tests []test) {
	t.Helper()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := read([]byte(tt.body), most)
			if tt.err != "" {
				require.EqualError(t, err, tt.err)
				return
			}
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(tt.want, plain(got)))
		})
	}
}

func TestLines(t *testing.T) {
	t.Parallel()
	const none = "the body has no events: send one JSON value a line"
	run(t, reader.Lines, []test{
		{"one", `{"a":1}`, []string{`1:{"a":1}`}, ""},
		{"one, ended", "{\"a\":1}\n", []string{`1:{"a":1}`}, ""},
		{"every kind of value", "1\n\"two\"\nnull\n[4]", []string{`1:1`, `2:"two"`, `3:null`, `4:[4]`}, ""},
		{"blank lines keep their numbers", "\n1\n\n \t\n2\n\n", []string{"2:1", "5:2"}, ""},
		{"CR LF", "1\r\n\r\n2\r\n", []string{"1:1", "3:2"}, ""},
		{"spaces stay", " {\"a\" : 1} \n", []string{`1: {"a" : 1} `}, ""},
		{"duplicate keys and huge numbers stay", "{\"a\":1,\"a\":2}\n1e999", []string{`1:{"a":1,"a":2}`, "2:1e999"}, ""},
		{"as many as there may be", "1\n2\n3\n4\n", []string{"1:1", "2:2", "3:3", "4:4"}, ""},
		{"one too many", "1\n2\n3\n4\n5\n", nil, "the body has more than 4 events, the most in one request"},
		{"empty", "", nil, none},
		{"a blank line", "\n", nil, none},
		{"spaces", strings.Repeat(" ", 1<<20), nil, none},
		{"a bad line", "1\n{\"a\":}\n3", nil, `line 2 is not valid JSON: invalid character '}' looking for beginning of value, at byte 6`},
		{"a bad line behind blank ones", "\n\nx\n", nil, `line 3 is not valid JSON: invalid character 'x' looking for beginning of value, at byte 1`},
		{"two values on a line", "1 2\n", nil, `line 1 is not valid JSON: invalid character '2' after top-level value, at byte 3`},
		{"a value over two lines", "{\"a\":\n1}\n", nil, `line 1 is not valid JSON: unexpected end of JSON input, at byte 5`},
		{"a byte order mark", "\xef\xbb\xbf{}\n", nil, `line 1 is not valid JSON: it begins with a byte order mark, which JSON has not`},
		{"CR alone ends no line", "1\r2\r", nil, `line 1 is not valid JSON: invalid character '2' after top-level value, at byte 3`},
	})
}

func TestArray(t *testing.T) {
	t.Parallel()
	const (
		none     = "the body has no events: the array is empty"
		noArray  = "the body is not a JSON array"
		trailing = "the body is not valid JSON: something follows the array"
	)
	run(t, reader.Array, []test{
		{"one", `[{"a":1}]`, []string{`1:{"a":1}`}, ""},
		{"every kind of value", `[1,"two",null,[4]]`, []string{`1:1`, `2:"two"`, `3:null`, `4:[4]`}, ""},
		{"spaces around elements go, spaces in them stay", "\n[ { \"a\" : 1 }\t,\r\n2 ] \n", []string{`1:{ "a" : 1 }`, "2:2"}, ""},
		{"commas and brackets in strings", `["a,]}[{","\"]",{"k]":"\\"}]`, []string{`1:"a,]}[{"`, `2:"\"]"`, `3:{"k]":"\\"}`}, ""},
		{"nested", `[[[1,2],[3]],{"a":[{"b":{}}]}]`, []string{`1:[[1,2],[3]]`, `2:{"a":[{"b":{}}]}`}, ""},
		{"as many as there may be", `[1,2,3,4]`, []string{"1:1", "2:2", "3:3", "4:4"}, ""},
		{"one too many", `[1,2,3,4,5]`, nil, "the body has more than 4 events, the most in one request"},
		{"empty array", " [ ] ", nil, none},
		{"empty", "", nil, noArray},
		{"spaces", strings.Repeat(" ", 1<<20), nil, noArray},
		{"an object", `{"a":[1]}`, nil, noArray},
		{"a byte order mark", "\xef\xbb\xbf[1]", nil, noArray},
		{"not closed", `[1,2`, nil, "the body is not valid JSON: the array is not closed"},
		{"not closed within an element", `[1,{"a":[2]`, nil, `item 2 is not valid JSON: unexpected end of JSON input, at byte 8`},
		{"not closed within a string", `["a`, nil, `item 1 is not valid JSON: unexpected end of JSON input, at byte 2`},
		{"the bracket alone", `[`, nil, `item 1 is not valid JSON: it is empty`},
		{"a bad element", `[1,2,{"a":}]`, nil, `item 3 is not valid JSON: invalid character '}' looking for beginning of value, at byte 6`},
		{"a missing element", `[1,,2]`, nil, `item 2 is not valid JSON: it is empty`},
		{"a comma at the end", `[1,]`, nil, `item 2 is not valid JSON: it is empty`},
		{"a comma alone", `[,]`, nil, `item 1 is not valid JSON: it is empty`},
		{"brackets that do not match", `[{]]`, nil, `item 1 is not valid JSON: invalid character ']' looking for beginning of object key string, at byte 2`},
		{"a brace for the bracket", `[1}`, nil, `item 1 is not valid JSON: invalid character '}' after top-level value, at byte 2`},
		{"two arrays", `[1][2]`, nil, trailing},
		{"something behind it", `[1] x`, nil, trailing},
		{"something behind an empty one", `[] x`, nil, trailing},
	})
}

// TestDeep shows that nesting costs neither the stack nor time.
func TestDeep(t *testing.T) {
	t.Parallel()
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

	got, err := reader.Array([]byte("["+deep(5000)+"]"), most)
	require.NoError(t, err)
	require.Equal(t, []string{"1:" + deep(5000)}, plain(got))

	got, err = reader.Lines([]byte(deep(5000)), most)
	require.NoError(t, err)
	require.Equal(t, []string{"1:" + deep(5000)}, plain(got))

	for _, read := range []func([]byte, int) ([]reader.Element, error){reader.Lines, reader.Array} {
		_, err = read([]byte(deep(2<<20)), most)
		require.ErrorContains(t, err, "exceeded max depth")
		_, err = read(bytes.Repeat([]byte{'['}, 2<<20), most)
		require.ErrorContains(t, err, "is not valid JSON")
	}
	_, err = reader.CloudEventID([]byte(`{"specversion":"1.0","id":"i","source":"s","type":"t","data":` + deep(9000) + `}`))
	require.NoError(t, err)
}

// TestEscapes reads strings that are all backslashes and quotes, whose ends
// are found in one pass.
func TestEscapes(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal([]string{strings.Repeat(`\`, 1<<17), strings.Repeat(`"`, 1<<17), strings.Repeat(`\"`, 1<<17) + `,`})
	require.NoError(t, err)
	got, err := reader.Array(text, most)
	require.NoError(t, err)
	require.Len(t, got, 3)
}

// TestElementsAreApart shows that nobody who appends to an element writes
// over the next one.
func TestElementsAreApart(t *testing.T) {
	t.Parallel()
	for _, read := range []func([]byte, int) ([]reader.Element, error){reader.Lines, reader.Array} {
		body := []byte("[1,\t2]")
		got, err := read(body, most)
		require.NoError(t, err)
		_ = append(got[0].Body, "XXXX"...)
		require.Equal(t, "[1,\t2]", string(body))
	}
}

func TestTooMany(t *testing.T) {
	t.Parallel()
	var e *reader.Error
	_, err := reader.Lines([]byte("1\n2"), 1)
	require.ErrorAs(t, err, &e)
	require.True(t, e.TooMany)
	_, err = reader.Array([]byte("[1,2]"), 1)
	require.ErrorAs(t, err, &e)
	require.True(t, e.TooMany)
	_, err = reader.Array([]byte("[1,x]"), 2)
	require.ErrorAs(t, err, &e)
	require.False(t, e.TooMany)
}

func TestCloudEventID(t *testing.T) {
	t.Parallel()
	const missing = "the body is not a CloudEvent: %s must be a string that is not empty"
	tests := []struct{ name, body, want, err string }{
		{"whole", `{"specversion":"1.0","id":"A-1","source":"/s","type":"t"}`, "A-1", ""},
		{"in any order, with data", ` {"data":{"id":"no"},"type":"t","source":"/s","id":"A-1","specversion":"1.0"} `, "A-1", ""},
		{"escaped", `{"specversion":"1.0","\u0069d":"\u00e4\"","source":"/s","type":"t"}`, `ä"`, ""},
		{"the last of two", `{"id":"1","specversion":"1.0","id":"2","source":"/s","type":"t"}`, "2", ""},
		{"no id", `{"specversion":"1.0","source":"/s","type":"t"}`, "", fmt.Sprintf(missing, "id")},
		{"an empty id", `{"specversion":"1.0","id":"","source":"/s","type":"t"}`, "", fmt.Sprintf(missing, "id")},
		{"a number for an id", `{"specversion":"1.0","id":7,"source":"/s","type":"t"}`, "", fmt.Sprintf(missing, "id")},
		{"an object for an id", `{"specversion":"1.0","id":{"id":"x"},"source":"/s","type":"t"}`, "", fmt.Sprintf(missing, "id")},
		{"another case", `{"specversion":"1.0","ID":"1","source":"/s","type":"t"}`, "", fmt.Sprintf(missing, "id")},
		{"no specversion", `{"id":"1","source":"/s","type":"t"}`, "", fmt.Sprintf(missing, "specversion")},
		{"no source", `{"specversion":"1.0","id":"1","type":"t"}`, "", fmt.Sprintf(missing, "source")},
		{"no type", `{"specversion":"1.0","id":"1","source":"/s"}`, "", fmt.Sprintf(missing, "type")},
		{"an array", `[{"specversion":"1.0","id":"1","source":"/s","type":"t"}]`, "", "the body is not a CloudEvent: it must be a JSON object"},
		{"a string", `"x"`, "", "the body is not a CloudEvent: it must be a JSON object"},
		{"no JSON", `{`, "", "the body is not valid JSON: unexpected end of JSON input, at byte 1"},
		{"nothing", ``, "", "the body is not valid JSON: it is empty"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			id, err := reader.CloudEventID([]byte(tt.body))
			if tt.err != "" {
				require.EqualError(t, err, tt.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.want, id)
		})
	}
}

func TestCloudEvents(t *testing.T) {
	t.Parallel()
	event := func(id string) string { return `{"specversion":"1.0","id":"` + id + `","source":"/s","type":"t"}` }

	got, ids, err := reader.CloudEvents([]byte("["+event("a")+", "+event("b")+"]"), most)
	require.NoError(t, err)
	require.Equal(t, []string{"1:" + event("a"), "2:" + event("b")}, plain(got))
	require.Equal(t, []string{"a", "b"}, ids)

	_, _, err = reader.CloudEvents([]byte("["+event("a")+","+event("")+"]"), most)
	require.EqualError(t, err, "item 2 is not a CloudEvent: id must be a string that is not empty")

	_, _, err = reader.CloudEvents([]byte(event("a")), most)
	require.EqualError(t, err, "the body is not a JSON array")
}
