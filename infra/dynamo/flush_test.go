package dynamo_test

import (
	"testing"

	"sluice/core"
	"sluice/core/flushtest"
	"sluice/infra/awstest"
	"sluice/infra/dynamo"
)

func TestFlushes(t *testing.T) {
	t.Parallel()
	open := func(t testing.TB, clock core.Clock, name string) (core.Store, core.Coordinator) {
		s := &table{name: name, Store: dynamo.New(awstest.DynamoDB(t), dynamo.Options{
			Table: name, Clock: clock, Retention: retention, DueShards: 1,
		})}
		return s, s.Store
	}
	flushtest.Run(t, flushtest.Harness{
		Name: "dynamo",
		Open: func(t testing.TB, clock core.Clock) (core.Store, core.Coordinator) {
			return open(t, clock, awstest.Table(t, awstest.DynamoDB(t)))
		},
		Reopen: func(t testing.TB, clock core.Clock, s core.Store, _ core.Coordinator) (core.Store, core.Coordinator) {
			_ = s.Close()
			return open(t, clock, s.(*table).name)
		},
	})
}
