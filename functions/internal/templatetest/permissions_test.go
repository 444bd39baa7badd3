package templatetest

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/infra/dynamo"
	"sluice/infra/scheduler"
	"sluice/infra/sqs"
	"sluice/infra/ssm"
)

// permission is an action on a resource, as the template writes it.
type permission struct{ action, resource string }

const (
	table       = "Table"
	byCheck     = "${Table.Arn}/index/byCheck"
	byClaim     = "${Table.Arn}/index/byClaim"
	checks      = "CheckQueue"
	deliveries  = "DeliverQueue"
	deadLetters = "DeadLetterQueue"
	replays     = "ReplayQueue"
	schedules   = "arn:${AWS::Partition}:scheduler:${AWS::Region}:${AWS::AccountId}:schedule/${ScheduleGroup}/*"
	account     = "${AWS::Region}:${AWS::AccountId}"
	parameters  = "arn:${AWS::Partition}:ssm:" + account + ":parameter/${SecretsPrefix}/*"
	references  = "arn:${AWS::Partition}:ssm:" + account + ":parameter/aws/reference/secretsmanager/${SecretsPrefix}/*"
	secrets     = "arn:${AWS::Partition}:secretsmanager:" + account + ":secret:${SecretsPrefix}/*"
)

// uses says what each function may do, and what in the code needs it.
var uses = map[string]map[permission]string{
	"IngestFunction": {
		{"dynamodb:UpdateItem", table}:          "Store.Append numbers",
		{"dynamodb:PutItem", table}:             "Store.Append writes segments",
		{"dynamodb:GetItem", table}:             "Store.Append reads sizes and tickets, and whether a put whose answer was lost has been done",
		{"sqs:SendMessage", checks}:             "Timer.Arm, near",
		{"sqs:SendMessage", deliveries}:         "Queue.Hand, for what has reached maxItems or maxBytes",
		{"sqs:SendMessage", deadLetters}:        "DeadLetterSink.Put, for what can never be delivered",
		{"scheduler:CreateSchedule", schedules}: "Timer.Arm, far",
		{"iam:PassRole", "ScheduleRole"}:        "Timer.Arm, far: the role that the schedule acts as",
	},
	"ReceiveFunction": {
		{"dynamodb:UpdateItem", table}:          "Store.Append numbers",
		{"dynamodb:PutItem", table}:             "Store.Append writes segments",
		{"dynamodb:GetItem", table}:             "Store.Append reads sizes and tickets, and whether a put whose answer was lost has been done",
		{"sqs:SendMessage", checks}:             "Timer.Arm, near",
		{"sqs:SendMessage", deliveries}:         "Queue.Hand, for what has reached maxItems or maxBytes",
		{"sqs:SendMessage", deadLetters}:        "DeadLetterSink.Put, for what can never be delivered",
		{"scheduler:CreateSchedule", schedules}: "Timer.Arm, far",
		{"iam:PassRole", "ScheduleRole"}:        "Timer.Arm, far: the role that the schedule acts as",
	},
	"CheckFunction": {
		{"dynamodb:GetItem", table}:             "Store.Group, and Store.Update after a lost race",
		{"dynamodb:UpdateItem", table}:          "Store.Update",
		{"sqs:SendMessage", checks}:             "Timer.Arm, near",
		{"sqs:SendMessage", deliveries}:         "Queue.Hand",
		{"scheduler:CreateSchedule", schedules}: "Timer.Arm, far",
		{"iam:PassRole", "ScheduleRole"}:        "Timer.Arm, far: the role that the schedule acts as",
		{"sqs:ReceiveMessage", checks}:          "Lambda's poller",
		{"sqs:DeleteMessage", checks}:           "Lambda's poller",
		{"sqs:GetQueueAttributes", checks}:      "Lambda's poller",
	},
	"DeliverFunction": {
		{"dynamodb:GetItem", table}:             "Store.Group",
		{"dynamodb:UpdateItem", table}:          "Store.Update",
		{"dynamodb:Query", table}:               "Store.Items",
		{"dynamodb:PutItem", table}:             "Store.Items fences holes",
		{"sqs:SendMessage", checks}:             "Timer.Arm, near",
		{"sqs:SendMessage", deliveries}:         "Queue.Hand, for what a claim leaves behind",
		{"sqs:SendMessage", deadLetters}:        "DeadLetterSink.Put",
		{"scheduler:CreateSchedule", schedules}: "Timer.Arm, far",
		{"iam:PassRole", "ScheduleRole"}:        "Timer.Arm, far: the role that the schedule acts as",
		{"sqs:ReceiveMessage", deliveries}:      "Lambda's poller",
		{"sqs:DeleteMessage", deliveries}:       "Lambda's poller",
		{"sqs:GetQueueAttributes", deliveries}:  "Lambda's poller",
		{"sqs:ReceiveMessage", replays}:         "Lambda's poller",
		{"sqs:DeleteMessage", replays}:          "Lambda's poller",
		{"sqs:GetQueueAttributes", replays}:     "Lambda's poller",
	},
	"FlushFunction": {
		{"dynamodb:Query", byCheck}:             "Store.Due, Stats and Maintain",
		{"dynamodb:Query", byClaim}:             "Store.Due, Stats and Maintain",
		{"dynamodb:GetItem", table}:             "Store.Group, Store.Update reads first, and Coordinator.Change",
		{"dynamodb:BatchGetItem", table}:        "Store.Stats, Groups and Maintain",
		{"dynamodb:Query", table}:               "Store.Items; Store.Maintain looks at what waits for long",
		{"dynamodb:UpdateItem", table}:          "Store.Update; Store.Maintain notes sizes, and keeps what waits for long",
		{"dynamodb:PutItem", table}:             "Store.Items fences holes; Coordinator.Change keeps turns",
		{"sqs:SendMessage", checks}:             "Timer.Arm, near",
		{"sqs:SendMessage", deliveries}:         "Queue.Hand",
		{"sqs:SendMessage", deadLetters}:        "DeadLetterSink.Put",
		{"scheduler:CreateSchedule", schedules}: "Timer.Arm, far",
		{"iam:PassRole", "ScheduleRole"}:        "Timer.Arm, far: the role that the schedule acts as",
	},
	"ControlFunction": {
		{"dynamodb:GetItem", table}:                  "Store.Group, and Coordinator.Change",
		{"dynamodb:PutItem", table}:                  "Coordinator.Change, of breakers and rate limits: no other items",
		{"dynamodb:BatchGetItem", table}:             "Store.Groups and Store.Stats",
		{"dynamodb:Query", byCheck}:                  "Store.Groups and Store.Stats",
		{"dynamodb:Query", byClaim}:                  "Store.Groups and Store.Stats",
		{"sqs:ReceiveMessage", deadLetters}:          "DeadLetterQueue.List and Take",
		{"sqs:DeleteMessage", deadLetters}:           "DeadLetterQueue.Settle, done",
		{"sqs:ChangeMessageVisibility", deadLetters}: "DeadLetterQueue.Settle, back",
		{"sqs:GetQueueAttributes", deadLetters}:      "DeadLetterQueue.Count",
		{"lambda:InvokeFunction", "FlushFunction"}:   "flushes, which that function makes",
	},
}

