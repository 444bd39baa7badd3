package render_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

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
		{"not UTF-8", "{{ .json.k }}", "{\"k\":\"a\xff\xfe\"}", "a\ufffd\ufffd"},
		{"a name that is not UTF-8", "{{ .json }}", "{\"\xff\":1}", "{\"\ufffd\":1}"},
		{"half a surrogate pair", "{{ .json.k }}", `{"k":"\ud800x"}`, "\ufffdx"},
		{"spaces around", "{{ .json }}{{ .json.k }}", " \n{ \"k\" : \"v\" }\t", `{"k":"v"}v`},
		{"no JSON, in full", "{{ if true }}{{ .json }}{{ .json.k.l }}{{ end }}", `k=1`, ""},
		{"the event by its name", "{{ with .json.k }}{{ $.json.l }}{{ $.id }}{{ . }}{{ end }}", `{"k":1,"l":2}`, "2evt11"},
		{"with the event", "{{ with . }}{{ .json.k }}{{ end }}", `{"k":1}`, "1"},
		{"in parentheses", "{{ (.json).k }}{{ (.json.k).l }}{{ (index .json \"k\").l }}", `{"k":{"l":1}}`, `{"l":1}11`},
		{"a variable's field", "{{ $j := .json }}{{ $j.k }}{{ $j.x }}{{ $j.x.y }}", `{"k":1}`, "1"},
		{"an assignment", "{{ $j := 0 }}{{ $j = .json.k }}{{ $j }}", `{"k":1}`, "1"},
		{"a loop that asks for the same", "{{ range .json.a }}{{ .b }}{{ $.json.c }}{{ end }}", `{"a":[{"b":1},{"b":2},{}],"c":"-"}`, "1-2--"},
		{"a loop over members", "{{ range $k, $v := .json }}{{ $k }}={{ $v }};{{ end }}", `{"b":null,"a":[1]}`, "a=[1];b=;"},
		{"a loop over nothing", "{{ range .json.a }}x{{ else }}none{{ end }}", `{}`, "none"},
		{"all headers", "{{ .headers }}", ``, `{"tenant":"t1","x-team":"billing"}`},
		{"index of names and places", `{{ index .json "a-b" 1 "c" }}{{ index . "json" "x" }}{{ index . "id" }}`, `{"a-b":[0,{"c":"v"}]}`, "vevt1"},
		{"index by a number of the event", "{{ index .json.a .json.n }}", `{"a":["x","y"],"n":1}`, "y"},
		{"a number by its verb", `{{ printf "%05d|%.1f|%x|%s|%v|%q" .json.n .json.n .json.n .json.n .json.n .json.n }}`, `{"n":42}`, `00042|42.0|2a|42|42|"42"`},
		{"print of numbers", "{{ print .json.a .json.a }}", `{"a":1.50}`, "1.501.50"},
		{"print of parts", "{{ print .json.a }}{{ printf \"%v\" .json.a }}", `{"a":{"b":[null, 1]}}`, `{"b":[null,1]}{"b":[null,1]}`},
		{"escapers", `{{ html .json.a }}{{ js .json.a }}{{ urlquery .json.a }}`, `{"a":"<"}`, "&lt;\\u003C%3C"},
		{"slice", "{{ slice .json.a 0 2 }}{{ len .json.b }}", `{"a":"abc","b":[1,2]}`, "ab2"},
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

