package jsonbody_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sluice/core/jsonbody"
)

func TestMember(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("k", 40)
	for _, tt := range []struct{ name, object, member, want string }{
		{"first", `{"a":1,"b":2}`, "a", "1"},
		{"last", `{"a":1,"b":2}`, "b", "2"},
		{"none", `{"a":1}`, "b", ""},
		{"an empty object", ` { } `, "a", ""},
		{"spaces", " {\n\"a\" :\t{ \"b\" : 1 } , \"c\" : 2 }\r\n", "a", `{ "b" : 1 }`},
		{"the last of equal names", `{"a":1,"a":2,"b":3}`, "a", "2"},
		{"the last, written otherwise", `{"a":1,"\u0061":2}`, "a", "2"},
		{"the last, written as it is", `{"\u0061":1,"a":2}`, "a", "2"},
		{"a null", `{"a":null}`, "a", "null"},
		{"an inner member of the name", `{"b":{"a":1},"c":[{"a":2}]}`, "a", ""},
		{"an inner member behind", `{"a":1,"b":{"a":2}}`, "a", "1"},
		{"a value that is the name", `{"b":"a","a":"b"}`, "a", `"b"`},
		{"a value that looks like a member", `{"b":"\"a\":1","c":"{\"a\":","a":3}`, "a", "3"},
		{"a value that ends like the name", `{"b":"\"a","c":2}`, "a", ""},
		{"a name that ends like the name", `{"ba":1,"b\"a":2}`, "a", ""},
		{"brackets in strings", `{"b":"}]","c":["{[\"]"],"a":4}`, "a", "4"},
		{"backslashes before a quote", `{"b":"\\","c":"\\\\\"","a":5}`, "a", "5"},
		{"an empty name", `{"b":1,"":2}`, "", "2"},
		{"a name with a quote", `{"b\"":1}`, `b"`, "1"},
		{"a name with a slash", `{"b\/c":1}`, `b/c`, "1"},
		{"a name with a backslash", `{"b\\":1}`, `b\`, "1"},
		{"a line break", `{"b\n":1}`, "b\n", "1"},
		{"umlauts", `{"ä":1,"\u00e4":2}`, "ä", "2"},
		{"a pair", `{"\ud83d\ude00":1}`, "😀", "1"},
		{"half a pair", `{"\ud83dx":1}`, "\ufffdx", "1"},
		{"not UTF-8", "{\"\xff\":1}", "\ufffd", "1"},
		{"asked for what is not UTF-8", "{\"\xff\":1}", "\xff", ""},
		{"a long name", `{"` + long + `":1,"` + long + `2":2}`, long, "1"},
		{"a long name, missing", `{"` + long + `2":2}`, long, ""},
		{"an array", `[{"a":1}]`, "a", ""},
		{"a string", `"a"`, "a", ""},
		{"nothing", ``, "a", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, string(jsonbody.Member([]byte(tt.object), tt.member)))
		})
	}
}

func TestMemberIsAPart(t *testing.T) {
	t.Parallel()
	body := []byte(`{"a":"x"}`)
	require.Same(t, &body[5], &jsonbody.Member(body, "a")[0])
	require.Nil(t, jsonbody.Member(body, "b"))
}

func TestKinds(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]jsonbody.Kind{
		"": jsonbody.None, " ": jsonbody.None, " null": jsonbody.Null, "true": jsonbody.Bool, "false": jsonbody.Bool,
		"-1": jsonbody.Number, "0": jsonbody.Number, `""`: jsonbody.String, "\n[]": jsonbody.Array, "{}": jsonbody.Object,
	} {
		require.Equal(t, want, jsonbody.KindOf([]byte(value)), "%q", value)
	}
	for _, value := range []string{"", " ", "1", " 1", "1\t\r\n", "\n[1, 2] "} {
		require.Equal(t, strings.Trim(value, " \t\r\n"), string(jsonbody.Trim([]byte(value))))
	}
	for value, want := range map[string]int{"": 0, "1": 0, `"[["`: 0, "[]": 1, "\t[{\"a\":[]},{}]": 3, `{"[":"{"}`: 1} {
		require.Equal(t, want, jsonbody.Depth([]byte(value)), "%q", value)
	}
}

// TestText holds strings of every kind of part to encoding/json.
func TestText(t *testing.T) {
	t.Parallel()
	part := rapid.SampledFrom([]string{
		"a", "longer plain text", "ä", "😀", "\xff", "\xc3", "\xed\xa0\x80", "\ufffd", `\"`, `\\`, `\/`, `\b`, `\f`, `\n`, `\r`, `\t`,
		`\u0041`, `\u00E4`, `\ud83d`, `\ude00`, `\ud83d\ude00`, `\uffff`, `\u0000`, "u0041",
	})
	rapid.Check(t, func(t *rapid.T) {
		value := []byte(`"` + strings.Join(rapid.SliceOf(part).Draw(t, "parts"), "") + `"`)
		require.True(t, jsonbody.Valid(value))
		requireText(t, value)
	})
}

type tester interface {
	require.TestingT
	Helper()
}

func requireText(t tester, value []byte) {
	t.Helper()
	var want string
	require.NoError(t, json.Unmarshal(value, &want))
	require.Equal(t, want, jsonbody.Text(value), "%q", value)

	object := append(append([]byte("{"), value...), `:1}`...)
	require.Equal(t, "1", string(jsonbody.Member(object, want)), "%q", value)
	require.Nil(t, jsonbody.Member(object, want+"x"))
}

func FuzzMember(f *testing.F) {
	for _, s := range []string{
		`{"a":1,"b":{"a":[{}]},"a":"x\"y"}`, `{"\u0061":1}`, `{"\\":"\\"}`, "{\"\xff\":1}", `{"a`, `{"a":`, `{"a"`, `}`, `{"a":{`, `{"a":"`, `{"a":"\`,
		`{"x":"a","a":"\ud83d\ude00"}`, `[]`, `{"a":}`, `{}}"a":1`, `"\u12`,
	} {
		f.Add([]byte(s), "a")
	}
	f.Fuzz(func(t *testing.T, body []byte, name string) {
		got, depth := jsonbody.Member(body, name), jsonbody.Depth(body)
		if _ = jsonbody.Text(body); !json.Valid(body) {
			return // it did not panic
		}
		switch jsonbody.KindOf(body) {
		case jsonbody.Object:
		case jsonbody.String:
			requireText(t, jsonbody.Trim(body))
			fallthrough
		default:
			require.Nil(t, got)
			return
		}
		var want map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(body, &want))
		require.Equal(t, string(want[name]), string(got))
		for name, value := range want {
			require.Equal(t, string(value), string(jsonbody.Member(body, name)), "%q", name)
			require.Less(t, jsonbody.Depth(value), depth)
		}
		requireMembers(t, body, want)
	})
}

// requireMembers walks a valid object, and finds nothing but its members.
func requireMembers(t *testing.T, object []byte, want map[string]json.RawMessage) {
	t.Helper()
	last := make(map[string]string, len(want))
	for w := jsonbody.Walk(object); w.Next(); {
		for name := range want {
			if w.Is(name) {
				last[name] = string(w.Value())
			}
		}
	}
	require.Len(t, last, len(want))
	for name, value := range want {
		require.Equal(t, string(value), last[name])
	}
}
