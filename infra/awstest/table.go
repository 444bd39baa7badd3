package awstest

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Schema describes a table as code and template must agree on it.
type Schema struct {
	Hash, Range Key
	Expires     string // the attribute that holds when an item may be deleted, in Unix seconds
	Indexes     []Index
}

// Key is a key attribute.
type Key struct {
	Name string
	Type string // "S" or "N"
}

// Index is a global secondary index, which also holds the table's keys.
type Index struct {
	Name        string
	Hash, Range Key
	Include     []string // the attributes that it holds besides
}

// TableSchema is the one table of an environment. Its indexes are sparse: an
// item without "due" is in neither.
func TableSchema() Schema {
	include := []string{"key", "life"} // what never changes: an index entry is written anew only when its time is
	due := Key{"due", "S"}
	return Schema{
		Hash: Key{"pk", "S"}, Range: Key{"sk", "N"}, Expires: "expires",
		Indexes: []Index{
			{Name: "byCheck", Hash: due, Range: Key{"checkAt", "N"}, Include: include},
			{Name: "byClaim", Hash: due, Range: Key{"claimDue", "N"}, Include: include},
		},
	}
}

// Attributes are all key attributes, each once, in the order they appear.
func (s Schema) Attributes() []Key {
	keys := []Key{s.Hash, s.Range}
	for _, i := range s.Indexes {
		for _, k := range []Key{i.Hash, i.Range} {
			if !slices.Contains(keys, k) {
				keys = append(keys, k)
			}
		}
	}
	return keys
}

// Create is the request that creates the table.
func (s Schema) Create(name string) *dynamodb.CreateTableInput {
	in := &dynamodb.CreateTableInput{
		TableName: &name, KeySchema: keySchema(s.Hash, s.Range), BillingMode: types.BillingModePayPerRequest,
	}
	for _, k := range s.Attributes() {
		in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{
			AttributeName: aws.String(k.Name), AttributeType: types.ScalarAttributeType(k.Type),
		})
	}
	for _, i := range s.Indexes {
		in.GlobalSecondaryIndexes = append(in.GlobalSecondaryIndexes, types.GlobalSecondaryIndex{
			IndexName: aws.String(i.Name), KeySchema: keySchema(i.Hash, i.Range),
			Projection: &types.Projection{ProjectionType: types.ProjectionTypeInclude, NonKeyAttributes: i.Include},
		})
	}
	return in
}

func keySchema(hash, rng Key) []types.KeySchemaElement {
	return []types.KeySchemaElement{
		{AttributeName: aws.String(hash.Name), KeyType: types.KeyTypeHash},
		{AttributeName: aws.String(rng.Name), KeyType: types.KeyTypeRange},
	}
}

// serial makes names unique in this test binary, and so in its stand-ins.
var serial atomic.Int64

// Table creates an empty table of [TableSchema] that is the test's own, and
// returns its name. The test's end deletes it.
func Table(t testing.TB, client *dynamodb.Client) string {
	t.Helper()
	ctx := context.Background()
	name := fmt.Sprintf("sluice-%d", serial.Add(1))
	if _, err := client.CreateTable(ctx, TableSchema().Create(name)); err != nil {
		t.Fatalf("awstest: create table: %v", err)
	}
	t.Cleanup(func() { _, _ = client.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: &name}) })
	ready := dynamodb.NewTableExistsWaiter(client, func(o *dynamodb.TableExistsWaiterOptions) {
		o.MinDelay, o.MaxDelay = time.Millisecond, 5*time.Millisecond
	})
	if err := ready.Wait(ctx, &dynamodb.DescribeTableInput{TableName: &name}, 10*time.Second); err != nil {
		t.Fatalf("awstest: wait for the table: %v", err)
	}
	return name
}