// senders are the functions that send batches. Control replays dead letters.
var senders = []string{"DeliverFunction", "FlushFunction", "ControlFunction"}

// attached are the policies beside the roles, for functions that have use for
// them.
var attached = map[string]struct {
	functions   []string
	permissions map[permission]string
}{
	"SecretsPolicy": {
		[]string{"IngestFunction", "ReceiveFunction", "DeliverFunction", "FlushFunction", "ControlFunction"},
		map[permission]string{
			{"ssm:GetParameters", parameters}:          "ssm:NAME in sluice.yaml",
			{"ssm:GetParameters", references}:          "secretsmanager:NAME, which Parameter Store passes on",
			{"secretsmanager:GetSecretValue", secrets}: "with the caller's permission",
		},
	},
	"SecretsKeyPolicy": {
		[]string{"IngestFunction", "ReceiveFunction", "DeliverFunction", "FlushFunction", "ControlFunction"},
		map[permission]string{{"kms:Decrypt", "SecretsKeyArn"}: "secrets under the user's own key"},
	},
	"SourceQueuePolicy": {
		[]string{"ReceiveFunction"},
		map[permission]string{
			{"sqs:ReceiveMessage", "SourceQueueArn"}:     "Lambda's poller",
			{"sqs:DeleteMessage", "SourceQueueArn"}:      "Lambda's poller",
			{"sqs:GetQueueAttributes", "SourceQueueArn"}: "Lambda's poller",
		},
	},
	"DestinationQueuesPolicy": {
		senders, map[permission]string{{"sqs:SendMessage", "DestinationQueueArns"}: "Sender.Send, destinations of type sqs"},
	},
	"DestinationObjectsPolicy": {
		senders, map[permission]string{{"s3:PutObject", "DestinationObjectArns"}: "Sender.Send, destinations of type s3"},
	},
	"DestinationKeysPolicy": {
		senders,
		map[permission]string{
			{"kms:GenerateDataKey", "DestinationKeyArns"}: "queues and buckets under the user's own keys",
			{"kms:Decrypt", "DestinationKeyArns"}:         "queues, whose data key SQS uses again",
		},
	},
	"TracingPolicy": {
		[]string{"IngestFunction", "ReceiveFunction", "CheckFunction", "DeliverFunction", "FlushFunction", "ControlFunction"},
		map[permission]string{
			{"xray:PutTraceSegments", "*"}:    "Lambda, when traced",
			{"xray:PutTelemetryRecords", "*"}: "Lambda, when traced",
		},
	},
}

