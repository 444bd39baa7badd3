package templatetest

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/functions/internal/cloud"
	"sluice/infra/emf"
)

// stack is the value of the dimension that tells environments apart.
const stack = "${AWS::StackName}"

// metrics are the definitions by name.
func metrics() map[string]emf.Definition {
	all := make(map[string]emf.Definition)
	for _, d := range emf.Definitions() {
		all[d.Name] = d
	}
	return all
}

// TestAlarms: each watches a metric that exists, tells the topic when it goes
// off and when it is over, and stands in the runbook.
func TestAlarms(t *testing.T) {
	t.Parallel()
	template := load(t)
	runbook := string(read(t, "docs/runbook.md"))
	topic := list{object{"Fn::If": list{"HasAlarmTopic", object{"Ref": "AlarmTopicArn"}, object{"Ref": "AWS::NoValue"}}}}
	own := make(map[string]any)
	for _, name := range resources(t, template, "AWS::CloudWatch::Alarm") {
		p := properties(t, template, name)
		condition := "HasAlarms"
		switch name {
		case "IngestUrlServerErrors":
			condition = "HasIngestUrlAlarm"
		case "ReceiveErrors", "ReceiveThrottles":
			condition = "HasReceiveAlarms"
		}
		require.Equal(t, condition, at(t, template, "Resources", name, "Condition"), name)
		require.NotEmpty(t, p["AlarmDescription"], name)
		require.Equal(t, topic, p["AlarmActions"], name)
		require.Equal(t, topic, p["OKActions"], name)
		require.LessOrEqual(t, within[int](t, p, "DatapointsToAlarm"), within[int](t, p, "EvaluationPeriods"), name)
		require.Contains(t, runbook, "`"+name+"`", "the runbook does not say what to do")
		if p["Namespace"] != emf.Namespace {
			continue
		}
		own[name] = p["MetricName"]
		d, ok := metrics()[within[string](t, p, "MetricName")]
		require.True(t, ok && d.Rollup, "%s watches %v, which nobody writes for a whole environment", name, p["MetricName"])
		require.Equal(t, list{object{"Name": emf.Environment, "Value": object{"Ref": "AWS::StackName"}}}, p["Dimensions"], name)
	}
	require.Equal(t, map[string]any{
		"BackgroundFailures": "sluice_failures_total",
		"LateDeliveries":     "sluice_lateness_seconds",
		"LostItems":          "sluice_lost_items_total",
		"OverdueItems":       "sluice_oldest_seconds",
	}, own)
	require.Equal(t, "Sum", properties(t, template, "BackgroundFailures")["Statistic"])
	require.Equal(t, "p99", properties(t, template, "LateDeliveries")["ExtendedStatistic"])
	require.Equal(t, "Sum", properties(t, template, "LostItems")["Statistic"])
	require.Equal(t, "Maximum", properties(t, template, "OverdueItems")["Statistic"], "of all buffers")
}

// TestAlarmOfWhatWaits: no deadline sets it off, and what is measured the most
// seldom does not leave it without a value.
func TestAlarmOfWhatWaits(t *testing.T) {
	t.Parallel()
	template := load(t)
	p := properties(t, template, "OverdueItems")
	longest := time.Duration(max(core.MaxWaitRange.Max, core.IdleTimeoutRange.Max))
	require.Equal(t, object{"Ref": "OverdueAlarm"}, p["Threshold"])
	threshold := within[object](t, template, "Parameters", "OverdueAlarm")
	least := time.Duration(within[int](t, threshold, "MinValue")) * time.Second
	require.Equal(t, threshold["MinValue"], threshold["Default"])
	require.GreaterOrEqual(t, least, longest+5*time.Minute, "a batch before it may be sent for so long")
	require.LessOrEqual(t, least, 2*longest)
	rarest := time.Duration(max(core.FlushEveryRange.Max, core.WindowEveryRange.Max+core.WindowGraceRange.Max))
	require.GreaterOrEqual(t, time.Duration(within[int](t, threshold, "MaxValue"))*time.Second, rarest+10*time.Minute)
	period := time.Duration(within[int](t, p, "Period")) * time.Second
	back := time.Duration(within[int](t, p, "EvaluationPeriods")-1) * period // the newest may have just begun
	require.GreaterOrEqual(t, back, cloud.LongestRest)
	require.Equal(t, 1, p["DatapointsToAlarm"])
}

