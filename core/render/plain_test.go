package render_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sluice/core/render"
)

// paths are what plain templates read.
var paths = []string{".json", ".json.a", ".json.a.b", ".json.a.a.b", ".json.c.b", ".headers.a", ".id", ".source"}

// fulls are the ways in which text/template prints what a plain template does.
var fulls = []string{
	"{{ if true }}{{ %s }}{{ end }}", "{{ $v := %s }}{{ $v }}", "{{ (%s) }}", "{{ with $ }}{{ %s }}{{ end }}",
}

// requireAgreement holds a plain template to what text/template makes of it.
func requireAgreement(t require.TestingT, in input, path, full string) {
	plainly, err := render.Compile("{{ " + path + " }}")
	require.NoError(t, err)
	fully, err := render.Compile(fmt.Sprintf(full, path))
	require.NoError(t, err)
	got, gotErr := plainly.Execute(in)
	want, wantErr := fully.Execute(in)
	require.Equal(t, wantErr, gotErr, "%s on %q", path, in.body)
	require.Equal(t, want, got, "%s on %q", path, in.body)
}

func TestPlainEqualsFull(t *testing.T) {
	t.Parallel()
	value := rapid.SampledFrom([]string{
		`1`, `"s"`, `null`, `true`, `{"a":{"b":2}}`, `{"b":"x"}`, `[1]`, `1.50`, `"\u00e9"`, `{}`, "\"\xff\"", "{\"\xfe\":\"\xff\"}",
		`"\ud800"`, `"\\\"<\n"`, `{"b":null,"b":[null]}`, deep(999), deep(1000), deep(1001), `-0.0e-0`, `"😀"`, "x", "",
	})
	name := rapid.SampledFrom([]string{`a`, `b`, `c`, `\u0061`, "a\xff"})
	rapid.Check(t, func(t *rapid.T) {
		var members []string
		for range rapid.IntRange(0, 4).Draw(t, "members") {
			members = append(members, `"`+name.Draw(t, "name")+`": `+value.Draw(t, "value"))
		}
		body := "{" + strings.Join(members, ", ") + "}"
		switch rapid.IntRange(0, 5).Draw(t, "body") {
		case 0:
			body = value.Draw(t, "value")
		case 1:
			body = rapid.String().Draw(t, "text")
		case 2:
			body = "\r\n " + body + "\t"
		}
		in := input{body: body, headers: map[string]string{"a": "t\xff"}}
		path := rapid.SampledFrom(paths).Draw(t, "path")
		requireAgreement(t, in, path, rapid.SampledFrom(fulls).Draw(t, "full"))
		requirePath(t, in, path)
	})
}

// hostile are templates that use all there is to use of an event.
var hostile = []string{
	`{{ range .json }}{{ . }}{{ print . }}{{ end }}`, `{{ range $k, $v := .json }}{{ $k }}{{ printf "%v%d%q" $v $v $v }}{{ $.json.a }}{{ end }}`,
	`{{ index .json "a" "b" }}`, `{{ index .json 0 }}`, `{{ eq .json.a .json.b }}{{ lt .json.a .json.b }}{{ ge .json.a 1 }}`,
	`{{ len .json }}`, `{{ slice .json 1 2 }}`, `{{ html .json }}{{ js .json }}{{ urlquery .json }}`, `{{ or .json.a .json.b "none" }}{{ not .json }}`,
	`{{ with .json.a }}{{ .b }}{{ else }}{{ println .json }}{{ end }}`, `{{ index .json.a .json.b }}`, `{{ $x := .json.a }}{{ $x.b.c }}{{ print $x }}`,
}

// FuzzExecute shows that no event makes a template panic or print what is not
// there, and that the two ways to render agree on all of them.
func FuzzExecute(f *testing.F) {
	for _, s := range []string{
		`{"a":{"b":"x"},"b":[1,null]}`, `{"a":1,"b":"2"}`, `[1,"x",{}]`, `"x\ud800"`, "{\"a\":\"\xff\"}", `k=v`, ``, `null`, deep(1001), deep(10_000),
		strings.Repeat(`{"a":`, 5000) + `1` + strings.Repeat(`}`, 5000), `{"a":1e999999,"b":-1}`,
	} {
		f.Add([]byte(s))
	}
	compiled := make([]*render.Template, len(hostile))
	for i, text := range hostile {
		var err error
		compiled[i], err = render.Compile(text)
		require.NoError(f, err)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		in := input{body: string(body), headers: map[string]string{"a": "t"}}
		for i, path := range paths {
			requireAgreement(t, in, path, fulls[i%len(fulls)])
			requirePath(t, in, path)
		}
		for _, tmpl := range compiled {
			got, err := tmpl.Execute(in)
			require.True(t, err == nil || got == "")
			if quotes := strings.Contains(in.body, "<") || strings.Contains(in.body, `\u`); !quotes {
				require.NotContains(t, got, "<no value>", "%s", tmpl)
				require.NotContains(t, got, "<nil>", "%s", tmpl)
			}
		}
		// A body that is wrongly taken for JSON does no harm either.
		for _, tmpl := range compiled {
			_, _ = tmpl.Execute(fixed{in, body})
		}
		if !json.Valid(body) {
			tmpl, err := render.Compile("{{ .json }}{{ .json.a }}")
			require.NoError(t, err)
			got, err := tmpl.Execute(in)
			require.NoError(t, err)
			require.Empty(t, got)
		}
	})
}

// fixed is an event that is known to be JSON.
type fixed struct {
	input
	b []byte
}

func (f fixed) Body() []byte { return f.b }
func (f fixed) JSON() bool   { return true }
