package awse2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"sluice/functions/internal/lambdatest"
	"sluice/functions/internal/scenario"
	"sluice/infra/awstest"
	"sluice/infra/scheduler/schedulertest"
)

// names are the functions, by their resources.
var names = map[string]string{
	"IngestFunction": "ingest", "ReceiveFunction": "receive", "CheckFunction": "check", "DeliverFunction": "deliver",
	"FlushFunction": "flush", "ControlFunction": "control",
}

// bootstraps is the folder of the bootstraps, built once for all tests.
var bootstraps string

func TestMain(m *testing.M) {
	var err error
	if bootstraps, err = os.MkdirTemp("", "awse2e-"); err != nil {
		panic(err)
	}
	for _, name := range names {
		if err := lambdatest.Build(context.Background(), "sluice/functions/"+name, filepath.Join(bootstraps, name)); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(bootstraps)
		os.Exit(code)
	}))
}

// stack is a deployment of the template of its own.
type stack struct {
	template  *template
	resources map[string]string // what a !Ref or !GetAtt of a resource is
	variables map[string]string // of every function
	services  map[string]string

	functions map[string]*lambdatest.Function // by name
	sources   []*lambdatest.Source
	front     *httptest.Server
	flushes   *httptest.Server // Lambda's own API, for the one function that others invoke
	schedules *schedulertest.Fake
	crashes   crashes
}

// concurrency is the most environments of each function: enough to overlap,
// and few enough for a small machine.
const concurrency = 4

// deploy makes everything that the template has. The configuration is the text
// of sluice.yaml.
func deploy(t testing.TB, config string) *stack {
	t.Helper()
	s := &stack{
		template: readTemplate(t),
		services: map[string]string{"dynamodb": awstest.DynamoDBURL(t), "sqs": awstest.SQSURL(t)},
	}
	s.crashes.done = make(map[string]bool)
	s.data(t)
	s.code(t, config)
	s.wire(t, awstest.SQS(t))
	t.Cleanup(func() {
		s.front.Close()
		s.flushes.Close()
		for _, source := range s.sources {
			source.Close()
		}
		s.schedules.Close()
		for _, f := range s.functions {
			f.Close()
		}
	})
	return s
}

// data makes table, queues and scheduler.
func (s *stack) data(t testing.TB) {
	t.Helper()
	client := awstest.SQS(t)
	s.resources = map[string]string{
		"Table": awstest.Table(t, awstest.DynamoDB(t)), "ScheduleGroup": "e2e",
		"ScheduleRole.Arn": "arn:aws:iam::123456789012:role/e2e", "AWS::StackName": "e2e",
	}
	// A queue comes after the one that its letters go to.
	for _, name := range []string{"CheckQueue", "DeliverQueue", "DeadLetterQueue", "ReplayQueue"} {
		var p queueProperties
		s.template.properties(t, name, &p)
		attributes := map[string]string{
			"VisibilityTimeout": fmt.Sprint(p.VisibilityTimeout), "MessageRetentionPeriod": fmt.Sprint(p.MessageRetentionPeriod),
		}
		if p.RedrivePolicy != nil {
			policy, err := json.Marshal(map[string]any{
				"deadLetterTargetArn": s.template.text(t, &p.RedrivePolicy.Target, s.resources),
				"maxReceiveCount":     p.RedrivePolicy.MaxReceiveCount,
			})
			require.NoError(t, err)
			attributes["RedrivePolicy"] = string(policy)
		}
		q := awstest.Queue(t, client, attributes)
		s.resources[name], s.resources[name+".Arn"] = q.URL, q.ARN
	}
	s.schedules = schedulertest.New(schedulertest.Options{Groups: []string{"e2e"}, Fire: schedulertest.ToSQS(client)})
	s.services["scheduler"] = schedulertest.Serve(t, s.schedules)
}