// TestAlarmOfURL: a URL's failures are a share of its requests, and there is
// no such alarm without a URL.
func TestAlarmOfURL(t *testing.T) {
	t.Parallel()
	template := load(t)
	require.Equal(t, object{"Fn::And": list{object{"Condition": "HasIngestUrl"}, object{"Condition": "HasAlarms"}}},
		at(t, template, "Conditions", "HasIngestUrlAlarm"))
	p := properties(t, template, "IngestUrlServerErrors")
	watched := make(map[string]string)
	for _, m := range within[list](t, p, "Metrics") {
		id := within[string](t, m, "Id")
		if expression, ok := m.(object)["Expression"]; ok {
			require.Equal(t, "FILL(failed, 0) / requests", expression)
			continue
		}
		metric := within[object](t, m, "MetricStat", "Metric")
		require.Equal(t, "AWS/Lambda", metric["Namespace"])
		require.Equal(t, list{object{"Name": "FunctionName", "Value": object{"Ref": "IngestFunction"}}}, metric["Dimensions"])
		require.Equal(t, "Sum", at(t, m, "MetricStat", "Stat"))
		watched[id] = within[string](t, metric, "MetricName")
	}
	require.Equal(t, map[string]string{"failed": "Url5xxCount", "requests": "UrlRequestCount"}, watched)
	require.Equal(t, properties(t, template, "ApiServerErrors")["Threshold"], p["Threshold"])
}

// TestRunbook: the words that it has people look for in logs are those that the
// functions write.
func TestRunbook(t *testing.T) {
	t.Parallel()
	runbook := string(read(t, "docs/runbook.md"))
	code := sources(t, "functions/internal/cloud") + sources(t, "functions/internal/edge") + sources(t, "infra/attemptlog") +
		sources(t, "infra/sqs") + sources(t, "core")
	for _, words := range []string{
		"the function cannot start", "the invocation is about to run out of time", "items were lost", "handedOver",
		"background failure", "a message failed", "arm a check", "arm a far check", "hand over a delivery", "put dead letters",
		"read a queue message", "work on a queue message",
	} {
		require.Contains(t, runbook, words)
		require.Contains(t, code, words)
	}
	outputs := within[object](t, load(t), "Outputs")
	for _, m := range regexp.MustCompile("output `(\\w+)`").FindAllStringSubmatch(runbook, -1) {
		require.Contains(t, outputs, m[1])
	}
	anchors := make(map[string]bool)
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(runbook, -1) {
		plain := regexp.MustCompile(`[^\w -]`).ReplaceAllString(strings.ToLower(m[1]), "")
		anchors[strings.ReplaceAll(plain, " ", "-")] = true
	}
	for _, m := range regexp.MustCompile(`\]\(#([\w-]+)\)`).FindAllStringSubmatch(runbook, -1) {
		require.True(t, anchors[m[1]], "there is no #%s", m[1])
	}
}

// sources is the text of a folder's Go files, tests aside.
func sources(t *testing.T, folder string) string {
	t.Helper()
	var all strings.Builder
	names, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
	require.NoError(t, err)
	for _, name := range names {
		if !strings.HasSuffix(name, "_test.go") {
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			all.Write(text)
		}
	}
	return all.String()
}

// TestAlarmsOfFunctions: each function has both of them.
func TestAlarmsOfFunctions(t *testing.T) {
	t.Parallel()
	template := load(t)
	for function := range functions {
		for _, metric := range []string{"Errors", "Throttles"} {
			p := properties(t, template, strings.TrimSuffix(function, "Function")+metric)
			require.Equal(t, "AWS/Lambda", p["Namespace"])
			require.Equal(t, metric, p["MetricName"])
			require.Equal(t, list{object{"Name": "FunctionName", "Value": object{"Ref": function}}}, p["Dimensions"])
		}
	}
}

