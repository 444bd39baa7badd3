package templatetest

import (
	"context"
	"encoding/json"
	"flag"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"sluice/functions/internal/cloud"
	"sluice/functions/internal/lambdatest"
	"sluice/infra/awstest"
)

var update = flag.Bool("update", false, "write the golden answers of events/")

// handler makes a Handler of a function that cloud has made.
func handler[In, Out any](t *testing.T, handle func(context.Context, In) (Out, error), err error) lambdatest.Handler {
	t.Helper()
	require.NoError(t, err)
	return lambdatest.Handle(handle)
}

// actions are the calls that a function has made, by the actions that they need.
type actions struct {
	mu    sync.Mutex
	taken map[string]bool
}

// through is a stand-in's address by way of a proxy that notes what is called.
func (a *actions) through(t *testing.T, service, standin string) string {
	t.Helper()
	upstream, err := url.Parse(standin)
	require.NoError(t, err)
	proxy := httputil.NewSingleHostReverseProxy(upstream)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		target := r.Header.Get("X-Amz-Target")
		name := target[strings.LastIndexByte(target, '.')+1:]
		if action, ok := granted[name]; ok {
			name = action
		}
		a.mu.Lock()
		a.taken[service+":"+name] = true
		a.mu.Unlock()
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// start makes a function as its main does, by the configuration of events/, on
// an empty table and empty queues.
func start(t *testing.T, function string, a *actions) lambdatest.Handler {
	t.Helper()
	client := awstest.SQS(t)
	checks, letters := awstest.Queue(t, client, nil), awstest.Queue(t, client, nil)
	env := map[string]string{
		"SLUICE_FLUSH_URL":             "http://127.0.0.1:0",
		"SLUICE_CONFIG":                filepath.Join(root, "events", "sluice.yaml"),
		"SLUICE_TABLE":                 awstest.Table(t, awstest.DynamoDB(t)),
		"SLUICE_CHECK_QUEUE_URL":       checks.URL,
		"SLUICE_CHECK_QUEUE_ARN":       checks.ARN,
		"SLUICE_DELIVER_QUEUE_URL":     "https://sqs.eu-central-1.amazonaws.com/123456789012/sluice-dev-DeliverQueue-1A2B3C4D5E6F",
		"SLUICE_DEAD_LETTER_QUEUE_URL": letters.URL,
		"SLUICE_SCHEDULE_GROUP":        "sluice-dev-ScheduleGroup-1A2B3C4D5E6F",
		"SLUICE_SCHEDULE_ROLE_ARN":     "arn:aws:iam::123456789012:role/sluice-dev-ScheduleRole-1A2B3C4D5E6F",
		"AWS_REGION":                   awstest.Region,
		"AWS_ACCESS_KEY_ID":            "local",
		"AWS_SECRET_ACCESS_KEY":        "local",
		"AWS_ENDPOINT_URL_DYNAMODB":    a.through(t, "dynamodb", awstest.DynamoDBURL(t)),
		"AWS_ENDPOINT_URL_SQS":         a.through(t, "sqs", awstest.SQSURL(t)),
		"AWS_ENDPOINT_URL":             "http://127.0.0.1:0", // of what is never called
		"ORDERS_TOKEN":                 "orders-token",
		"SLUICE_CONTROL_TOKEN":         "control-token",
	}
	ctx, p := t.Context(), cloud.Process{Stdout: t.Output(), Env: func(name string) (string, bool) {
		v, ok := env[name]
		return v, ok
	}}
	switch function {
	case "ingest":
		h, err := cloud.Ingest(ctx, p)
		return handler(t, h, err)
	case "receive":
		h, err := cloud.Receive(ctx, p)
		return handler(t, h, err)
	case "check":
		h, err := cloud.Check(ctx, p)
		return handler(t, h, err)
	case "deliver":
		h, err := cloud.Deliver(ctx, p)
		return handler(t, h, err)
	case "flush":
		h, err := cloud.Flush(ctx, p)
		return handler(t, h, err)
	default:
		h, err := cloud.Control(ctx, p)
		return handler(t, h, err)
	}
}

// TestEvents gives every event of events/ to its function, and compares the
// answer with the golden one beside it. On the way no function does what its
// role does not allow.
func TestEvents(t *testing.T) {
	t.Parallel()
	for resource, function := range functions {
		t.Run(function, func(t *testing.T) {
			t.Parallel()
			names := fixtures(t, function)
			require.NotEmpty(t, names)
			a := actions{taken: make(map[string]bool)}
			call := start(t, function, &a)
			for _, name := range names {
				t.Run(strings.TrimPrefix(name, function+"-"), func(t *testing.T) {
					got := call.Answer(t, read(t, filepath.Join("events", name+".json")))
					golden := filepath.Join("events", name+".golden.json")
					if *update {
						require.NoError(t, os.WriteFile(filepath.Join(root, golden), got, 0o644))
					}
					require.Equal(t, string(read(t, golden)), string(got))
				})
			}
			allowed := make(map[string]bool)
			for p := range uses[resource] {
				allowed[p.action] = true
			}
			require.NotEmpty(t, a.taken)
			for action := range a.taken {
				require.True(t, allowed[action], "it needs %s", action)
			}
		})
	}
}

// fixtures are the names of a function's events, good and bad.
func fixtures(t *testing.T, function string) []string {
	t.Helper()
	var names []string
	for _, name := range eventFiles(t) {
		if strings.HasPrefix(filepath.Base(name), function+"-") {
			names = append(names, name)
		}
	}
	return names
}

// eventFiles are the names of all events, without their endings.
func eventFiles(t *testing.T) []string {
	t.Helper()
	dir := filepath.Join(root, "events")
	var names []string
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		name, ok := strings.CutSuffix(path, ".json")
		if err != nil || !ok || strings.HasSuffix(name, ".golden") || d.Name() == "env.json" {
			return err
		}
		name, err = filepath.Rel(dir, name)
		names = append(names, name)
		return err
	}))
	return names
}

// TestEventFiles: every event belongs to a function, and every golden answer
// to an event.
func TestEventFiles(t *testing.T) {
	t.Parallel()
	all := make(map[string]bool)
	for _, function := range functions {
		for _, name := range fixtures(t, function) {
			all[name] = true
			require.FileExists(t, filepath.Join(root, "events", name+".golden.json"))
		}
	}
	require.Len(t, eventFiles(t), len(all))
	goldens, err := filepath.Glob(filepath.Join(root, "events", "*.golden.json"))
	require.NoError(t, err)
	bad, err := filepath.Glob(filepath.Join(root, "events", "bad", "*.golden.json"))
	require.NoError(t, err)
	require.Len(t, append(goldens, bad...), len(all))
}

// TestEventVariables: what `make invoke` sets is what functions read.
func TestEventVariables(t *testing.T) {
	t.Parallel()
	var env struct{ Parameters map[string]string }
	require.NoError(t, json.Unmarshal(read(t, "events/env.json"), &env))
	given := within[object](t, load(t), "Globals", "Function", "Environment", "Variables")
	require.NotEmpty(t, env.Parameters)
	for name := range env.Parameters {
		require.Contains(t, given, name)
	}
}
