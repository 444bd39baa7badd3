package sqs_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/stretchr/testify/require"

	"sluice/core"
	"sluice/core/message"
	"sluice/infra/awstest"
	"sluice/infra/sqs"
)

// soon bounds what is waited for over the network.
const soon = time.Minute

// TestLiveTimers runs near deadlines, and a far one whose schedule has just
// fired, over the network: all come, and none before its time.
func TestLiveTimers(t *testing.T) {
	t.Parallel()
	client := awstest.SQS(t)
	queue := awstest.Queue(t, client, nil).URL
	type came struct {
		hint core.Hint
		at   core.Millis
	}
	checks := make(chan came, 100)
	ladder := sqs.NewLadder(sqs.NewTimer(client, queue, wall), newSchedules(client, queue), sqs.LadderOptions{Clock: wall})
	p := poll(t, client, queue, arrive(t, sqs.NewArrivals(ladder, wall), func(_ context.Context, h core.Hint) error {
		checks <- came{h, wall.Now()}
		return nil
	}))
	defer p.stop()

	waiting := map[core.Hint]bool{}
	for i, remaining := range []time.Duration{-time.Hour, 0, 100 * time.Millisecond, time.Second, 2500 * time.Millisecond, 4 * time.Second} {
		h := in(remaining)
		h.Ref.Key, h.Check = fmt.Sprintf("\xff\x00🚰\uFFFF<aws.scheduler.execution-id>%d", i), uint64(i)
		waiting[h] = true
		require.NoError(t, ladder.Arm(context.Background(), h))
		require.NoError(t, ladder.Arm(context.Background(), h), "doubled")
	}
	overdue := time.After(soon)
	for len(waiting) > 0 {
		select {
		case c := <-checks:
			require.GreaterOrEqual(t, c.at, c.hint.At, "%v came early", c.hint)
			delete(waiting, c.hint)
		case <-overdue:
			require.Empty(t, waiting, "never came")
		}
	}
}

// TestLiveQueue hands deliveries over the network, as they are.
func TestLiveQueue(t *testing.T) {
	t.Parallel()
	client := awstest.SQS(t)
	url := awstest.Queue(t, client, nil).URL
	came := make(chan core.Delivery, 1000)
	p := poll(t, client, url, func(_ context.Context, batch []types.Message) []error {
		errs := make([]error, len(batch))
		for i := range batch {
			var d core.Delivery
			d, errs[i] = message.DecodeDelivery([]byte(*batch[i].Body))
			came <- d
		}
		return errs
	})
	defer p.stop()
	q := sqs.NewQueue(client, url)
	waiting := map[core.Ref]bool{}
	for i := range 50 {
		d := core.Delivery{Ref: core.Ref{Buffer: fmt.Sprint("buffer-", i%3), Key: fmt.Sprintf("%d \xff\x00\uFFFE🚰<&>", i), Shard: i}, Destination: "crm"}
		waiting[d.Ref] = true
		require.NoError(t, q.Hand(context.Background(), d))
	}
	overdue := time.After(soon)
	for len(waiting) > 0 {
		select {
		case d := <-came:
			require.Equal(t, "crm", d.Destination)
			delete(waiting, d.Ref)
		case <-overdue:
			require.Empty(t, waiting, "never came")
		}
	}
}
