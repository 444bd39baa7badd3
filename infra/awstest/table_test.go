package awstest

import (
	"context"
	"maps"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/stretchr/testify/require"
)

// The items of the tests.
type item = map[string]types.AttributeValue

func str(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
func num(n string) types.AttributeValue { return &types.AttributeValueMemberN{Value: n} }

func key(pk, sk string) item { return item{"pk": str(pk), "sk": num(sk)} }

func put(t *testing.T, client *dynamodb.Client, table string, it item) {
	t.Helper()
	_, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: it})
	require.NoError(t, err)
}

func get(t *testing.T, client *dynamodb.Client, table string, k item) item {
	t.Helper()
	out, err := client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &table, Key: k, ConsistentRead: aws.Bool(true)})
	require.NoError(t, err)
	return out.Item
}

func TestTablesAreTheTestsOwn(t *testing.T) {
	t.Parallel()
	client := DynamoDB(t)
	mine, other := Table(t, client), Table(t, client)
	require.NotEqual(t, mine, other)
	put(t, client, mine, key("a", "0"))
	require.NotEmpty(t, get(t, client, mine, key("a", "0")))
	require.Empty(t, get(t, client, other, key("a", "0")))
}

// TestTableSchema shows that the table has the indexes of its schema, that they
// are sparse, and that they hold what they include and no more.
func TestTableSchema(t *testing.T) {
	t.Parallel()
	client := DynamoDB(t)
	table := Table(t, client)
	overdue := key("a", "0")
	maps.Copy(overdue, item{
		"due": str("1"), "checkAt": num("5"), "buffer": str("b"), "key": str("k"), "shard": num("2"), "life": str("l"),
		"rev": num("7"), "tail": num("9"),
	})
	put(t, client, table, overdue)
	put(t, client, table, key("b", "0"))

	query := func(index, rng string) []item {
		out, err := client.Query(t.Context(), &dynamodb.QueryInput{
			TableName: &table, IndexName: &index,
			KeyConditionExpression:    aws.String("due = :due AND " + rng + " <= :at"),
			ExpressionAttributeValues: item{":due": str("1"), ":at": num("5")},
		})
		require.NoError(t, err)
		return out.Items
	}
	got := query("byCheck", "checkAt")
	held := item{}
	for _, name := range append([]string{"pk", "sk", "due", "checkAt"}, TableSchema().Indexes[0].Include...) {
		held[name] = overdue[name]
		require.NotNil(t, held[name], "the item has no %s", name)
	}
	require.Equal(t, []item{held}, got)
	require.Empty(t, query("byClaim", "claimDue"))
}

func TestAttributesOnce(t *testing.T) {
	t.Parallel()
	require.Equal(t, []Key{{"pk", "S"}, {"sk", "N"}, {"due", "S"}, {"checkAt", "N"}, {"claimDue", "N"}},
		TableSchema().Attributes())
}

func TestQueuesAreTheTestsOwn(t *testing.T) {
	t.Parallel()
	client := SQS(t)
	standard := Queue(t, client, nil)
	fifo := Queue(t, client, map[string]string{"FifoQueue": "true", "ContentBasedDeduplication": "true"})
	require.True(t, strings.HasSuffix(standard.URL, "/"+standard.Name), standard.URL)
	require.True(t, strings.HasPrefix(standard.ARN, "arn:aws:sqs:"+Region+":"), standard.ARN)
	require.True(t, strings.HasSuffix(fifo.ARN, ".fifo"), fifo.ARN)

	_, err := client.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &standard.URL, MessageBody: aws.String("hello")})
	require.NoError(t, err)
	require.Equal(t, "hello", receive(t, client, standard))
	require.Empty(t, receive(t, client, Queue(t, client, nil)))
}

func receive(t *testing.T, client *sqs.Client, q QueueRef) string {
	t.Helper()
	out, err := client.ReceiveMessage(context.Background(), &sqs.ReceiveMessageInput{QueueUrl: &q.URL})
	require.NoError(t, err)
	if len(out.Messages) == 0 {
		return ""
	}
	return *out.Messages[0].Body
}
