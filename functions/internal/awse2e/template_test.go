package awse2e

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"
)

// template is what of template.yaml a deployment is made of.
type template struct {
	Parameters map[string]struct {
		Default string `yaml:"Default"`
	} `yaml:"Parameters"`
	Globals struct {
		Function struct {
			Environment struct {
				Variables map[string]yaml.Node `yaml:"Variables"`
			} `yaml:"Environment"`
		} `yaml:"Function"`
	} `yaml:"Globals"`
	Resources map[string]struct {
		Type       string    `yaml:"Type"`
		Properties yaml.Node `yaml:"Properties"`
	} `yaml:"Resources"`
}

// functionProperties are those of a function.
type functionProperties struct {
	Timeout    int                  `yaml:"Timeout"`
	MemorySize yaml.Node            `yaml:"MemorySize"`
	Events     map[string]eventSpec `yaml:"Events"`
}

type eventSpec struct {
	Type       string `yaml:"Type"`
	Properties struct {
		mappingProperties `yaml:",inline"` // SQS, as is the next

		Queue  yaml.Node `yaml:"Queue"`
		Method string    `yaml:"Method"` // HttpApi, as is the next
		Path   string    `yaml:"Path"`
	} `yaml:"Properties"`
}

// mappingProperties are those of a queue's mapping to a function.
type mappingProperties struct {
	FunctionName  yaml.Node `yaml:"FunctionName"`
	BatchSize     yaml.Node `yaml:"BatchSize"`
	ScalingConfig struct {
		MaximumConcurrency yaml.Node `yaml:"MaximumConcurrency"`
	} `yaml:"ScalingConfig"`
	FunctionResponseTypes []string `yaml:"FunctionResponseTypes"`
}

func (s *eventSpec) key() string { return s.Properties.Method + " " + s.Properties.Path }

// queueProperties are those of a queue.
type queueProperties struct {
	VisibilityTimeout      int `yaml:"VisibilityTimeout"`
	MessageRetentionPeriod int `yaml:"MessageRetentionPeriod"`
	RedrivePolicy          *struct {
		Target          yaml.Node `yaml:"deadLetterTargetArn"`
		MaxReceiveCount int       `yaml:"maxReceiveCount"`
	} `yaml:"RedrivePolicy"`
}

func readTemplate(t testing.TB) *template {
	t.Helper()
	text, err := os.ReadFile("../../../template.yaml")
	require.NoError(t, err)
	var s template
	require.NoError(t, yaml.Unmarshal(text, &s))
	return &s
}

// properties decodes a resource's properties.
func (s *template) properties(t testing.TB, name string, into any) {
	t.Helper()
	r, ok := s.Resources[name]
	require.True(t, ok, name)
	require.NoError(t, r.Properties.Decode(into), name)
}

// text is a scalar: itself, or the default of the parameter that it refers to.
// What refers to a resource is looked up in resources, by "Name" or "Name.Arn".
func (s *template) text(t testing.TB, n *yaml.Node, resources map[string]string) string {
	t.Helper()
	if !strings.HasPrefix(n.Tag, "!") || strings.HasPrefix(n.Tag, "!!") {
		return n.Value
	}
	if p, ok := s.Parameters[n.Value]; ok && n.Tag == "!Ref" {
		return p.Default
	}
	v, ok := resources[n.Value]
	require.True(t, ok, "%s %s", n.Tag, n.Value)
	return v
}

func (s *template) number(t testing.TB, n *yaml.Node) int {
	t.Helper()
	v, err := strconv.Atoi(s.text(t, n, nil))
	require.NoError(t, err)
	return v
}
