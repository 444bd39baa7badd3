package templatetest

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTranslation: the translation that other tests read is this template's:
// SAM passes on what is CloudFormation's own, and most of a function. `make
// template` compares the rest, for which it needs the translator.
func TestTranslation(t *testing.T) {
	t.Parallel()
	template, got := load(t), translated(t)
	for _, part := range []string{"Parameters", "Conditions", "Outputs"} {
		require.JSONEq(t, text(t, template[part]), text(t, got[part]), part)
	}
	for _, name := range resources(t, template, "") {
		resource := within[object](t, template, "Resources", name)
		kind := within[string](t, resource, "Type")
		if !strings.HasPrefix(kind, "AWS::Serverless::") {
			require.JSONEq(t, text(t, resource), text(t, at(t, got, "Resources", name)), name)
		}
		if kind != "AWS::Serverless::Function" {
			continue
		}
		for _, property := range []string{"Description", "LoggingConfig", "MemorySize", "Role", "Timeout"} {
			require.JSONEq(t, text(t, at(t, resource, "Properties", property)), text(t, properties(t, got, name)[property]), name)
		}
		for _, property := range []string{"Architectures", "Handler", "Runtime"} {
			require.JSONEq(t, text(t, at(t, template, "Globals", "Function", property)), text(t, properties(t, got, name)[property]), name)
		}
		require.JSONEq(t, text(t, variablesOf(t, template, name)), text(t, at(t, properties(t, got, name), "Environment", "Variables")), name)
	}
}

// text is a value as JSON, in which !GetAtt has its long form.
func text(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(long(v))
	require.NoError(t, err)
	return string(b)
}

func long(v any) any {
	switch v := v.(type) {
	case object:
		m := make(object, len(v))
		for name, member := range v {
			if s, ok := member.(string); ok && name == "Fn::GetAtt" {
				resource, attribute, _ := strings.Cut(s, ".")
				member = list{resource, attribute}
			}
			m[name] = long(member)
		}
		return m
	case list:
		l := make(list, len(v))
		for i := range v {
			l[i] = long(v[i])
		}
		return l
	default:
		return v
	}
}