// TestPermissions: every function has a role of its own, and that allows what
// the code needs and nothing else.
func TestPermissions(t *testing.T) {
	t.Parallel()
	template := load(t)
	roles := make(map[string]string)
	for name, wanted := range uses {
		role := target(properties(t, template, name)["Role"])
		require.NotContains(t, roles, role, "%s shares its role", name)
		roles[role] = name
		logs := target(at(t, properties(t, template, name), "LoggingConfig", "LogGroup"))
		wanted = maps.Clone(wanted)
		wanted[permission{"logs:CreateLogStream", logs}] = "Lambda"
		wanted[permission{"logs:PutLogEvents", logs}] = "Lambda"
		policies := within[list](t, properties(t, template, role), "Policies")
		require.Len(t, policies, 1)
		require.Equal(t, sorted(wanted), allowed(t, at(t, policies[0], "PolicyDocument")), name)
		require.NotContains(t, properties(t, template, role), "ManagedPolicyArns")
	}
	require.Equal(t, slices.Sorted(maps.Keys(attached)), resources(t, template, "AWS::IAM::Policy"))
	for name, wanted := range attached {
		p := properties(t, template, name)
		require.Equal(t, sorted(wanted.permissions), allowed(t, p["PolicyDocument"]), name)
		var holders []string
		for _, role := range within[list](t, p, "Roles") {
			holders = append(holders, roles[target(role)])
		}
		require.ElementsMatch(t, wanted.functions, holders, name)
	}
}

func sorted(permissions map[permission]string) []permission {
	return slices.SortedFunc(maps.Keys(permissions), byAction)
}

func byAction(a, b permission) int {
	return strings.Compare(a.action+" "+a.resource, b.action+" "+b.resource)
}

// allowed are the permissions of a policy document.
func allowed(t *testing.T, document any) []permission {
	t.Helper()
	var all []permission
	for _, s := range within[list](t, document, "Statement") {
		require.Equal(t, "Allow", at(t, s, "Effect"))
		on, ok := at(t, s, "Resource").(list)
		if !ok {
			on = list{at(t, s, "Resource")}
		}
		for _, action := range words(t, at(t, s, "Action")) {
			for _, resource := range on {
				all = append(all, permission{action, arn(t, resource)})
			}
		}
	}
	slices.SortFunc(all, byAction)
	require.Equal(t, slices.Compact(slices.Clone(all)), all, "it says something twice")
	return all
}

// arn is a resource of a policy in short: the logical name, or the pattern.
func arn(t *testing.T, v any) string {
	t.Helper()
	if name := target(v); name != "" {
		return name
	}
	if m, ok := v.(object); ok {
		return within[string](t, m, "Fn::Sub")
	}
	s, ok := v.(string)
	require.True(t, ok, "%v", v)
	return s
}

// TestPassRole: a role is passed to Scheduler and to nobody else.
func TestPassRole(t *testing.T) {
	t.Parallel()
	template := load(t)
	passing := 0
	walk(template["Resources"], func(path string, v any) {
		s, ok := v.(list)
		if !ok || !strings.HasSuffix(path, ".Statement") {
			return
		}
		for _, statement := range s {
			if slices.Contains(words(t, at(t, statement, "Action")), "iam:PassRole") {
				passing++
				require.Equal(t, object{"StringEquals": object{"iam:PassedToService": "scheduler.amazonaws.com"}}, at(t, statement, "Condition"))
			}
		}
	})
	require.Equal(t, 5, passing)
}

// TestControlWrites: control writes what functions share, and nothing else.
func TestControlWrites(t *testing.T) {
	t.Parallel()
	template := load(t)
	policy := within[list](t, properties(t, template, "ControlRole"), "Policies")[0]
	for _, s := range within[list](t, policy, "PolicyDocument", "Statement") {
		if slices.Contains(words(t, at(t, s, "Action")), "dynamodb:PutItem") {
			require.Equal(t, "dynamodb:PutItem", at(t, s, "Action"))
			require.Equal(t, object{"ForAllValues:StringLike": object{"dynamodb:LeadingKeys": "c/=*"}}, at(t, s, "Condition"))
			return
		}
	}
	require.Fail(t, "it may not write")
}

