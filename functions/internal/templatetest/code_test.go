package templatetest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/functions/internal/lambdatest"
	"sluice/infra/awstest"
)

// TestEnvironment: what the functions read is what they are given.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	template := load(t)
	given := variablesOf(t, template, "ControlFunction")
	folders := []string{"functions/internal/cloud"}
	for _, folder := range functions {
		folders = append(folders, "functions/"+folder)
	}
	require.Equal(t, slices.Sorted(maps.Keys(given)), variables(t, folders...))
	for name, wanted := range map[string]any{
		"SLUICE_CONFIG":                "/var/task/sluice.yaml", // where Lambda unpacks what the build puts beside bootstrap
		"SLUICE_TABLE":                 object{"Ref": "Table"},
		"SLUICE_CHECK_QUEUE_URL":       object{"Ref": "CheckQueue"},
		"SLUICE_CHECK_QUEUE_ARN":       object{"Fn::GetAtt": "CheckQueue.Arn"},
		"SLUICE_DELIVER_QUEUE_URL":     object{"Ref": "DeliverQueue"},
		"SLUICE_DEAD_LETTER_QUEUE_URL": object{"Ref": "DeadLetterQueue"},
		"SLUICE_SCHEDULE_GROUP":        object{"Ref": "ScheduleGroup"},
		"SLUICE_SCHEDULE_ROLE_ARN":     object{"Fn::GetAtt": "ScheduleRole.Arn"},
		"SLUICE_SCHEDULER_THRESHOLD":   object{"Ref": "SchedulerThreshold"},
		"SLUICE_FLUSH_URL":             object{"Fn::Sub": "https://lambda.${AWS::Region}.${AWS::URLSuffix}/2015-03-31/functions/${FlushFunction}/invocations"},
		"SLUICE_LOG_LEVEL":             object{"Ref": "LogLevel"},
		"SLUICE_ENVIRONMENT":           object{"Ref": "AWS::StackName"}, // what alarms ask for metrics by
	} {
		require.Equal(t, wanted, given[name], name)
	}
	for name := range functions { // no other has variables of its own
		_, own := properties(t, template, name)["Environment"]
		require.Equal(t, name == "ControlFunction", own, name)
	}
}

// variablesOf are the variables that a function is given.
func variablesOf(t *testing.T, template object, function string) object {
	t.Helper()
	given := maps.Clone(within[object](t, template, "Globals", "Function", "Environment", "Variables"))
	if own, ok := properties(t, template, function)["Environment"]; ok {
		maps.Copy(given, within[object](t, own, "Variables"))
	}
	return given
}

// variables are the names of the project's environment variables that stand
// in the code of folders, tests aside.
func variables(t *testing.T, folders ...string) []string {
	t.Helper()
	name := regexp.MustCompile(`^SLUICE_[A-Z_]+$`)
	found := make(map[string]bool)
	for _, folder := range folders {
		files := 0
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			files++
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
					if s, err := strconv.Unquote(lit.Value); err == nil && name.MatchString(s) {
						found[s] = true
					}
				}
				return true
			})
			return nil
		})
		require.NoError(t, err)
		require.Positive(t, files, folder)
	}
	return slices.Sorted(maps.Keys(found))
}

// TestEntryPoints: each function's build target is there, and builds the entry
// point of its name as it is to be built.
func TestEntryPoints(t *testing.T) {
	t.Parallel()
	template := load(t)
	require.Equal(t, slices.Sorted(maps.Keys(functions)), resources(t, template, "AWS::Serverless::Function"))
	require.Equal(t, ".", at(t, template, "Globals", "Function", "CodeUri"), "where the Makefile is")
	require.Equal(t, "bootstrap", at(t, template, "Globals", "Function", "Handler"))
	for name, folder := range functions {
		require.Equal(t, "makefile", at(t, template, "Resources", name, "Metadata", "BuildMethod"), name)
		require.FileExists(t, filepath.Join(root, "functions", folder, "main.go"))
		recipe := strings.ReplaceAll(dryRun(t, "build-"+name, "ARTIFACTS_DIR=/out", "CONFIG=sluice.yaml"), "\\\n", " ")
		for _, part := range []string{
			"CGO_ENABLED=0", "GOOS=linux", "-tags " + lambdatest.Tags(folder) + " ", "-trimpath", `-ldflags "-s -w"`,
			`-o "/out/bootstrap" ./functions/` + folder + "\n", `cp sluice.yaml "/out/sluice.yaml"`,
		} {
			require.Contains(t, recipe, part, name)
		}
	}
}

// TestArchitecture: what is built is what the environment says it runs on.
func TestArchitecture(t *testing.T) {
	t.Parallel()
	for env, c := range environments(t) {
		goarch := map[string]string{"arm64": "arm64", "x86_64": "amd64"}[c.parameters["Architecture"]]
		require.Contains(t, dryRun(t, "build-IngestFunction", "ARTIFACTS_DIR=/out", "ENV="+env), " GOARCH="+goarch+" ")
	}
}

// dryRun is what make would do.
func dryRun(t *testing.T, arguments ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "make", append([]string{"--no-print-directory", "-n"}, arguments...)...)
	command.Dir, command.Env = root, []string{"PATH=" + os.Getenv("PATH")} // not the flags of a make that runs this test
	out, err := command.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

// TestKeySchema: the table is the one that the store is tested on.
func TestKeySchema(t *testing.T) {
	t.Parallel()
	schema := awstest.TableSchema()
	table := properties(t, load(t), "Table")

	types := make(map[string]string)
	for _, a := range within[list](t, table, "AttributeDefinitions") {
		types[within[string](t, a, "AttributeName")] = within[string](t, a, "AttributeType")
	}
	wanted := make(map[string]string)
	for _, k := range schema.Attributes() {
		wanted[k.Name] = k.Type
	}
	require.Equal(t, wanted, types)

	require.Equal(t, keys(schema.Hash, schema.Range), at(t, table, "KeySchema"))
	require.Equal(t, object{"AttributeName": schema.Expires, "Enabled": true}, at(t, table, "TimeToLiveSpecification"))
	indexes := within[list](t, table, "GlobalSecondaryIndexes")
	require.Len(t, indexes, len(schema.Indexes))
	for i, index := range schema.Indexes {
		include := make(list, len(index.Include))
		for k := range index.Include {
			include[k] = index.Include[k]
		}
		require.Equal(t, object{
			"IndexName": index.Name, "KeySchema": keys(index.Hash, index.Range),
			"Projection": object{"ProjectionType": "INCLUDE", "NonKeyAttributes": include},
		}, indexes[i])
	}
}

func keys(hash, rng awstest.Key) list {
	return list{
		object{"AttributeName": hash.Name, "KeyType": "HASH"},
		object{"AttributeName": rng.Name, "KeyType": "RANGE"},
	}
}
