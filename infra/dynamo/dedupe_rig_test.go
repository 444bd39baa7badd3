package dynamo_test

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"sluice/infra/awstest"
)

type item = map[string]types.AttributeValue

// items is all that the table has.
func (r *rig) items() []item {
	r.t.Helper()
	out, err := r.raw.Scan(r.ctx, &dynamodb.ScanInput{TableName: &r.table, ConsistentRead: aws.Bool(true)})
	require.NoError(r.t, err)
	require.Nil(r.t, out.LastEvaluatedKey)
	return out.Items
}

func pkOf(i item) string { return i["pk"].(*types.AttributeValueMemberS).Value }

// keyAt is the key of an item that is alone in its partition.
func keyAt(pk string) item {
	return item{"pk": &types.AttributeValueMemberS{Value: pk}, "sk": &types.AttributeValueMemberN{Value: "0"}}
}

// putAt is the partition that a put is for.
func putAt(c awstest.Call) (pk string, ok bool) {
	in, ok := c.Input.(*dynamodb.PutItemInput)
	if !ok {
		return "", false
	}
	return pkOf(in.Item), true
}