// TestScheduleRoles: Scheduler acts for the stack's own group alone, and can
// do no more than wake what it is to wake.
func TestScheduleRoles(t *testing.T) {
	t.Parallel()
	template := load(t)
	for role, wanted := range map[string]permission{
		"ScheduleRole":      {"sqs:SendMessage", checks},
		"FlushScheduleRole": {"lambda:InvokeFunction", "FlushFunction"},
	} {
		p := properties(t, template, role)
		trust := within[list](t, p, "AssumeRolePolicyDocument", "Statement")
		require.Len(t, trust, 1)
		require.Equal(t, object{"Service": "scheduler.amazonaws.com"}, at(t, trust[0], "Principal"))
		require.Equal(t, object{"StringEquals": object{
			"aws:SourceAccount": object{"Ref": "AWS::AccountId"},
			"aws:SourceArn":     object{"Fn::GetAtt": "ScheduleGroup.Arn"},
		}}, at(t, trust[0], "Condition"))
		policies := within[list](t, p, "Policies")
		require.Len(t, policies, 1)
		require.Equal(t, []permission{wanted}, allowed(t, at(t, policies[0], "PolicyDocument")))
	}
}

// TestWildcards: in what CloudFormation gets, no action is a pattern, and the
// only resource that is everything belongs to actions that know no resources.
func TestWildcards(t *testing.T) {
	t.Parallel()
	template := translated(t)
	statements := 0
	for _, name := range slices.Concat(resources(t, template, "AWS::IAM::Role"), resources(t, template, "AWS::IAM::Policy")) {
		require.NotContains(t, properties(t, template, name), "ManagedPolicyArns", name)
		walk(properties(t, template, name), func(path string, v any) {
			member := path[strings.LastIndexByte(path, '.')+1:]
			if member == "NotAction" || member == "NotResource" {
				require.Fail(t, "allows what it does not name", name)
			}
			s, ok := v.(list)
			if !ok || member != "Statement" || strings.Contains(path, "AssumeRole") {
				return
			}
			for _, statement := range s {
				statements++
				for _, p := range allowed(t, object{"Statement": list{statement}}) {
					require.NotContains(t, p.action, "*", name)
					require.True(t, p.resource != "*" || strings.HasPrefix(p.action, "xray:Put"), "%s: %s on everything", name, p.action)
				}
			}
		})
	}
	require.Greater(t, statements, 20)
}

// granted maps methods of the clients to the action that they need, where that
// has another name.
var granted = map[string]string{
	"SendMessageBatch": "SendMessage", "DeleteMessageBatch": "DeleteMessage", "ChangeMessageVisibilityBatch": "ChangeMessageVisibility",
}

// TestActionsOfClients: what the adapters can call is what is allowed
// somewhere, and the other way round.
func TestActionsOfClients(t *testing.T) {
	t.Parallel()
	allowed := make(map[string]bool)
	collect := func(permissions map[permission]string) {
		for p, reason := range permissions {
			require.NotEmpty(t, reason, p)
			allowed[p.action] = true
		}
	}
	for _, permissions := range uses {
		collect(permissions)
	}
	collect(attached["SecretsPolicy"].permissions)
	for service, api := range map[string]reflect.Type{
		"dynamodb":  reflect.TypeFor[dynamo.API](),
		"sqs":       reflect.TypeFor[sqs.API](),
		"scheduler": reflect.TypeFor[scheduler.API](),
		"ssm":       reflect.TypeFor[ssm.API](),
	} {
		called := make(map[string]bool)
		for method := range api.Methods() {
			name := method.Name
			if action, ok := granted[name]; ok {
				name = action
			}
			called[service+":"+name] = true
		}
		for action := range allowed {
			require.True(t, called[action] || !strings.HasPrefix(action, service+":"), "nothing calls %s", action)
		}
		for action := range called {
			require.True(t, allowed[action], "nobody may %s", action)
		}
	}
}

// TestAccess: what everybody may call is what is meant to be open.
func TestAccess(t *testing.T) {
	t.Parallel()
	template := translated(t)
	open := make(map[string]object)
	for _, name := range resources(t, template, "AWS::Lambda::Permission") {
		p := properties(t, template, name)
		if p["Principal"] == "*" {
			require.Equal(t, "IngestUrlIsOpen", at(t, template, "Resources", name, "Condition"), name)
			open[within[string](t, p, "Action")] = p
		} else {
			require.Equal(t, "apigateway.amazonaws.com", p["Principal"], name)
			text, err := json.Marshal(p["SourceArn"])
			require.NoError(t, err)
			require.Contains(t, string(text), "__ApiId__", name)
		}
	}
	require.Len(t, open, 2)
	require.Equal(t, "NONE", open["lambda:InvokeFunctionUrl"]["FunctionUrlAuthType"])
	require.Equal(t, true, open["lambda:InvokeFunction"]["InvokedViaFunctionUrl"], "not to be invoked in any other way")
}
