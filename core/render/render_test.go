package render_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sluice/core/render"
)

type input struct {
	body    string
	headers map[string]string
}

func (in input) ID() string                 { return "evt1" }
func (in input) Source() string             { return "orders" }
func (in input) Body() []byte               { return []byte(in.body) }
func (in input) JSON() bool                 { return false }
func (in input) Header(name string) string  { return in.headers[name] }
func (in input) Headers() map[string]string { return in.headers }

func TestExecute(t *testing.T) {
	t.Parallel()
	headers := map[string]string{"tenant": "t1", "x-team": "billing"}
	for _, tc := range []struct{ name, text, body, want string }{
		{"literal", "all", `{}`, "all"},
		{"empty", "", `{}`, ""},
		{"string", "{{ .json.k }}", `{"k":"a/b"}`, "a/b"},
		{"escapes", "{{ .json.k }}", `{"k":"a\u00e4\n"}`, "aä\n"},
		{"number", "{{ .json.k }}", `{"k":1}`, "1"},
		{"number as written", "{{ .json.k }}", `{"k":1e999}`, "1e999"},
		{"large integer", "{{ .json.k }}", `{"k":12345678901234567890123}`, "12345678901234567890123"},
		{"true", "{{ .json.k }}", `{"k":true}`, "true"},
		{"null", "{{ .json.k }}", `{"k":null}`, ""},
		{"missing", "{{ .json.k }}", `{}`, ""},
		{"object", "{{ .json.k }}", `{"k":{"b":1, "a":"<"}}`, `{"a":"<","b":1}`},
		{"object with a null", "{{ .json.k }}", `{"k":{"b":null}}`, `{"b":null}`},
		{"array", "{{ .json.k }}", `{"k":[1, 2]}`, `[1,2]`},
		{"nested", "{{ .json.a.b.c }}", `{"a":{"b":{"c":"x"}}}`, "x"},
		{"nested missing", "{{ .json.a.b.c }}", `{"a":{}}`, ""},
		{"nested null", "{{ .json.a.b.c }}", `{"a":{"b":null}}`, ""},
		{"last of two equal names", "{{ .json.k }}", `{"k":1,"k":2}`, "2"},
		{"a name with a dot", "{{ .json.a.b }}", `{"a.b":1}`, ""},
		{"whole body", "{{ .json }}", `{"a": 1}`, `{"a":1}`},
		{"no JSON", "{{ .json.k }}", `k=1`, ""},
		{"empty body", "{{ .json.k }}", ``, ""},
		{"two values", "{{ .json.k }}", `{"k":1} {"k":2}`, ""},
		{"mixed", "{{ .source }}-{{ .json.k }}", `{"k":1}`, "orders-1"},
		{"id", "{{ .id }}", ``, "evt1"},
		{"header", "{{ .headers.tenant }}", ``, "t1"},
		{"missing header", "{{ .headers.nope }}", ``, ""},
		{"header with a dash", `{{ index .headers "x-team" }}`, ``, "billing"},
		{"pipeline", "{{ .json.k | printf \"%s!\" }}", `{"k":"a"}`, "a!"},
		{"missing in a pipeline's end", "{{ if true }}{{ .json.k }}{{ end }}", `{}`, ""},
		{"with", "{{ with .json.k }}{{ .b }}{{ else }}none{{ end }}", `{"k":{"b":"x"}}`, "x"},
		{"variable", "{{ $k := .json.k }}<{{ $k }}>", `{"k":"v"}`, "<v>"},
		{"range", "{{ range .json.k }}{{ . }},{{ end }}", `{"k":[1,"b",null]}`, "1,b,,"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			tmpl, err := render.Compile(tc.text)
			require.NoError(t, err)
			got, err := tmpl.Execute(input{tc.body, headers})
			require.NoError(t, err)
			require.Equal(t, tc.want, got)
		})
	}
}

func TestExecuteErrors(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, text, body, want string }{
		{"field of a string", "{{ .json.a.b }}", `{"a":"x"}`, "can't read field b of a string"},
		{"field of a number", "{{ .json.a.b }}", `{"a":1}`, "can't read field b of a number"},
		{"field of an array", "{{ .json.a.b }}", `{"a":[{"b":1}]}`, "can't read field b of an array"},
		{"field of a boolean", "{{ .json.a.b }}", `{"a":true}`, "can't read field b of a boolean"},
		{"index out of range", "{{ index .json.a 5 }}", `{"a":[1]}`, "error calling index: index out of range: 5"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			tmpl, err := render.Compile(tc.text)
			require.NoError(t, err)
			_, err = tmpl.Execute(input{body: tc.body})
			require.EqualError(t, err, tc.want)
		})
	}
}

func TestCompileErrors(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ text, want string }{
		{"{{ .json.a", "unclosed action"},
		{"{{ .body.a }}", "an event has no field .body; it has .json, .headers, .id and .source"},
		{"{{ nope .json }}", `function "nope" not defined`},
	} {
		t.Run(tc.text, func(t *testing.T) {
			t.Parallel()
			_, err := render.Compile(tc.text)
			require.ErrorContains(t, err, tc.want)
		})
	}
}

// A plain template means the same as the one that text/template evaluates.
func TestPlainEqualsFull(t *testing.T) {
	t.Parallel()
	value := rapid.SampledFrom([]string{`1`, `"s"`, `null`, `true`, `{"a":{"b":2}}`, `{"b":"x"}`, `[1]`, `1.50`, `"\u00e9"`, `{}`})
	rapid.Check(t, func(t *rapid.T) {
		var members []string
		for range rapid.IntRange(0, 4).Draw(t, "members") {
			name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name")
			members = append(members, fmt.Sprintf("%q: %s", name, value.Draw(t, "value")))
		}
		in := input{body: "{" + strings.Join(members, ", ") + "}"}
		field := rapid.SampledFrom([]string{".json", ".json.a", ".json.a.b", ".json.a.a.b", ".json.c.b"}).Draw(t, "field")

		plain, err := render.Compile("{{ " + field + " }}")
		require.NoError(t, err)
		full, err := render.Compile("{{ if true }}{{ " + field + " }}{{ end }}")
		require.NoError(t, err)
		got, gotErr := plain.Execute(in)
		want, wantErr := full.Execute(in)
		require.Equal(t, wantErr == nil, gotErr == nil, "%v %v on %s", wantErr, gotErr, in.body)
		require.Equal(t, want, got)
	})
}

func BenchmarkPlain(b *testing.B) {
	tmpl, err := render.Compile("{{ .json.key }}")
	require.NoError(b, err)
	in := input{body: `{"key":"k00000001","pad":"` + strings.Repeat("x", 1000) + `"}`}
	body := in.Body()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := tmpl.Execute(fixed{in, body}); err != nil {
			b.Fatal(err)
		}
	}
}

type fixed struct {
	input
	b []byte
}

func (f fixed) Body() []byte { return f.b }
func (f fixed) JSON() bool   { return true }
