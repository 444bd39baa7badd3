package cloud

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	scheduling "github.com/aws/aws-sdk-go-v2/service/scheduler/types"
	vendor "github.com/aws/aws-sdk-go-v2/service/sqs"
	queueing "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/functions/internal/cloud/secrets"
)

// service is an AWS service that answers all calls alike, after so many faults.
type service struct {
	*httptest.Server

	mu     sync.Mutex
	faults int
	calls  []string // the operations
	auth   string   // of the last call
}

func newService(t *testing.T, answer string, faults int) *service {
	t.Helper()
	s := &service{faults: faults}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.auth = r.Header.Get("Authorization") + " " + r.Header.Get("X-Amz-Security-Token")
		_, op, ok := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
		if !ok {
			op = r.Method + " " + r.URL.Path
		}
		s.calls = append(s.calls, op)
		if s.faults > 0 {
			s.faults--
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(s.Close)
	return s
}

// Each client calls its own endpoint, with the function's credentials.
func TestClients(t *testing.T) {
	t.Parallel()
	vars := variables(t, "")
	vars["AWS_SESSION_TOKEN"] = "session-token"
	services := map[string]*service{}
	for _, name := range []string{"DYNAMODB", "SQS", "SCHEDULER", "SSM"} {
		services[name] = newService(t, `{"Parameters": [{"Name": "/crm", "Value": "hush"}]}`, 0)
		vars["AWS_ENDPOINT_URL_"+name] = services[name].URL
	}
	e, err := ReadEnv(lookup(vars))
	require.NoError(t, err)
	c, ctx, name := newClients(&e, nil), t.Context(), "x"

	d, item := c.dynamoDB(), map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: "x"}}
	_, err = d.GetItem(ctx, &dynamodb.GetItemInput{TableName: &name, Key: item})
	require.NoError(t, err)
	_, err = d.PutItem(ctx, &dynamodb.PutItemInput{TableName: &name, Item: item})
	require.NoError(t, err)
	_, err = d.UpdateItem(ctx, &dynamodb.UpdateItemInput{TableName: &name, Key: item})
	require.NoError(t, err)
	_, err = d.Query(ctx, &dynamodb.QueryInput{TableName: &name})
	require.NoError(t, err)
	_, err = d.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{
		"x": {Keys: []map[string]types.AttributeValue{item}},
	}})
	require.NoError(t, err)
	require.Equal(t, []string{"GetItem", "PutItem", "UpdateItem", "Query", "BatchGetItem"}, services["DYNAMODB"].calls)

	q := c.sqs()
	_, err = q.DeleteMessageBatch(ctx, &vendor.DeleteMessageBatchInput{QueueUrl: &name, Entries: []queueing.DeleteMessageBatchRequestEntry{}})
	require.NoError(t, err)
	_, err = q.ChangeMessageVisibilityBatch(ctx, &vendor.ChangeMessageVisibilityBatchInput{QueueUrl: &name, Entries: []queueing.ChangeMessageVisibilityBatchRequestEntry{}})
	require.NoError(t, err)
	_, err = q.ReceiveMessage(ctx, &vendor.ReceiveMessageInput{QueueUrl: &name})
	require.NoError(t, err)
	_, err = q.GetQueueAttributes(ctx, &vendor.GetQueueAttributesInput{QueueUrl: &name})
	require.NoError(t, err)
	_, err = q.SendMessageBatch(ctx, &vendor.SendMessageBatchInput{QueueUrl: &name, Entries: []queueing.SendMessageBatchRequestEntry{}})
	require.NoError(t, err)
	require.Equal(t, []string{"DeleteMessageBatch", "ChangeMessageVisibilityBatch", "ReceiveMessage", "GetQueueAttributes", "SendMessageBatch"}, services["SQS"].calls)

	_, err = c.scheduler().CreateSchedule(ctx, schedule(name))
	require.NoError(t, err)
	require.Equal(t, []string{"POST /schedules/x"}, services["SCHEDULER"].calls)

	source, schemes, err := secrets.Fetch(ctx, c.parameterStore(), &core.Config{Destinations: []core.Destination{{Name: "crm", Secrets: []core.Secret{"ssm:/crm"}}}})
	require.NoError(t, err)
	require.Equal(t, []string{"ssm", "secretsmanager"}, schemes)
	value, fault := source("ssm:/crm")
	require.Equal(t, core.Fault{}, fault)
	require.Equal(t, "hush", value)
	require.Equal(t, []string{"GetParameters"}, services["SSM"].calls)

	for name, s := range services {
		require.Contains(t, s.auth, "Credential=key/", name)
		require.Contains(t, s.auth, "/eu-central-1/", name)
		require.Contains(t, s.auth, "session-token", name)
	}
}

// A call that fails is made again, but not for ever.
func TestClientsTryAgain(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name          string
		faults, calls int
		ok            bool
	}{
		{"a fault", 1, 2, true},
		{"down", 100, attempts, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newService(t, "{}", tt.faults)
			vars := variables(t, "")
			vars["AWS_ENDPOINT_URL"] = s.URL
			e, err := ReadEnv(lookup(vars))
			require.NoError(t, err)
			url := "https://sqs.eu-central-1.amazonaws.com/1/q"
			_, err = newClients(&e, nil).sqs().GetQueueAttributes(t.Context(), &vendor.GetQueueAttributesInput{QueueUrl: &url})
			require.Equal(t, tt.ok, err == nil, err)
			require.Len(t, s.calls, tt.calls)
		})
	}
}

// schedule is a request that is no more than complete.
func schedule(name string) *scheduler.CreateScheduleInput {
	return &scheduler.CreateScheduleInput{
		Name: &name, ScheduleExpression: &name,
		FlexibleTimeWindow: &scheduling.FlexibleTimeWindow{Mode: scheduling.FlexibleTimeWindowModeOff},
		Target:             &scheduling.Target{Arn: &name, RoleArn: &name},
	}
}
