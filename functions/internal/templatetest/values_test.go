package templatetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// enumerations are properties, as they are called wherever they stand, with
// what may be in them. The linter takes any word for most of them.
var enumerations = map[string][]any{
	"ApplicationLogLevel":        {"TRACE"}, // lines of metrics have no level, and pass as INFO
	"Architectures":              {"arm64", "x86_64"},
	"AttributeType":              {"S", "N"},
	"AuthType":                   {"AWS_IAM", "NONE", "off"}, // off: there is no URL
	"BillingMode":                {"PAY_PER_REQUEST"},
	"ComparisonOperator":         {"GreaterThanThreshold"},
	"DelaySeconds":               {0}, // messages have their own
	"ExtendedStatistic":          {"p99"},
	"FunctionResponseTypes":      {"ReportBatchItemFailures"},
	"FunctionUrlAuthType":        {"NONE"},
	"Handler":                    {"bootstrap"},
	"InvokeMode":                 {"BUFFERED"},
	"KeyType":                    {"HASH", "RANGE"},
	"LogFormat":                  {"JSON"},
	"MaximumMessageSize":         {float64(1 << 20)},               // as JSON has it
	"Mode":                       {"Active", "PassThrough", "OFF"}, // of tracing, and of a schedule's window
	"PointInTimeRecoveryEnabled": {true},
	"ProjectionType":             {"INCLUDE"},
	"RecursiveLoop":              {"Allow"},
	"RetentionInDays":            {1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653},
	"Runtime":                    {"provided.al2023"},
	"SSEEnabled":                 {true},
	"SSEType":                    {"KMS"},
	"SqsManagedSseEnabled":       {true},
	"Stat":                       {"Sum", "Maximum"},
	"Statistic":                  {"Sum", "Average", "Maximum"},
	"SystemLogLevel":             {"WARN"},         // without three lines an invocation
	"TreatMissingData":           {"notBreaching"}, // an idle environment has no metrics
}

// unwanted are properties that nothing may have, and why.
var unwanted = map[string]string{
	"ActionAfterCompletion":        "the sweep's schedule never completes; a deadline's is made in code",
	"FifoQueue":                    "has no delay of a message, and no fairness",
	"KmsMasterKeyId":               "Scheduler and the functions would need the key",
	"ManagedPolicyArns":            "what is in them is not ours to see",
	"ProvisionedConcurrencyConfig": "costs while idle",
	"ProvisionedThroughput":        "costs while idle",
	"ReservedConcurrentExecutions": "a new account has none to reserve",
	"SnapStart":                    "is not for this runtime",
}

// TestEnumerations goes through every property of the translated template.
func TestEnumerations(t *testing.T) {
	t.Parallel()
	template := translated(t)
	met := make(map[string]bool)
	for _, resource := range resources(t, template, "") {
		walk(properties(t, template, resource), func(path string, v any) {
			name := path[strings.LastIndexByte(path, '.')+1:]
			require.Empty(t, unwanted[name], "%s%s", resource, path)
			allowed, ok := enumerations[name]
			if !ok {
				return
			}
			met[name] = true
			for _, value := range values(t, template, v) {
				require.True(t, slices.ContainsFunc(allowed, func(a any) bool { return fmt.Sprint(a) == fmt.Sprint(value) }),
					"%s%s is %v, not one of %v", resource, path, value, allowed)
			}
		})
	}
	for name := range enumerations {
		require.True(t, met[name], "nothing has %s", name)
	}
}

// walk calls fn for every member of every mapping in v, with its path.
func walk(v any, fn func(path string, v any)) { walkFrom("", v, fn) }

func walkFrom(path string, v any, fn func(string, any)) {
	switch v := v.(type) {
	case object:
		for name, member := range v {
			fn(path+"."+name, member)
			walkFrom(path+"."+name, member, fn)
		}
	case list:
		for i := range v {
			walkFrom(fmt.Sprintf("%s[%d]", path, i), v[i], fn)
		}
	}
}