// code makes the functions.
func (s *stack) code(t testing.TB, config string) {
	t.Helper()
	root := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(root, "sluice.yaml"), []byte(config), 0o600))
	s.variables = map[string]string{scenario.TokenVariable: scenario.Token}
	for name, value := range s.template.Globals.Function.Environment.Variables {
		s.variables[name] = s.template.text(t, &value, s.resources)
	}
	require.Equal(t, "/var/task/sluice.yaml", s.variables["SLUICE_CONFIG"], "the root is elsewhere here")
	s.variables["SLUICE_CONFIG"] = filepath.Join(root, "sluice.yaml")
	s.flushes = httptest.NewServer(lambdatest.Invocable(func(ctx context.Context, payload []byte) ([]byte, error) {
		return s.functions["flush"].Invoke(ctx, payload)
	}))
	s.variables["SLUICE_FLUSH_URL"] = s.flushes.URL // there, the control function's alone
	s.functions = make(map[string]*lambdatest.Function)
	for resource, name := range names {
		var p functionProperties
		s.template.properties(t, resource, &p)
		s.functions[name] = lambdatest.New(lambdatest.Settings{
			Name: name, Bootstrap: filepath.Join(bootstraps, name), Root: root, Env: s.variables,
			Timeout: time.Duration(p.Timeout) * time.Second, Concurrency: concurrency,
			Services: s.services, Hook: s.crashes.fate,
		})
	}
}

// wire connects the functions to what invokes them.
func (s *stack) wire(t testing.TB, client *sqs.Client) {
	t.Helper()
	front := new(lambdatest.Front)
	for _, resource := range slices.Sorted(maps.Keys(names)) {
		var p functionProperties
		s.template.properties(t, resource, &p)
		for name, e := range p.Events {
			switch e.Type {
			case "HttpApi":
				front.Routes = append(front.Routes, lambdatest.Route{Key: e.key(), Function: s.functions[names[resource]]})
			case "SQS":
				queue := strings.TrimSuffix(e.Properties.Queue.Value, ".Arn")
				require.Equal(t, []string{"ReportBatchItemFailures"}, e.Properties.FunctionResponseTypes)
				s.sources = append(s.sources, lambdatest.Connect(lambdatest.Mapping{
					Client: client, QueueURL: s.resources[queue], QueueARN: s.resources[queue+".Arn"],
					Function:  s.functions[names[resource]],
					BatchSize: s.template.number(t, &e.Properties.BatchSize),
					Pollers:   min(concurrency, s.template.number(t, &e.Properties.ScalingConfig.MaximumConcurrency)),
				}))
			case "ScheduleV2":
				require.Equal(t, "FlushFunction", resource, name)
			default:
				require.Fail(t, "an event source of another kind", "%s %s: %s", resource, name, e.Type)
			}
		}
	}
	// The most specific route wins.
	slices.SortFunc(front.Routes, func(a, b lambdatest.Route) int { return specific(b.Key) - specific(a.Key) })
	require.Len(t, s.sources, 3)
	require.Len(t, front.Routes, 4)
	s.front = httptest.NewServer(front)
}

// poll makes a queue the event source of the function that takes events, as the
// parameter for it does.
func (s *stack) poll(t testing.TB, q awstest.QueueRef) *lambdatest.Source {
	t.Helper()
	var p mappingProperties
	s.template.properties(t, "SourceQueueMapping", &p)
	require.Equal(t, []string{"ReportBatchItemFailures"}, p.FunctionResponseTypes)
	source := lambdatest.Connect(lambdatest.Mapping{
		Client: awstest.SQS(t), QueueURL: q.URL, QueueARN: q.ARN, Function: s.functions[names[p.FunctionName.Value]],
		BatchSize: s.template.number(t, &p.BatchSize),
		Pollers:   min(concurrency, s.template.number(t, &p.ScalingConfig.MaximumConcurrency)),
	})
	s.sources = append(s.sources, source)
	return source
}

// specific ranks routes: one method before ANY, then the longer path.
func specific(key string) int {
	n := len(key)
	if !strings.HasPrefix(key, "ANY ") {
		n += 1000
	}
	return n
}

// flush does what the schedule does every minute.
func (s *stack) flush(ctx context.Context) ([]byte, error) {
	return s.functions["flush"].Invoke(ctx, lambdatest.Scheduled("e2e/flush", time.Now()))
}

// logs are the ends of all functions' logs, without the lines of metrics.
func (s *stack) logs() string {
	var all strings.Builder
	for _, name := range slices.Sorted(maps.Values(names)) {
		fmt.Fprintf(&all, "--- %s\n", name)
		var kept []string
		for line := range strings.Lines(s.functions[name].Logs()) {
			if !strings.Contains(line, `"_aws"`) {
				kept = append(kept, line)
			}
		}
		for _, line := range kept[max(0, len(kept)-30):] {
			all.WriteString(line)
		}
	}
	return all.String()
}
