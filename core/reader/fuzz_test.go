package reader_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/core/reader"
)

// FuzzReader holds what is read against encoding/json, and against the body.
func FuzzReader(f *testing.F) {
	for _, s := range []string{
		"", "[]", "\n", "{}", "[1,2]", `[ "a,]" , {"b":[1,{}]} ]`, "1\r\n\r\n{\"a\":1,\"a\":2}\n", "1e999",
		"\xef\xbb\xbf{}", `[{]}]`, `["\\\"",1]`, "[1,]", "[[[[]]]]", `{"specversion":"1.0","id":"1","source":"s","type":"t"}`,
	} {
		f.Add([]byte(s), uint16(3))
	}
	f.Fuzz(func(t *testing.T, body []byte, limit uint16) {
		most := int(limit)%10 + 1
		checkArray(t, body, most)
		checkLines(t, body, most)
		if id, err := reader.CloudEventID(body); err == nil {
			var e map[string]any
			require.NoError(t, json.Unmarshal(body, &e))
			require.Equal(t, e["id"], string([]rune(id)))
		}
	})
}

// nested is more levels than both ways of validating are sure to allow.
func nested(body []byte) bool {
	return bytes.Count(body, []byte{'['})+bytes.Count(body, []byte{'{'}) > 9000
}

func checkArray(t *testing.T, body []byte, most int) {
	t.Helper()
	elements, err := reader.Array(body, most)
	var want []json.RawMessage
	isArray := json.Unmarshal(body, &want) == nil && want != nil
	if err != nil {
		require.True(t, !isArray || len(want) == 0 || len(want) > most || nested(body), "refused: %v", err)
		return
	}
	require.True(t, isArray)
	require.Len(t, elements, len(want))
	require.LessOrEqual(t, len(elements), most)
	rest := body
	for i, e := range elements {
		require.Equal(t, i+1, e.N)
		require.Equal(t, string(want[i]), string(e.Body))
		rest = skip(t, rest, e.Body, "[, \t\r\n")
	}
	require.Equal(t, "]", string(bytes.TrimSpace(rest)))
}

func checkLines(t *testing.T, body []byte, most int) {
	t.Helper()
	elements, err := reader.Lines(body, most)
	valid, n := true, 0
	for line := range bytes.SplitSeq(body, []byte{'\n'}) {
		if blank := len(bytes.Trim(line, " \t\r")) == 0; !blank {
			valid = valid && json.Valid(line)
			n++
		}
	}
	if err != nil {
		require.True(t, !valid || n == 0 || n > most || nested(body), "refused: %v", err)
		return
	}
	require.True(t, valid)
	require.Len(t, elements, n)
	require.LessOrEqual(t, n, most)
	lines := bytes.Split(body, []byte{'\n'})
	rest := body
	for _, e := range elements {
		require.Equal(t, string(bytes.TrimSuffix(lines[e.N-1], []byte{'\r'})), string(e.Body))
		rest = skip(t, rest, e.Body, " \t\r\n")
	}
	require.Empty(t, bytes.TrimSpace(rest))
}

// skip is what follows an element in body. Nothing but what may stand between
// elements comes before it, and it is a slice of body.
func skip(t *testing.T, body, element []byte, between string) []byte {
	t.Helper()
	at := len(body) - len(bytes.TrimLeft(body, between))
	for at > 0 && !bytes.HasPrefix(body[at:], element) {
		at-- // a line keeps the spaces in front of its value
	}
	require.True(t, bytes.HasPrefix(body[at:], element))
	require.Same(t, &body[at], &element[0])
	return body[at+len(element):]
}