// TestNames: nothing has a name that a second stack of the account would have
// too.
func TestNames(t *testing.T) {
	t.Parallel()
	template := translated(t)
	physical := []string{
		"AlarmName", "DashboardName", "DBName", "FunctionName", "GroupName", "LogGroupName", "Name", "QueueName", "RoleName", "TableName",
	}
	unique := map[string]bool{ // by the stack that they hold, or lie in
		"AWS::Logs::LogGroup LogGroupName":             true,
		"AWS::Scheduler::Schedule Name":                true, // within the stack's own group, which GroupName is
		"AWS::Scheduler::Schedule GroupName":           true,
		"AWS::Lambda::Permission FunctionName":         true, // all these refer to a function
		"AWS::Lambda::Url FunctionName":                true,
		"AWS::Lambda::EventSourceMapping FunctionName": true,
		"AWS::Lambda::EventInvokeConfig FunctionName":  true,
	}
	for _, name := range resources(t, template, "") {
		kind := within[string](t, template, "Resources", name, "Type")
		for _, property := range physical {
			if v, ok := at(t, template, "Resources", name, "Properties").(object)[property]; ok && !unique[kind+" "+property] {
				require.Failf(t, "a name", "%s has the %s %v", name, property, v)
			}
		}
		switch kind {
		case "AWS::Logs::LogGroup":
			require.Contains(t, within[string](t, properties(t, template, name), "LogGroupName", "Fn::Sub"), "/${AWS::StackName}/", name)
		case "AWS::Scheduler::Schedule":
			require.Equal(t, "ScheduleGroup", target(properties(t, template, name)["GroupName"]), name)
		}
	}
}

// TestData: whatever holds accepted events survives its stack and its own
// replacement; a stack that could not be created leaves nothing behind. The
// rest says that it goes.
func TestData(t *testing.T) {
	t.Parallel()
	template := load(t)
	keep := map[string]bool{"Table": true, "DeadLetterQueue": true, "ReplayQueue": true}
	for _, kind := range []string{"AWS::DynamoDB::Table", "AWS::SQS::Queue", "AWS::Logs::LogGroup"} {
		for _, name := range resources(t, template, kind) {
			deletion, replacement := "Delete", "Delete"
			if keep[name] {
				deletion, replacement = "RetainExceptOnCreate", "Retain"
			}
			require.Equal(t, deletion, at(t, template, "Resources", name, "DeletionPolicy"), name)
			require.Equal(t, replacement, at(t, template, "Resources", name, "UpdateReplacePolicy"), name)
		}
	}
	require.Equal(t, object{"Ref": "TableProtection"}, properties(t, template, "Table")["DeletionProtectionEnabled"])
	require.Equal(t, "true", at(t, template, "Parameters", "TableProtection", "Default"))
	redrive := within[object](t, properties(t, template, "ReplayQueue"), "RedrivePolicy")
	require.Equal(t, "DeadLetterQueue", target(redrive["deadLetterTargetArn"]), "SQS redrives only what is some queue's dead-letter queue")
}

// TestParameters: each says what it is, and in which bounds.
func TestParameters(t *testing.T) {
	t.Parallel()
	for name, p := range within[object](t, load(t), "Parameters") {
		require.NotEmpty(t, within[string](t, p, "Description"), name)
		require.Contains(t, p, "Default", name)
		m, _ := p.(object)
		_, listed := m["AllowedValues"]
		_, pattern := m["AllowedPattern"]
		_, least := m["MinValue"]
		_, most := m["MaxValue"]
		require.True(t, listed || pattern || least && most, "%s has no bounds", name)
	}
}

// TestOutputs: what a user needs to go on.
func TestOutputs(t *testing.T) {
	t.Parallel()
	outputs := within[object](t, load(t), "Outputs")
	for _, name := range []string{
		"ApiUrl", "IngestUrl", "TableName", "CheckQueueUrl", "DeliverQueueUrl", "DeadLetterQueueUrl", "DeadLetterQueueArn",
		"ReplayQueueUrl", "ReplayQueueArn", "IngestFunctionName", "CheckFunctionName", "DeliverFunctionName",
		"FlushFunctionName", "DashboardUrl",
	} {
		require.NotEmpty(t, within[string](t, outputs, name, "Description"), name)
	}
}

// TestLogs: every function logs into a group that the stack owns and that
// forgets; its metrics pass whatever the level of its logs, as lines in the
// Embedded Metric Format have none.
func TestLogs(t *testing.T) {
	t.Parallel()
	template := load(t)
	seen := make(map[string]bool)
	for name, folder := range functions {
		logging := within[object](t, properties(t, template, name), "LoggingConfig")
		group := target(logging["LogGroup"])
		require.False(t, seen[group], "%s shares its log group", name)
		seen[group] = true
		p := properties(t, template, group)
		require.Equal(t, object{"Fn::Sub": "/sluice/${AWS::StackName}/" + folder}, p["LogGroupName"], "make logs reads them by name")
		require.Equal(t, object{"Ref": "LogRetention"}, p["RetentionInDays"])
	}
}
