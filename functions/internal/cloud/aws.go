package cloud

import (
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
	return f.ladderOf(
		sqs.NewTimer(f.clients.sqs(), f.env.CheckQueueURL, f.clock),
		scheduler.New(f.clients.scheduler(), scheduler.Options{
			Group: f.env.ScheduleGroup, QueueARN: f.env.CheckQueueARN, RoleARN: f.env.ScheduleRoleARN, Clock: f.clock,
		}),
	)
}

func (f *function) ladderOf(near *sqs.Timer, far *scheduler.Timer) *sqs.Ladder {
	return sqs.NewLadder(near, far, sqs.LadderOptions{
		Threshold: f.env.Threshold, Clock: f.clock, Serves: scheduler.Serves, Failed: f.observer.Failed,
	})
}

// queue is the deliver queue.
func (f *function) queue() *sqs.Queue { return sqs.NewQueue(f.clients.sqs(), f.env.DeliverQueueURL) }

// letters are the dead letters.
func (f *function) letters() *sqs.DeadLetters {
	return sqs.NewDeadLetters(f.clients.sqs(), f.env.DeadLetterQueueURL, sqs.DeadLetterOptions{Clock: f.clock, Failed: f.observer.Failed})
}
