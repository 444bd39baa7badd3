package dynamo_test

import (
	"context"
	"flag"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"sluice/core"
	"sluice/core/storetest"
	"sluice/infra/awstest"
	"sluice/infra/dynamo"
	"sluice/infra/memory"
)

// histories is how many random histories are run, unless a flag says: each
// takes thousands of calls over a socket.
const histories = "2"

func TestMain(m *testing.M) {
	_ = flag.Set("rapid.checks", histories) // before the flags given are read
	goleak.VerifyTestMain(m)
}

// begin is when the fixtures' time begins, as it does in the shared suite.
const begin core.Millis = 1_700_000_000_000

// clock is a clock that tests set.
type clock struct{ now atomic.Int64 }

func newClock() *clock {
	c := new(clock)
	c.now.Store(int64(begin))
	return c
}

func (c *clock) Now() core.Millis { return core.Millis(c.now.Load()) }

func (c *clock) pass(d time.Duration) { c.now.Add(d.Milliseconds()) }

// table is a store with the table that it is on.
type table struct {
	*dynamo.Store

	name string
}

func harness(name string, o dynamo.Options) storetest.Harness {
	open := func(t testing.TB, onto string) core.Store {
		client := awstest.DynamoDB(t)
		if onto == "" {
			onto = awstest.Table(t, client)
		}
		o := o
		o.Table = onto
		if o.Clock == nil {
			o.Clock = newClock()
		}
		o.Retention = 7 * 24 * time.Hour
		return &table{Store: dynamo.New(client, o), name: onto}
	}
	return storetest.Harness{
		Name: name,
		Open: func(t testing.TB) core.Store { return open(t, "") },
		Reopen: func(t testing.TB, s core.Store) core.Store {
			_ = s.Close()
			return open(t, s.(*table).name)
		},
		Settle: func(t testing.TB, s core.Store, sized []string) {
			if len(sized) > 0 {
				require.NoError(t, s.(*table).Maintain(context.Background(), sized))
			}
		},
		Forget: func(t testing.TB, s core.Store, now core.Millis) {
			forget(t, s.(*table).name, now)
		},
		Gaps:  true,
		Model: func() core.Store { return memory.New() },
	}
}

// forget deletes what the table deletes in the end: the records that expire and
// are kept no longer, with their logs.
func forget(t testing.TB, name string, now core.Millis) {
	t.Helper()
	ctx, client := context.Background(), awstest.DynamoDB(t)
	out, err := client.Scan(ctx, &dynamodb.ScanInput{TableName: &name, ConsistentRead: aws.Bool(true)})
	require.NoError(t, err)
	require.Nil(t, out.LastEvaluatedKey)
	var gone []string
	for _, item := range out.Items {
		closed, ok := item["closed"].(*types.AttributeValueMemberN)
		if _, expires := item["expires"]; ok && expires && atoi(t, closed.Value) <= int64(now) {
			gone = append(gone, item["pk"].(*types.AttributeValueMemberS).Value, "s/"+item["life"].(*types.AttributeValueMemberS).Value+"/")
		}
	}
	for _, item := range out.Items {
		pk := item["pk"].(*types.AttributeValueMemberS).Value
		if slices.Contains(gone, pk) || slices.Contains(gone, pk[:strings.LastIndex(pk, "/")+1]) {
			_, err := client.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: &name,
				Key: map[string]types.AttributeValue{"pk": item["pk"], "sk": item["sk"]}})
			require.NoError(t, err)
		}
	}
}

func TestStore(t *testing.T) {
	t.Parallel()
	h := harness("dynamo", dynamo.Options{DueShards: 2})
	storetest.Run(t, h)
}

func TestHistories(t *testing.T) {
	t.Parallel()
	storetest.Histories(t, harness("dynamo", dynamo.Options{DueShards: 2}))
}
