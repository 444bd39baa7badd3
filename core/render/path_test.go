package render_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/core/jsonbody"
	"sluice/core/render"
)

func TestPath(t *testing.T) {
	t.Parallel()
	headers := map[string]string{"tenant": "t1", "x-team": "billing"}
	for _, tc := range []struct{ path, body, raw, text, err string }{
		{path: ".json.a.b", body: `{"a": {"b": 1.50 }}`, raw: "1.50"},
		{path: ".json.a", body: `{"a": {"b": 1.50 }}`, raw: `{"b": 1.50 }`},
		{path: ".json", body: ` [1] `, raw: `[1]`},
		{path: ".json.a-b.é_1", body: `{"a-b":{"é_1":""}}`, raw: `""`},
		{path: ".json.a", body: `{"a":null}`},
		{path: ".json.a.b", body: `{"a":null}`},
		{path: ".json.a.b", body: `{}`},
		{path: ".json.a", body: `a=1`},
		{path: ".json", body: `null`},
		{path: ".json.a.b", body: `{"a":1}`, err: "can't read field b of a number"},
		{path: ".headers.tenant", text: "t1"},
		{path: ".headers.x-team", text: "billing"},
		{path: ".headers.none"},
		{path: ".id", text: "evt1"},
		{path: ".source", text: "orders"},
	} {
		t.Run(tc.path+" of "+tc.body, func(t *testing.T) {
			t.Parallel()
			p, err := render.CompilePath(tc.path)
			require.NoError(t, err)
			require.Equal(t, tc.path, p.String())
			r := render.Read(input{tc.body, headers})
			raw, text, err := r.Find(p)
			if tc.err != "" {
				require.EqualError(t, err, tc.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tc.raw, string(raw))
			require.Equal(t, tc.text, text)
		})
	}
}

func TestPathErrors(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"":               `"" is no path; one begins with a dot, such as .json.amount`,
		"json.a":         `"json.a" is no path; one begins with a dot`,
		".":              `"." is no path; the names in it are of letters, digits, _ and -`,
		".json.":         `is no path`,
		".json..a":       `is no path`,
		".json.a[0]":     `is no path`,
		"{{.json.a}}":    `is no path`,
		".json.a\xff":    `is no path`,
		".amount":        "an event has no field .amount; it has .json, .headers, .id and .source",
		".headers":       ".headers is all headers; name one, such as .headers.tenant",
		".headers.a.b":   ".headers.a has no fields",
		".id.a":          ".id has no fields",
		".source.json.a": ".source has no fields",
	} {
		_, err := render.CompilePath(path)
		require.ErrorContains(t, err, want, "%q", path)
	}
}

// requirePath holds a path to the plain template of the same field.
func requirePath(t require.TestingT, in input, path string) {
	tmpl, err := render.Compile("{{ " + path + " }}")
	require.NoError(t, err)
	p, err := render.CompilePath(path)
	require.NoError(t, err)
	r := render.Read(in)
	raw, text, err := r.Find(p)
	want, wantErr := tmpl.Execute(in)
	switch jsonbody.KindOf(raw) {
	case jsonbody.Array, jsonbody.Object: // printed anew, and not when they are too deep
		require.NoError(t, err)
		return
	case jsonbody.String:
		text = jsonbody.Text(raw)
	default:
		text += string(raw)
	}
	require.Equal(t, wantErr, err, "%s on %q", path, in.body)
	require.Equal(t, want, text, "%s on %q", path, in.body)
}