// TestNothing shows that a missing field and a null are nothing to whatever
// takes them.
func TestNothing(t *testing.T) {
	t.Parallel()
	for _, body := range []string{`{}`, `{"x":null}`, `{"x":{"y":null}}`, ``, `x=1`, `null`} {
		for _, tc := range []struct{ text, want string }{
			{"{{ .json.x.y }}", ""},
			{"{{ .headers.x }}", ""},
			{"{{ print .json.x.y }}", ""},
			{"{{ print .json.x.y .json.x.y }}", ""},
			{"{{ println .json.x.y }}", "\n"},
			{`{{ printf "%v%s%d%f%t" .json.x.y .json.x.y .json.x.y .json.x.y .json.x.y }}`, ""},
			{`{{ printf "%3s|%q" .json.x.y .json.x.y }}`, `   |""`},
			{"{{ .json.x.y | html }}{{ .json.x.y | js }}{{ .json.x.y | urlquery }}", ""},
			{"{{ .json.x.y | print }}", ""},
			{`{{ index .json.x "y" }}{{ print (index .json.x "y" 3 "z") }}`, ""},
			{`{{ print (index .headers "x-y") .headers.y }}`, ""},
			{"{{ $v := .json.x.y }}{{ $v }}{{ print $v }}{{ $v.w }}", ""},
			{"{{ (.json.x.y).z }}", ""},
			{"{{ if .json.x.y }}yes{{ else }}no{{ end }}", "no"},
			{"{{ with .json.x.y }}yes{{ else }}no{{ end }}", "no"},
			{"{{ range .json.x.y }}yes{{ else }}no{{ end }}", "no"},
			{`{{ or .json.x.y "none" }}{{ and .json.x.y "some" }}{{ not .json.x.y }}`, "nonetrue"},
			{`{{ eq .json.x.y "a" }} {{ eq .json.x.y "" }} {{ eq .json.x.y 0 }} {{ ne .json.x.y "a" }}`, "false false false true"},
			{"{{ eq .json.x.y .json.x.z }} {{ eq .json.x.y nil }} {{ eq 1 .json.x.y 1 }}", "true true true"},
			{"{{ lt .json.x.y 1 }} {{ gt .json.x.y 1 }} {{ le .json.x.y 1 }} {{ ge 1 .json.x.y }}", "false false false false"},
		} {
			tmpl, err := render.Compile(tc.text)
			require.NoError(t, err)
			got, err := tmpl.Execute(input{body: body})
			require.NoError(t, err, "%s on %s", tc.text, body)
			require.Equal(t, tc.want, got, "%s on %s", tc.text, body)
		}
	}
}

func TestCompare(t *testing.T) {
	t.Parallel()
	const body = `{"n":10,"s":"10","f":1e1,"big":9007199254740993,"huge":1e999,"t":true,"o":{},"a":[]}`
	for text, want := range map[string]string{
		"eq .json.n 10":                      "true",
		"eq .json.n 10.0":                    "true",
		"eq .json.n .json.f":                 "true",
		`eq .json.n "10"`:                    "true",
		`eq .json.f "10"`:                    "false",
		"eq .json.n .json.s":                 "true",
		"eq .json.n 1 2 10":                  "true",
		"ne .json.n 10":                      "false",
		"gt .json.n 9":                       "true",
		"lt .json.n 9":                       "false",
		"ge .json.n 10":                      "true",
		"le .json.n 9.5":                     "false",
		`lt .json.s "9"`:                     "true",
		"eq .json.big 9007199254740992":      "false",
		"gt .json.big 9007199254740992":      "true",
		"gt .json.huge .json.big":            "true",
		"eq .json.t true":                    "true",
		"eq (len .json.a) 0":                 "true",
		"eq .json.t 1":                       "can't compare a boolean with a number",
		`lt .json.n "9"`:                     "can't compare a number with a string",
		`eq .json.o "x"`:                     "can't compare an object with a string",
		"eq .json.a .json.a":                 "can't compare an array with an array",
		"lt .json.t .json.t":                 "can't compare a boolean with a boolean",
		"eq . 1":                             "can't compare an object with a number",
		`eq .json.t "true" | print "never"`:  "can't compare a boolean with a string",
		`eq "x" .json.missing .json.s "x"`:   "true",
		`eq .json.s .json.missing .json.o 1`: "can't compare a string with an object",
	} {
		tmpl, err := render.Compile("{{ " + text + " }}")
		require.NoError(t, err)
		got, err := tmpl.Execute(input{body: body})
		if err != nil {
			got = err.Error()
		}
		require.Equal(t, want, got, "%s", text)
	}
}

const (
	wholeEvent = "an event has no text of its own; name one of its fields: .json, .headers, .id or .source"
	tooLong    = "it renders more than 1 MiB"
	tooDeep    = "the value is nested more than 1000 deep"
)

func deep(n int) string { return strings.Repeat(`[`, n) + strings.Repeat("]", n) }

