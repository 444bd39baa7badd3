package templatetest

import (
	"bufio"
	"bytes"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/core"
)

// environment is one of samconfig.toml.
type environment struct {
	settings   map[string]string // by section and name, such as "deploy.resolve_s3"
	parameters map[string]string
}

// environments reads samconfig.toml. Of TOML it knows what stands there: tables,
// strings, booleans, and arrays with one string a line.
func environments(t *testing.T) map[string]environment {
	t.Helper()
	var (
		table = regexp.MustCompile(`^\[(\w+)\.(\w+)\.parameters\]$`)
		value = regexp.MustCompile(`^(\w+) = (?:"(.*)"|(true|false))$`)
		begin = regexp.MustCompile(`^parameter_overrides = \[$`)
		entry = regexp.MustCompile(`^  "(\w+)=(?:''|(\S+))",$`)
	)
	all := make(map[string]environment)
	var at environment
	section, inside := "", false
	lines := bufio.NewScanner(bytes.NewReader(read(t, "samconfig.toml")))
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		where := fmt.Sprintf("samconfig.toml:%d: %s", n, line)
		switch m := table.FindStringSubmatch(line); {
		case line == "", strings.HasPrefix(line, "#"), line == "version = 0.1":
		case inside && line == "]":
			inside = false
		case inside:
			m := entry.FindStringSubmatch(line)
			require.NotNil(t, m, where)
			require.NotContains(t, at.parameters, m[1], where)
			at.parameters[m[1]] = m[2]
		case m != nil:
			if _, ok := all[m[1]]; !ok {
				all[m[1]] = environment{map[string]string{}, map[string]string{}}
			}
			at, section = all[m[1]], m[2]
		case begin.MatchString(line):
			require.Equal(t, "global", section, "every command is to know the parameters")
			inside = true
		default:
			m := value.FindStringSubmatch(line)
			require.NotNil(t, m, where)
			at.settings[section+"."+m[1]] = m[2] + m[3]
		}
	}
	require.NoError(t, lines.Err())
	return all
}

// TestSamconfig: an environment inherits nothing, so each has to have it all.
func TestSamconfig(t *testing.T) {
	t.Parallel()
	all := environments(t)
	require.Equal(t, []string{"dev", "prod", "staging"}, slices.Sorted(maps.Keys(all)))
	taken := make(map[string]string)
	for name, env := range all {
		require.Equal(t, map[string]string{
			"global.stack_name":              "sluice-" + name,
			"build.build_in_source":          "true", // nothing is copied, and Go's cache is used
			"deploy.capabilities":            "CAPABILITY_IAM",
			"deploy.resolve_s3":              "true",
			"deploy.s3_prefix":               "sluice-" + name,
			"deploy.confirm_changeset":       strconv.FormatBool(name == "prod"),
			"deploy.fail_on_empty_changeset": "false",
		}, env.settings, name)
		prefix := env.parameters["SecretsPrefix"]
		require.NotContains(t, taken, prefix, "%s can read the secrets of another environment", name)
		taken[prefix] = name
	}
	require.Equal(t, "true", all["prod"].parameters["TableProtection"])
	require.Equal(t, "on", all["prod"].parameters["Alarms"])
}

// TestSamconfigParameters: each environment sets every parameter, to a value
// that the template takes.
func TestSamconfigParameters(t *testing.T) {
	t.Parallel()
	parameters := within[object](t, load(t), "Parameters")
	for name, env := range environments(t) {
		require.Equal(t, slices.Sorted(maps.Keys(parameters)), slices.Sorted(maps.Keys(env.parameters)), name)
		for parameter, value := range env.parameters {
			require.NoError(t, accepts(t, within[object](t, parameters, parameter), value), "%s: %s", name, parameter)
		}
	}
}

// TestDefaults: the template takes its own defaults.
func TestDefaults(t *testing.T) {
	t.Parallel()
	for name, p := range within[object](t, load(t), "Parameters") {
		require.NoError(t, accepts(t, p, fmt.Sprint(at(t, p, "Default"))), name)
	}
}

// TestSourceQueue: only a queue's own ARN is one.
func TestSourceQueue(t *testing.T) {
	t.Parallel()
	p := within[object](t, load(t), "Parameters", core.QueueParameterAWS)
	for value, ok := range map[string]bool{
		"arn:aws:sqs:eu-west-1:123456789012:orders":               true,
		"arn:aws-cn:sqs:cn-north-1:123456789012:in_turn.fifo":     true,
		"arn:aws:sqs:eu-west-1:123456789012:*":                    false,
		"https://sqs.eu-west-1.amazonaws.com/123456789012/orders": false,
	} {
		require.Equal(t, ok, accepts(t, p, value) == nil, value)
	}
}

// TestDestinationParameters: they take what they are about, and no pattern that is
// wider than one bucket.
func TestDestinationParameters(t *testing.T) {
	t.Parallel()
	parameters := within[object](t, load(t), "Parameters")
	for name, values := range map[string]map[string]bool{
		"DestinationQueueArns": {
			"arn:aws:sqs:eu-west-1:123456789012:orders":                                                     true,
			"arn:aws:sqs:eu-west-1:123456789012:orders,arn:aws-cn:sqs:cn-north-1:123456789012:in_turn.fifo": true,
			"arn:aws:sqs:eu-west-1:123456789012:*":                                                          false,
			"https://sqs.eu-west-1.amazonaws.com/123456789012/orders":                                       false,
		},
		"DestinationObjectArns": {
			"arn:aws:s3:::archive/*":                                    true,
			"arn:aws:s3:::archive/orders/*,arn:aws-us-gov:s3:::a.b.c/*": true,
			"arn:aws:s3:::archive":                                      false, // the bucket is no object
			"arn:aws:s3:::*":                                            false,
			"arn:aws:s3:::archive*/x/*":                                 false,
		},
		"DestinationKeyArns": {
			"arn:aws:kms:eu-west-1:123456789012:key/0a1b-2c":  true,
			"arn:aws:kms:eu-west-1:123456789012:alias/orders": false, // IAM goes by keys
			"arn:aws:kms:eu-west-1:123456789012:key/*":        false,
		},
	} {
		for value, ok := range values {
			err := accepts(t, within[object](t, parameters, name), value)
			require.Equal(t, ok, err == nil, "%s: %s", name, value)
		}
	}
}

// accepts checks a value against a parameter's bounds.
func accepts(t *testing.T, parameter any, value string) error {
	t.Helper()
	p, ok := parameter.(object)
	require.True(t, ok)
	if listed, ok := p["AllowedValues"].(list); ok &&
		!slices.ContainsFunc(listed, func(v any) bool { return fmt.Sprint(v) == value }) {
		return fmt.Errorf("%q is not one of %v", value, listed)
	}
	entries := []string{value}
	if p["Type"] == "CommaDelimitedList" {
		entries = strings.Split(value, ",") // CloudFormation matches each
	}
	for _, entry := range entries {
		if pattern, ok := p["AllowedPattern"].(string); ok && !regexp.MustCompile("^(?:"+pattern+")$").MatchString(entry) {
			return fmt.Errorf("%q does not match %s", entry, pattern)
		}
	}
	if p["Type"] != "Number" {
		return nil
	}
	n, err := strconv.Atoi(value)
	if err != nil {
		return err
	}
	if least, ok := p["MinValue"].(int); ok && n < least {
		return fmt.Errorf("%d is below %d", n, least)
	}
	if most, ok := p["MaxValue"].(int); ok && n > most {
		return fmt.Errorf("%d is above %d", n, most)
	}
	return nil
}
