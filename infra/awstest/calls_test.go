package awstest

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/stretchr/testify/require"
)

func TestMeter(t *testing.T) {
	t.Parallel()
	var meter Meter
	client := DynamoDB(t, meter.Option)
	table := Table(t, client)
	meter.Reset()
	require.Zero(t, meter.Usage())

	large := key("a", "0")
	large["v"] = str(strings.Repeat("x", 1500))
	put(t, client, table, large)         // 2 units
	put(t, client, table, key("b", "0")) // 1
	get(t, client, table, key("a", "0")) // 1, consistent
	_, err := client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName: &table, Key: key("a", "0"), UpdateExpression: aws.String("ADD n :one"),
		ExpressionAttributeValues: item{":one": num("1")},
	}) // 2
	require.NoError(t, err)
	_, err = client.BatchWriteItem(t.Context(), &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{
		table: {{PutRequest: &types.PutRequest{Item: key("c", "0")}}, {PutRequest: &types.PutRequest{Item: key("d", "0")}}},
	}}) // 2
	require.NoError(t, err)
	batch, err := client.BatchGetItem(t.Context(), &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{
		table: {Keys: []item{key("c", "0"), key("d", "0")}},
	}}) // 2 halves
	require.NoError(t, err)
	require.Len(t, batch.Responses[table], 2)
	query := &dynamodb.QueryInput{
		TableName: &table, KeyConditionExpression: aws.String("pk = :pk"),
		ExpressionAttributeValues: item{":pk": str("a")},
	}
	_, err = client.Query(t.Context(), query) // half a unit
	require.NoError(t, err)
	require.Empty(t, query.ReturnConsumedCapacity, "the caller's request is his own")
	_, err = client.Scan(t.Context(), &dynamodb.ScanInput{TableName: &table}) // half a unit
	require.NoError(t, err)
	_, err = client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &table, Key: key("b", "0")}) // 1
	require.NoError(t, err)

	require.Equal(t, map[string]Usage{
		"PutItem":        {Requests: 2, Write: 3},
		"GetItem":        {Requests: 1, Read: 1},
		"UpdateItem":     {Requests: 1, Write: 2},
		"BatchWriteItem": {Requests: 1, Write: 2},
		"BatchGetItem":   {Requests: 1, Read: 1},
		"Query":          {Requests: 1, Read: 0.5},
		"Scan":           {Requests: 1, Read: 0.5},
		"DeleteItem":     {Requests: 1, Write: 1},
	}, meter.Operations())
	require.Equal(t, Usage{Requests: 9, Read: 3, Write: 8}, meter.Usage())
	require.Equal(t, Usage{Requests: 2, Write: 3}, meter.Of("PutItem"))
}

// TestMeterCountsWhatIsSent shows that attempts of the SDK count, and that what
// a fault keeps from being sent does not, in whichever order the options stand.
func TestMeterCountsWhatIsSent(t *testing.T) {
	t.Parallel()
	for name, order := range map[string]func([]Option){"meter first": func([]Option) {}, "faults first": slices.Reverse[[]Option]} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var meter Meter
			var faults Faults
			opts := []Option{meter.Option, faults.Option, Attempts(5)}
			order(opts)
			client := DynamoDB(t, opts...)
			table := Table(t, client)
			meter.Reset()
			faults.Set(func(_ context.Context, c Call) Fault {
				return []Fault{Unsent, Lost, Throttle, None}[c.Total-1]
			})
			put(t, client, table, key("a", "0"))
			require.Equal(t, 4, faults.Calls())
			require.Equal(t, Usage{Requests: 2, Write: 2}, meter.Usage())
			faults.Set(nil)
			_, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("none-such"), Item: key("a", "0")})
			require.Error(t, err)
			require.Equal(t, 1, meter.Of("PutItem").Failed)
		})
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		fault Fault
		kept  bool
		is    func(*testing.T, error)
	}{
		{"none", None, true, func(t *testing.T, err error) { require.NoError(t, err) }},
		{"unsent", Unsent, false, isBroken},
		{"lost", Lost, true, isBroken},
		{"throttle", Throttle, false, func(t *testing.T, err error) {
			var e *types.ProvisionedThroughputExceededException
			require.ErrorAs(t, err, &e)
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var faults Faults
			client := DynamoDB(t, faults.Option)
			table := Table(t, client)
			faults.Set(Nth("PutItem", 1, tt.fault))
			_, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: key("a", "0")})
			tt.is(t, err)
			require.Equal(t, tt.kept, len(get(t, client, table, key("a", "0"))) > 0)
			put(t, client, table, key("b", "0")) // only the first one
		})
	}
}