func TestExecuteErrors(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, text, body, want string }{
		{"field of a string", "{{ .json.a.b }}", `{"a":"x"}`, "can't read field b of a string"},
		{"field of a number", "{{ .json.a.b }}", `{"a":1}`, "can't read field b of a number"},
		{"field of an array", "{{ .json.a.b }}", `{"a":[{"b":1}]}`, "can't read field b of an array"},
		{"field of a boolean", "{{ .json.a.b }}", `{"a":true}`, "can't read field b of a boolean"},
		{"index out of range", "{{ index .json.a 5 }}", `{"a":[1]}`, "index out of range: 5"},
		{"index before the first", "{{ index .json.a -1 }}", `{"a":[1]}`, "index out of range: -1"},
		{"index of an array by a name", `{{ index .json.a "b" }}`, `{"a":[1]}`, "can't index an array by a string"},
		{"index of an object by a place", "{{ index .json 1 }}", `{}`, "can't index an object by a number"},
		{"index of a string", `{{ index .json.a "b" }}`, `{"a":"x"}`, "can't read field b of a string"},
		{"index of an event", `{{ index . "jsn" }}`, ``, "an event has no field .jsn; it has .json, .headers, .id and .source"},
		{"an unknown field by a detour", "{{ $e := . }}{{ $e.jsn }}", ``, "an event has no field .jsn; it has .json, .headers, .id and .source"},
		{"an event by a detour", "{{ $e := . }}{{ $e }}", ``, wholeEvent},
		{"an event in a print", "{{ print . }}", ``, wholeEvent},
		{"an event in a printf", `{{ printf "%v" $ }}`, ``, wholeEvent},
		{"field of a string, by a variable", "{{ $a := .json.a }}{{ $a.b }}", `{"a":"x"}`, "can't read field b of a string"},
		{"too long", "{{ range .json.a }}{{ range $.json.a }}xxxxxxxxxxxxxxxxxxxx{{ end }}{{ end }}", `{"a":[` + strings.Repeat("1,", 999) + "1]}", tooLong},
		{"too long, plainly", "{{ .json.a }}", `{"a":"` + strings.Repeat("x", render.MaxBytes+1) + `"}`, tooLong},
		{"a long error", "{{ range .json.a }}{{ end }}", `{"a":"` + strings.Repeat("ä", 1000) + `"}`, "range can't iterate over " + strings.Repeat("ä", 87) + "…"},
		{"a function that fails", "{{ slice .json.a 5 }}", `{"a":">: "}`, "error calling slice: index out of range: 5"},
		{"too deep", "{{ .json.a }}", `{"a":` + deep(1001) + `}`, tooDeep},
		{"too deep, in full", "{{ if .json.a }}{{ end }}", `{"a":` + deep(1001) + `}`, tooDeep},
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
		{"{{ . }}", wholeEvent},
		{"{{ with .json.a }}{{ ($) }}{{ end }}", wholeEvent},
		{"{{ if .jsn.x }}{{ end }}", "an event has no field .jsn"},
		{"{{ if true }}{{ else if .jsn }}{{ end }}", "an event has no field .jsn"},
		{"{{ if true }}{{ .jsn }}{{ end }}", "an event has no field .jsn"},
		{"{{ if true }}{{ else }}{{ .jsn }}{{ end }}", "an event has no field .jsn"},
		{"{{ with .jsn }}{{ end }}", "an event has no field .jsn"},
		{"{{ with .json.a }}{{ else }}{{ .jsn }}{{ end }}", "an event has no field .jsn"},
		{"{{ with . }}{{ .jsn }}{{ end }}", "an event has no field .jsn"},
		{"{{ with .json.a }}{{ .b }}{{ with $ }}{{ .jsn }}{{ end }}{{ end }}", "an event has no field .jsn"},
		{"{{ range .jsn }}{{ end }}", "an event has no field .jsn"},
		{"{{ range .json.a }}{{ .b }}{{ $.jsn }}{{ end }}", "an event has no field .jsn"},
		{"{{ range .json.a }}{{ else }}{{ .jsn }}{{ end }}", "an event has no field .jsn"},
		{"{{ $.jsn }}", "an event has no field .jsn"},
		{"{{ (.jsn).x }}", "an event has no field .jsn"},
		{"{{ ($).jsn }}", "an event has no field .jsn"},
		{"{{ print (print .jsn) }}", "an event has no field .jsn"},
		{"{{ $x := .jsn }}", "an event has no field .jsn"},
		{`{{ index .jsn "a" }}`, "an event has no field .jsn"},
		{"{{ .id.x }}", ".id has no fields"},
		{"{{ if .source.x }}{{ end }}", ".source has no fields"},
		{"{{ .headers.a.b }}", ".headers.a has no fields"},
		{`{{ define "x" }}{{ .json.a }}{{ end }}`, `it defines the template "x"`},
		{`{{ define "x" }}{{ end }}{{ .json.a }}`, `it defines the template "x"`},
		{`{{ block "x" . }}{{ .json.a }}{{ end }}`, `it defines the template "x"`},
		{`{{ if true }}{{ template "template" . }}{{ end }}`, `it calls the template "template"`},
		{`{{ printf .json.a }}`, "printf needs a format that is a literal"},
		{`{{ .json.a | printf }}`, "printf needs a format that is a literal"},
	} {
		t.Run(tc.text, func(t *testing.T) {
			t.Parallel()
			_, err := render.Compile(tc.text)
			require.ErrorContains(t, err, tc.want)
		})
	}
}
