package emf_test

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"sluice/infra/emf"
)

// maxLine is the most bytes of a log event that every part of CloudWatch takes.
const maxLine = 256 << 10

// testingT is what tests, properties and fuzz targets have in common.
type testingT interface {
	require.TestingT
	Helper()
}

// schema compiles the rules for the form of a line.
func schema(t testingT) *jsonschema.Schema {
	t.Helper()
	f, err := os.Open("testdata/line.schema.json")
	require.NoError(t, err)
	defer f.Close()
	doc, err := jsonschema.UnmarshalJSON(f)
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource("line.schema.json", doc))
	s, err := c.Compile("line.schema.json")
	require.NoError(t, err)
	return s
}

// line is a line as CloudWatch reads it.
type line struct {
	root map[string]json.RawMessage
	meta struct {
		Timestamp         int64
		CloudWatchMetrics []struct {
			Namespace  string
			Dimensions [][]string
			Metrics    []struct{ Name, Unit string }
		}
	}
}

// values are a metric's values in the line.
func (l *line) values(t testingT, name string) []float64 {
	t.Helper()
	var values []float64
	if raw := l.root[name]; raw[0] == '[' {
		require.NoError(t, json.Unmarshal(raw, &values))
		return values
	}
	values = make([]float64, 1)
	require.NoError(t, json.Unmarshal(l.root[name], &values[0]))
	return values
}

// dimension is the value of a dimension in the line.
func (l *line) dimension(t testingT, name string) string {
	t.Helper()
	var value string
	require.NoErrorf(t, json.Unmarshal(l.root[name], &value), "the dimension %s", name)
	return value
}

// read reads what a flush wrote, and holds every line against the rules of the
// format: its form by the schema, and what refers to what here.
func read(t testingT, rules *jsonschema.Schema, written []byte) []line {
	t.Helper()
	var lines []line
	for text := range bytes.Lines(written) {
		require.LessOrEqual(t, len(text), maxLine)
		require.True(t, bytes.HasSuffix(text, []byte("}\n")), "a line ends")
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		require.NoError(t, err)
		require.NoErrorf(t, rules.Validate(doc), "%s", text)
		var l line
		require.NoError(t, json.Unmarshal(text, &l.root))
		require.NoError(t, json.Unmarshal(l.root["_aws"], &l.meta))
		checkReferences(t, &l)
		lines = append(lines, l)
	}
	return lines
}

func checkReferences(t testingT, l *line) {
	t.Helper()
	referred := map[string]bool{"_aws": true}
	metrics := 0
	for _, d := range l.meta.CloudWatchMetrics {
		for _, set := range d.Dimensions {
			for _, name := range set {
				require.NotEmpty(t, l.dimension(t, name))
				referred[name] = true
			}
		}
		for _, m := range d.Metrics {
			require.Falsef(t, referred[m.Name], "%s is defined once", m.Name)
			require.Contains(t, l.root, m.Name)
			for _, v := range l.values(t, m.Name) {
				require.False(t, math.IsNaN(v) || math.IsInf(v, 0))
			}
			referred[m.Name] = true
			metrics++
		}
	}
	require.Len(t, l.root, len(referred), "a line holds nothing that nobody refers to")
	require.LessOrEqual(t, metrics, 100)
}

// TestTheRulesFindFaults shows that what lines are held against is not empty.
func TestTheRulesFindFaults(t *testing.T) {
	t.Parallel()
	rules := schema(t)
	const good = `{"_aws":{"Timestamp":1700000000000,"CloudWatchMetrics":[{"Namespace":"Sluice","Dimensions":[["op"]],"Metrics":[{"Name":"n","Unit":"Count"}]}]},"n":1,"op":"arm"}`
	valid := func(text string) error {
		doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		require.NoError(t, err)
		return rules.Validate(doc)
	}
	require.NoError(t, valid(good))
	for name, change := range map[string][2]string{
		"no metadata":       {`"_aws"`, `"aws"`},
		"no namespace":      {`"Namespace":"Sluice",`, ``},
		"no dimension sets": {`[["op"]]`, `[]`},
		"a time in seconds": {`1700000000000`, `1700000000`},
		"an unknown unit":   {`"Count"`, `"Items"`},
		"no value":          {`"n":1`, `"n":[]`},
		"a nested value":    {`"n":1`, `"n":{"v":1}`},
		"too many values":   {`"n":1`, `"n":[` + strings.Repeat("1,", 100) + `1]`},
		"a blank dimension": {`"arm"`, `" "`},
		"a control code":    {`"arm"`, `"\u0007"`},
		"no ASCII":          {`"arm"`, `"ä"`},
		"a long dimension":  {`"arm"`, `"` + strings.Repeat("x", 1025) + `"`},
		"thirty-one dimensions": {`["op"]`, func() string {
			var names []string
			for i := range 31 {
				names = append(names, `"`+strings.Repeat("x", i+1)+`"`)
			}
			return "[" + strings.Join(names, ",") + "]"
		}()},
	} {
		require.Errorf(t, valid(strings.Replace(good, change[0], change[1], 1)), name)
	}
}

func TestDefinitions(t *testing.T) {
	t.Parallel()
	all := emf.Definitions()
	seen := map[string]bool{}
	for _, d := range all {
		require.Falsef(t, seen[d.Name], "%s is defined twice", d.Name)
		seen[d.Name] = true
		require.LessOrEqual(t, len(d.Labels), 4)
		for _, l := range d.Labels {
			require.NotContains(t, []string{"group", "key", "batch", "id", emf.Environment}, l)
		}
	}
	all[0].Labels[0] = "changed"
	require.NotEqual(t, "changed", emf.Definitions()[0].Labels[0])
}
