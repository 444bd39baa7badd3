package cloud

import (
	"context"

	"sluice/core"
	"sluice/infra/dynamo"
	"sluice/infra/scheduler"
	"sluice/infra/sqs"
)

// store is the table.
func (f *function) store() *dynamo.Store {
	return dynamo.New(f.clients.dynamoDB(), dynamo.Options{
		Table: f.env.Table, Clock: f.clock, Retention: f.settings.config.Store.Retention, OnLoss: f.lost,
	})
}

// lost tells of items that the table has deleted before they were delivered.
func (f *function) lost(l dynamo.Loss) {
	f.metrics.Lost(int64(l.To - l.From + 1))
	f.log.Error("items were lost: they expired before they were delivered",
		"buffer", l.Ref.Buffer, "group", core.Cut(l.Ref.Key, maxLoggedKey), "life", l.Life, "from", l.From, "to", l.To)
}

// maxLoggedKey bounds how much of a group's key a line carries, in bytes.
const maxLoggedKey = 256

// ladder is the timer: near deadlines on the check queue, far ones as schedules.
func (f *function) ladder() *sqs.Ladder {
	near := sqs.NewTimer(f.clients.sqs(), f.env.CheckQueueURL, f.clock)
	far := scheduler.New(f.clients.scheduler(), scheduler.Options{
		Group: f.env.ScheduleGroup, QueueARN: f.env.CheckQueueARN, RoleARN: f.env.ScheduleRoleARN, Clock: f.clock,
	})
	return sqs.NewLadder(near, served{far, near, f.clock}, sqs.LadderOptions{
		Threshold: f.env.Threshold, Clock: f.clock, Failed: f.observer.Failed,
	})
}

// served is a far timer that leaves to the near one what no schedule serves:
// a schedule wants a second or two more than the least threshold has.
type served struct {
	far   *scheduler.Timer
	near  core.Timer
	clock core.Clock
}

// Arm arms a hint.
func (s served) Arm(ctx context.Context, h core.Hint) error {
	if !scheduler.Serves(h.At, s.clock.Now()) {
		return s.near.Arm(ctx, h)
	}
	return s.far.Arm(ctx, h)
}

// queue is the deliver queue.
func (f *function) queue() *sqs.Queue { return sqs.NewQueue(f.clients.sqs(), f.env.DeliverQueueURL) }

// letters are the dead letters.
func (f *function) letters() *sqs.DeadLetters {
	return sqs.NewDeadLetters(f.clients.sqs(), f.env.DeadLetterQueueURL, sqs.DeadLetterOptions{Clock: f.clock, Failed: f.observer.Failed})
}