func isBroken(t *testing.T, err error) {
	t.Helper()
	var e *smithyhttp.RequestSendError
	require.ErrorAs(t, err, &e)
	require.True(t, e.ConnectionError())
}

func TestThrottledSQS(t *testing.T) {
	t.Parallel()
	var faults Faults
	client := SQS(t, faults.Option)
	q := Queue(t, client, nil)
	faults.Set(Nth("", 1, Throttle))
	_, err := client.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &q.URL, MessageBody: aws.String("x")})
	var e smithy.APIError
	require.ErrorAs(t, err, &e)
	require.Equal(t, "ThrottlingException", e.ErrorCode())
}

// TestCrash goes through every point at which three puts can be cut off.
func TestCrash(t *testing.T) {
	t.Parallel()
	const puts = 3
	for n := 1; n <= puts+1; n++ {
		for _, fault := range []Fault{Unsent, Lost} {
			var faults Faults
			client := DynamoDB(t, faults.Option)
			table := Table(t, client)
			faults.Set(Crash(n, fault))
			answered := 0
			for i := range puts {
				_, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{
					TableName: &table, Item: key("a", []string{"0", "1", "2"}[i]),
				})
				if err == nil {
					answered++
				}
			}
			faults.Set(nil)
			out, err := client.Scan(t.Context(), &dynamodb.ScanInput{TableName: &table})
			require.NoError(t, err)
			kept := n - 1
			if fault == Lost {
				kept = min(n, puts)
			}
			require.Equal(t, n-1, answered)
			require.Len(t, out.Items, kept)
		}
	}
}

// TestHooks has a rival write between a caller's decision and his call, and
// looks at the answer before he does.
func TestHooks(t *testing.T) {
	t.Parallel()
	var faults Faults
	client, rival := DynamoDB(t, faults.Option), DynamoDB(t)
	table := Table(t, client)
	var after atomic.Int64
	faults.After(func(_ context.Context, c Call, out any, err error) {
		if c.Op != "PutItem" {
			return
		}
		var failed *types.ConditionalCheckFailedException
		require.ErrorAs(t, err, &failed)
		require.Empty(t, out.(*dynamodb.PutItemOutput).Attributes)
		require.Equal(t, Call{Op: "PutItem", Nth: 1, Total: 1, Input: c.Input}, c)
		require.Equal(t, table, *c.Input.(*dynamodb.PutItemInput).TableName)
		after.Add(1)
	})
	faults.Set(func(_ context.Context, c Call) Fault {
		if c.Op == "PutItem" {
			put(t, rival, table, key("a", "0"))
		}
		return None
	})
	_, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{
		TableName: &table, Item: key("a", "0"), ConditionExpression: aws.String("attribute_not_exists(pk)"),
	})
	require.Error(t, err)
	require.EqualValues(t, 1, after.Load())
}

// TestPartialAnswers makes a batch answer that it is not done.
func TestPartialAnswers(t *testing.T) {
	t.Parallel()
	var faults Faults
	client := DynamoDB(t, faults.Option)
	table := Table(t, client)
	write := map[string][]types.WriteRequest{table: {{PutRequest: &types.PutRequest{Item: key("a", "0")}}}}
	faults.After(func(_ context.Context, _ Call, out any, _ error) {
		if batch, ok := out.(*dynamodb.BatchWriteItemOutput); ok {
			batch.UnprocessedItems = write
		}
	})
	out, err := client.BatchWriteItem(t.Context(), &dynamodb.BatchWriteItemInput{RequestItems: write})
	require.NoError(t, err)
	require.Equal(t, write, out.UnprocessedItems)
	faults.After(nil)
	out, err = client.BatchWriteItem(t.Context(), &dynamodb.BatchWriteItemInput{RequestItems: write})
	require.NoError(t, err)
	require.Empty(t, out.UnprocessedItems)
}

func BenchmarkTable(b *testing.B) {
	client := DynamoDB(b)
	for b.Loop() {
		Table(b, client)
	}
}

func BenchmarkPut(b *testing.B) {
	client := DynamoDB(b)
	table := Table(b, client)
	for b.Loop() {
		_, err := client.PutItem(b.Context(), &dynamodb.PutItemInput{TableName: &table, Item: key("a", "0")})
		require.NoError(b, err)
	}
}