// TestAlarmsOfTable: what is refused is counted for the table and for both of
// its indexes.
func TestAlarmsOfTable(t *testing.T) {
	t.Parallel()
	p := properties(t, load(t), "TableThrottles")
	watched := make(map[string]bool)
	sum := ""
	for _, m := range within[list](t, p, "Metrics") {
		id := within[string](t, m, "Id")
		if expression, ok := m.(object)["Expression"]; ok {
			sum, _ = expression.(string)
			continue
		}
		metric := within[object](t, m, "MetricStat", "Metric")
		index := ""
		for _, d := range within[list](t, metric, "Dimensions") {
			if at(t, d, "Name") == "GlobalSecondaryIndexName" {
				index = " " + within[string](t, d, "Value")
			}
		}
		watched[within[string](t, metric, "MetricName")+index] = true
		require.Equal(t, false, at(t, m, "ReturnData"), id)
	}
	require.Equal(t, []string{
		"ReadThrottleEvents", "ReadThrottleEvents byCheck", "ReadThrottleEvents byClaim",
		"WriteThrottleEvents", "WriteThrottleEvents byCheck", "WriteThrottleEvents byClaim",
	}, slices.Sorted(maps.Keys(watched)))
	require.Equal(t, 6, strings.Count(sum, "FILL("))
}

// TestDashboard: it is JSON, of things that exist.
func TestDashboard(t *testing.T) {
	t.Parallel()
	template := load(t)
	body := within[string](t, properties(t, template, "Overview"), "DashboardBody", "Fn::Sub")
	known := resources(t, template, "")
	for _, m := range regexp.MustCompile(`\$\{([^}]+)\}`).FindAllStringSubmatch(body, -1) {
		name, _, _ := strings.Cut(m[1], ".")
		require.True(t, strings.HasPrefix(name, "AWS::") || slices.Contains(known, name), "there is no %s", name)
	}
	var dashboard struct {
		Widgets []struct {
			X, Y, Width, Height int
			Properties          struct {
				Title   string
				Metrics [][]any
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(body), &dashboard))
	require.NotEmpty(t, dashboard.Widgets)
	shown := make(map[string]bool)
	for _, w := range dashboard.Widgets {
		require.LessOrEqual(t, w.X+w.Width, 24, w.Properties.Title)
		require.NotEmpty(t, w.Properties.Metrics, w.Properties.Title)
		for _, m := range w.Properties.Metrics {
			if name := ours(t, m); name != "" {
				shown[name] = true
			}
		}
	}
	for name := range metrics() {
		require.True(t, shown[name] || unseen[name], "the dashboard has no %s", name)
	}
}

// unseen are metrics that the dashboard leaves out.
var unseen = map[string]bool{
	"sluice_batch_items": true, "sluice_batch_bytes": true, // for tuning
	"sluice_delivery_seconds": true,                        // the destination's own business
	"sluice_pending_bytes":    true, "sluice_groups": true, // beside pending items
}

var search = regexp.MustCompile(`SEARCH\('\{Sluice,([\w,]+)\} MetricName="(\w+)" environment="([^"]+)"', '\w+', 60\)`)

// ours is the name of the project's own metric that a line of a widget shows, with
// the dimensions that it is written with.
func ours(t *testing.T, line []any) string {
	t.Helper()
	if m, ok := line[0].(object); ok {
		parts := search.FindStringSubmatch(within[string](t, m, "expression"))
		require.NotNil(t, parts, "%v", m)
		d, ok := metrics()[parts[2]]
		require.True(t, ok, parts[2])
		require.Equal(t, slices.Concat([]string{emf.Environment}, d.Labels), strings.Split(parts[1], ","), parts[2])
		require.Equal(t, stack, parts[3])
		return parts[2]
	}
	if line[0] != emf.Namespace {
		return ""
	}
	name, _ := line[1].(string)
	d, ok := metrics()[name]
	require.True(t, ok && d.Rollup, name)
	require.Equal(t, []any{emf.Environment, stack}, line[2:4])
	return name
}
