package queue_test

import (
	"context"
	"testing"

	"go.uber.org/goleak"

	"sluice/core"
	"sluice/core/queuetest"
	"sluice/infra/queue"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestQueue(t *testing.T) {
	t.Parallel()
	queuetest.Run(t, queuetest.Harness{
		Name: "queue",
		Start: func(_ *testing.T, limit func(string) int, work func(context.Context, core.Delivery)) (core.Queue, func(context.Context) error) {
			q := queue.New(limit)
			q.Start(work)
			return q, q.Stop
		},
	})
}
