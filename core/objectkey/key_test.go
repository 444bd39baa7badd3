package objectkey_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"sluice/core/objectkey"
)

func batch() *objectkey.Batch {
	return &objectkey.Batch{
		ID: "01HX.2", Buffer: "crm-orders", Group: "k/ä 1!", Reason: "items", Suffix: ".ndjson.gz",
		At: time.Date(2026, 1, 31, 23, 5, 0, 0, time.FixedZone("", -3600)),
	}
}

func TestKey(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ template, want string }{
		{objectkey.Default, "crm-orders/2026-02-01/01HX.2.ndjson.gz"},
		{"{{.group}}/{{ .id }}", "k!2F!C3!A4!201!21/01HX.2"},
		{"y={{ .year }}/m={{ .month }}/d={{ .day }}/{{ .hour }}{{ .minute }}-{{ .reason -}} - {{ .id }}", "y=2026/m=02/d=01/0005-items- 01HX.2"},
	} {
		k, err := objectkey.Compile(tt.template)
		require.NoError(t, err, tt.template)
		require.Equal(t, tt.want, k.Key(batch()))
	}
}

func TestGroups(t *testing.T) {
	t.Parallel()
	k, err := objectkey.Compile("{{ .group }}/{{ .id }}")
	require.NoError(t, err)
	for group, want := range map[string]string{"": "!", ".": "!2E", "..": "!2E!2E", "a.b": "a.b", "\xff": "!FF", "(it's)*_-": "(it's)*_-"} {
		b := batch()
		b.Group = group
		require.Equal(t, want+"/01HX.2", k.Key(b))
	}
	long := batch()
	long.Group = strings.Repeat("/", 2000)
	other := batch()
	other.Group = long.Group[1:]
	require.NotEqual(t, k.Key(long), k.Key(other))
	require.Len(t, k.Key(long), 200+len("/01HX.2"))
}

func TestCompileRefuses(t *testing.T) {
	t.Parallel()
	for template, want := range map[string]string{
		"":                                     "lacks {{ .id }}",
		"{{ .buffer }}":                        "lacks {{ .id }}",
		"{{ .id }":                             "key:1",
		"{{ .id }}{{ .json.x }}":               "none of the fields",
		"{{ .id }}{{ . }}":                     "none of the fields",
		"{{ .id }}{{ if .group }}x{{ end }}":   "none of the fields",
		"{{ .id | .buffer }}":                  "none of the fields",
		`{{ .id }}{{ define "x" }}y{{ end }}`:  "defines others",
		"/{{ .id }}":                           `stands ""`,
		"{{ .id }}/":                           `stands ""`,
		"./{{ .id }}":                          `stands "."`,
		"a\n{{ .id }}":                         "control character",
		"\xff{{ .id }}":                        "not UTF-8",
		strings.Repeat("x", 825) + "{{ .id }}": "keys by it may have 1025 bytes, and a store takes 1024",
		strings.Repeat("{{ .group }}/", 5) + "{{ .id }}": "keys by it may have 1205 bytes",
	} {
		_, err := objectkey.Compile(template)
		require.ErrorContains(t, err, want, template)
	}
}

// TestDifferentStaysDifferent: two groups never share a folder.
func TestDifferentStaysDifferent(t *testing.T) {
	t.Parallel()
	k, err := objectkey.Compile("{{ .group }}/{{ .id }}")
	require.NoError(t, err)
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.OneOf(rapid.String(), rapid.StringMatching(`[!./A-F0-9]{0,80}`))
		a, b := batch(), batch()
		a.Group, b.Group = value.Draw(t, "a"), value.Draw(t, "b")
		require.Equal(t, a.Group == b.Group, k.Key(a) == k.Key(b))
		require.LessOrEqual(t, len(k.Key(a)), objectkey.MaxBytes)
		require.Equal(t, 1, strings.Count(k.Key(a), "/"))
	})
}

// FuzzCompile: what is taken makes keys that name one object each.
func FuzzCompile(f *testing.F) {
	f.Add(objectkey.Default)
	f.Add("{{/* c */}}{{ .id }}{{- .group -}}")
	f.Fuzz(func(t *testing.T, template string) {
		k, err := objectkey.Compile(template)
		if err != nil {
			return
		}
		a, b := batch(), batch()
		b.ID = "another"
		require.NotEqual(t, k.Key(a), k.Key(b))
	})
}
