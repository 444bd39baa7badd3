package dynamo_test

import (
	"context"
	"flag"
	"sync/atomic"
	"testing"
	"time"

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
		Gaps:  true,
		Model: func() core.Store { return memory.New() },
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
